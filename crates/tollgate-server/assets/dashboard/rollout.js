// Rules on trial: how many requests they would have refused or decided differently.
import { createChart } from "./chart.js";
import { byId, element, fill } from "./dom.js";
import { axis, count, percent, rate } from "./format.js";
import { OTHER_RULES, sumByRule } from "./history.js";
import { shortText } from "./text.js";

const REFUSED = 1;

// What a trial adds to the live refusals: at least the difference, because both may refuse the same request.
const addedText = (affected, refused) =>
  affected > refused ? `at least ${count(affected - refused)} more` : "not more than the live limits";

// Refusals by the live limits of a rule.
const liveText = (refused, checked) => `The live limits refused ${count(refused)} (${percent(refused, checked)})`;

// Kinds of trial. `index` is the position of the count in the points of a rule. `advice` gets the texts of the affected
// part and of the live refusals.
const TRIAL_KINDS = [
  {
    name: "shadow",
    index: 2,
    applies: (rule) => rule.mode === "shadow",
    title: "shadow",
    limits: (rule) => rule.limits,
    advice: ({ affected, share }) =>
      affected === 0
        ? "The rule refuses nothing now, and mode: enforce would have refused nothing."
        : `The rule refuses nothing now; mode: enforce would have refused ${share}. If this is intended, set mode: enforce.`,
  },
  {
    name: "next",
    index: 3,
    applies: (rule) => (rule.next ?? []).length > 0,
    title: "next limits",
    limits: (rule) => rule.next,
    advice: ({ affected, share, live, added }) =>
      affected === 0
        ? `${live}; the next limits would have refused nothing.`
        : `${live}; the next limits would have refused ${share}, ${added}. If this is intended, move them to limits.`,
  },
  {
    name: "diverged",
    index: 4,
    applies: (rule) => rule.distributed === "shadow",
    title: "distributed: shadow",
    limits: (rule) => rule.limits,
    advice: ({ affected, share, live }) =>
      affected === 0
        ? `${live}; Redis would have decided every request equally.`
        : `${live}; Redis would have decided differently for ${share}, mostly of clients that use several nodes. ` +
          "If this is intended, set distributed: on.",
  },
];

const trialChart = (rule, kind) =>
  createChart({
    label: kind.name === "diverged" ? "Different decisions per second" : "Would be refused per second",
    format: axis,
    exact: rate,
    stacked: false,
    series: [
      {
        name: kind.name === "diverged" ? "different" : "trial",
        look: "hatched",
        colour: "c-slow",
        value: (point) => point.rules?.[rule.rule]?.[kind.index] ?? 0,
      },
      {
        name: "refused by live limits",
        look: "thin",
        colour: "c-refused",
        value: (point) => point.rules?.[rule.rule]?.[REFUSED] ?? 0,
      },
    ],
  });

// Result and advice; without traffic there is neither.
const resultElements = ({ checked, affected, refused }, kind) => {
  if (checked === 0)
    return [element("b", {}, "No traffic yet"), element("p", {}, "No request matched this rule in this time.")];
  const share = `${count(affected)} (${percent(affected, checked)})`;
  return [
    element("b", {}, percent(affected, checked)),
    element("span", { class: "dim" }, ` ${count(affected)} of ${count(checked)} checked`),
    element("p", {}, kind.advice({ affected, share, live: liveText(refused, checked), added: addedText(affected, refused) })),
  ];
};

const createTrial = (rule, kind) => {
  const chart = trialChart(rule, kind);
  const result = element("div", { class: "result" });
  const root = element(
    "article",
    { class: "trial" },
    element(
      "h3",
      {},
      shortText(rule.rule),
      " ",
      element("span", { class: "tag" }, kind.title),
      " ",
      element("code", {}, shortText(kind.limits(rule).join(", "))),
    ),
    result,
    chart.root,
  );
  return {
    root,
    update: (view, sums) => {
      const counts = (sums.get(rule.rule) ?? []).map((value) => Math.round(value));
      const figures = { checked: counts[0] ?? 0, refused: counts[REFUSED] ?? 0, affected: counts[kind.index] ?? 0 };
      fill(result, figures, () => resultElements(figures, kind));
      chart.root.hidden = figures.checked === 0;
      chart.draw(view);
    },
  };
};

const trialHelp = () =>
  element(
    "p",
    { class: "note" },
    "No rule is on trial. To evaluate a rule without refusing requests, set ",
    element("code", {}, "mode: shadow"),
    "; to evaluate other limits together with the active ones, set ",
    element("code", {}, "next: { limits: [5/min] }"),
    "; to compare decisions of nodes with those of Redis, set ",
    element("code", {}, "distributed: shadow"),
    ". The results are shown here (see docs/POLICY.md).",
  );

export const createRollout = () => {
  const container = byId("rollout-rules");
  let trials = [];
  return {
    update: ({ policy, frame, view }) => {
      if (!policy || !frame) return;
      const pairs = policy.rules
        .filter(({ rule }) => rule !== OTHER_RULES)
        .flatMap((rule) => TRIAL_KINDS.filter((kind) => kind.applies(rule)).map((kind) => [rule, kind]));
      fill(
        container,
        pairs.map(([rule, kind]) => [rule.rule, kind.name, kind.limits(rule)]),
        () => {
          trials = pairs.map(([rule, kind]) => createTrial(rule, kind));
          return trials.length > 0 ? trials.map(({ root }) => root) : trialHelp();
        },
      );
      if (trials.length === 0) return;
      const sums = sumByRule(view.points);
      for (const trial of trials) trial.update(view, sums);
    },
  };
};
