// Rules on trial: how many requests they would have refused or decided differently.
import { createChart } from "./chart.js";
import { byId, element, fill } from "./dom.js";
import { axis, count, percent, rate } from "./format.js";
import { OTHER_RULES, sumByRule } from "./history.js";
import { shortText } from "./text.js";

// Kinds of trial. `index` is the position of the count in the points of a rule.
const TRIAL_KINDS = [
  {
    name: "shadow",
    index: 2,
    applies: (rule) => rule.mode === "shadow",
    title: "shadow",
    limits: (rule) => rule.limits,
    none: "No request would have been refused. So far, mode: enforce is safe.",
    some: (share) => `If enforced, it would have refused ${share}. If this is intended, set mode: enforce.`,
  },
  {
    name: "next",
    index: 3,
    applies: (rule) => (rule.next ?? []).length > 0,
    title: "next limits",
    limits: (rule) => rule.next,
    none: "The next limits would have refused no request. So far, it is safe to move them to limits.",
    some: (share) => `The next limits would have refused ${share}. If this is intended, move them to limits.`,
  },
  {
    name: "diverged",
    index: 4,
    applies: (rule) => rule.distributed === "shadow",
    title: "distributed: shadow",
    limits: (rule) => rule.limits,
    none: "Nodes and Redis decided all requests equally. So far, distributed: on is safe.",
    some: (share) =>
      `Redis would have decided differently for ${share}, mostly of clients that use several nodes. ` +
      "If this is intended, set distributed: on.",
  },
];

const trialChart = (rule, kind) =>
  createChart({
    label: kind.name === "diverged" ? "Different decisions per second" : "Would be refused per second",
    format: axis,
    exact: rate,
    series: [
      { name: "", look: "hatched", colour: "c-slow", value: (point) => point.rules?.[rule.rule]?.[kind.index] ?? 0 },
    ],
  });

const createTrial = (rule, kind) => {
  const chart = trialChart(rule, kind);
  const result = element("span", { class: "result" });
  const advice = element("p");
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
    advice,
    chart.root,
  );
  return {
    root,
    update: (points, now, sums) => {
      const [checked] = sums.get(rule.rule) ?? [0];
      const affected = sums.get(rule.rule)?.[kind.index] ?? 0;
      const total = checked > 0 ? ` of ${count(checked)} checked` : "";
      fill(result, [affected, checked], () => [
        element("b", {}, percent(affected, checked)),
        element("span", { class: "dim" }, ` ${count(affected)}${total}`),
      ]);
      fill(advice, affected > 0 ? [affected, checked] : 0, () =>
        affected > 0 ? kind.some(`${percent(affected, checked)} of requests`) : kind.none,
      );
      chart.draw(points, now);
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
    update: ({ policy, history, frame }) => {
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
      const points = history.finalPoints();
      const sums = sumByRule(points);
      for (const trial of trials) trial.update(points, history.now(), sums);
    },
  };
};
