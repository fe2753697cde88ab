// Rules on trial: what would have been refused, or decided otherwise, and whether it may be enforced.
import { createChart } from "./chart.js";
import { byId, element, fill } from "./dom.js";
import { axis, count, percent, rate } from "./format.js";
import { REST, sumByRule } from "./history.js";
import { said } from "./text.js";

// The ways a rule can be on trial: where its figure stands in a point, and what to say of it.
const WAYS = [
  {
    name: "shadow",
    at: 2,
    is: (rule) => rule.mode === "shadow",
    title: "shadow",
    limits: (rule) => rule.limits,
    none: "Nothing would have been refused. So far, mode: enforce is safe.",
    some: (share) => `Enforced, it would have refused ${share}. If you mean to refuse these, set mode: enforce.`,
  },
  {
    name: "next",
    at: 3,
    is: (rule) => (rule.next ?? []).length > 0,
    title: "next limits",
    limits: (rule) => rule.next,
    none: "The next limits would have refused nothing. So far, they can become the limits.",
    some: (share) => `The next limits would have refused ${share}. If you mean to refuse these, move them to limits.`,
  },
  {
    name: "diverged",
    at: 4,
    is: (rule) => rule.distributed === "shadow",
    title: "distributed: shadow",
    limits: (rule) => rule.limits,
    none: "Nodes and Redis agreed on everything. So far, distributed: on is safe.",
    some: (share) =>
      `Redis would have decided otherwise in ${share}: clients that use several nodes. ` +
      "If that is as you mean it, set distributed: on.",
  },
];

const chartOf = (rule, way) =>
  createChart({
    label: way.name === "diverged" ? "Decided otherwise a second" : "Would be refused a second",
    format: axis,
    exact: rate,
    series: [
      { name: "", look: "hatched", colour: "c-slow", value: (point) => point.rules?.[rule.rule]?.[way.at] ?? 0 },
    ],
  });

const trial = (rule, way) => {
  const chart = chartOf(rule, way);
  const figure = element("span", { class: "figure" });
  const sentence = element("p");
  const root = element(
    "article",
    { class: "trial" },
    element(
      "h3",
      {},
      said(rule.rule),
      " ",
      element("span", { class: "tag" }, way.title),
      " ",
      element("code", {}, said(way.limits(rule).join(", "))),
    ),
    figure,
    sentence,
    chart.root,
  );
  return {
    root,
    update: (points, now, sums) => {
      const [checked] = sums.get(rule.rule) ?? [0];
      const found = sums.get(rule.rule)?.[way.at] ?? 0;
      const of = checked > 0 ? ` of ${count(checked)} checked` : "";
      fill(figure, [found, checked], () => [
        element("b", {}, percent(found, checked)),
        element("span", { class: "dim" }, ` ${count(found)}${of}`),
      ]);
      fill(sentence, found > 0 ? [found, checked] : 0, () =>
        found > 0 ? way.some(`${percent(found, checked)} of requests`) : way.none,
      );
      chart.draw(points, now);
    },
  };
};

const howTo = () =>
  element(
    "p",
    { class: "note" },
    "No rule is on trial. To try a rule without refusing anybody, give it ",
    element("code", {}, "mode: shadow"),
    "; to try other limits beside those in force, ",
    element("code", {}, "next: { limits: [5/min] }"),
    "; to compare nodes with Redis, ",
    element("code", {}, "distributed: shadow"),
    ". What they would have done then shows here (docs/POLICY.md).",
  );

export const createRollout = () => {
  const host = byId("rollout-rules");
  let trials = [];
  return {
    update: ({ policy, history, frame }) => {
      if (!policy || !frame) return;
      const wanted = policy.rules
        .filter(({ rule }) => rule !== REST)
        .flatMap((rule) => WAYS.filter((way) => way.is(rule)).map((way) => [rule, way]));
      fill(
        host,
        wanted.map(([rule, way]) => [rule.rule, way.name, way.limits(rule)]),
        () => {
          trials = wanted.map(([rule, way]) => trial(rule, way));
          return trials.length > 0 ? trials.map(({ root }) => root) : howTo();
        },
      );
      if (trials.length === 0) return;
      const points = history.settled();
      const sums = sumByRule(points);
      for (const one of trials) one.update(points, history.now(), sums);
    },
  };
};
