// Route view: the rules that apply to a method and path, in the order in which they are tried, and why.
import { element } from "./dom.js";
import { createTable } from "./table.js";
import { longText, shortText } from "./text.js";

// States of a rule on a route.
const APPLIES = "applies";
const DEPENDS = "depends";
const NO_MATCH = "no match";
const NOT_REACHED = "not reached";

const SIGNS = { [APPLIES]: "✓", [DEPENDS]: "?", [NO_MATCH]: "·", [NOT_REACHED]: "·" };
const CLASSES = { [APPLIES]: "good", [DEPENDS]: "warn", [NO_MATCH]: "dim", [NOT_REACHED]: "dim" };

const triedReason = ({ matched, because, missing }, isLast) => {
  if (!matched) return missing ? `depends on the fact ${missing}: ${because}` : (because ?? "");
  return isLast ? "matches, and no further rule is tried" : "matches, and continues with the next rule";
};

// Rules of the policy that come after the last one tried.
const notTried = (policy, tried) => {
  const names = new Set(tried.map(({ rule }) => rule));
  const rules = (policy?.rules ?? []).filter(({ rule }) => !names.has(rule));
  const reason = (rule) =>
    rule === "default" ? "applies only if no other rule matches" : "an earlier rule ends the search";
  return rules.map(({ rule }) => ({ rule, state: NOT_REACHED, reason: reason(rule) }));
};

const statesOf = (explanation, policy) => {
  const { rules } = explanation;
  const tried = rules.map((entry, index) => {
    const state = entry.matched ? APPLIES : entry.missing ? DEPENDS : NO_MATCH;
    return { rule: entry.rule, state, reason: triedReason(entry, index === rules.length - 1) };
  });
  return [...tried, ...notTried(policy, rules)];
};

const detailOf = (policy, name) => policy?.rules.find(({ rule }) => rule === name);

const limitsText = (rule) => {
  if (!rule) return "–";
  return rule.mode === "unlimited" ? "unlimited" : rule.limits.join(", ");
};

const makeRow =
  (policy) =>
  ({ rule, state, reason, order }) => {
    const detail = detailOf(policy, rule);
    return {
      cells: [
        String(order),
        element("strong", {}, shortText(rule)),
        element("span", { class: CLASSES[state] }, `${SIGNS[state]} ${state}`),
        element("code", {}, shortText(limitsText(detail))),
        shortText(detail?.per.join(", ") || (detail ? "all requests together" : "–")),
        longText(reason),
      ],
    };
  };

export const routeHeadline = (explanation) => {
  const applied = explanation.rules.filter(({ matched }) => matched).map(({ rule }) => rule);
  const depends = explanation.rules.filter(({ missing }) => missing).map(({ rule }) => rule);
  return [
    "Rules for this route: ",
    applied.flatMap((rule, at) => [at > 0 ? ", then " : "", element("strong", {}, shortText(rule))]),
    depends.length > 0 ? `; ${depends.length} more may apply to some clients` : "",
    ".",
  ].flat();
};

export const routeTable = (explanation, policy) => {
  const table = createTable({
    caption: "Rules for this route",
    columns: ["Order", "Rule", "Result", "Limits", "Keyed per", "Reason"].map((name) => ({ name })),
    empty: "The policy has no rules.",
    keyOf: ({ rule, state }) => JSON.stringify([rule, state]),
    makeRow: makeRow(policy),
  });
  table.show(statesOf(explanation, policy).map((entry, index) => ({ ...entry, order: index + 1 })));
  return table.root;
};
