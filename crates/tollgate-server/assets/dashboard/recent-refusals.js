// Note on recent refusals of an explained key, for the case that the explained request is allowed now: another rule
// refused the key, or the same rule has quota again.
import { button, element } from "./dom.js";
import { clock, count } from "./format.js";
import { queryOf } from "./refused.js";
import { ruleAndLimit } from "./text.js";

const MAX_ENTRIES = 3;
const MAX_LABEL_LENGTH = 100;

// A refusal by a rule that the explained request does not match, with a button for the refused request if known.
const otherRuleLine = (entry, explainedText, onExplain) => {
  const text = queryOf(entry);
  const label = text.length > MAX_LABEL_LENGTH ? `${text.slice(0, MAX_LABEL_LENGTH)}…` : text;
  return element(
    "div",
    {},
    "Recently refused by ",
    ruleAndLimit(entry.rule, entry.limit),
    ...(entry.facts && text !== explainedText
      ? [", for ", button(element("bdi", { dir: "auto" }, label), () => onExplain(text), { class: "small" })]
      : ["; the facts of that request were not recorded. Add the facts that this rule matches."]),
  );
};

const sameRuleLine = ({ count: times, last_at: last, rule, limit }) =>
  element(
    "div",
    {},
    `Refused ≥ ${count(times)} ${times === 1 ? "time" : "times"} in the last 5 minutes, last at ${clock(last)}, by `,
    ruleAndLimit(rule, limit),
  );

// `text` is the query as typed.
export const recentRefusals = ({ answer, takes }, { text, tenant = "" }, recent, onExplain) => {
  const rules = new Set(takes.map(({ rule }) => rule));
  const isSameRule = (entry) => rules.has(entry.rule) && entry.tenant === tenant;
  const found = recent.filter((entry) => entry.key === answer.key && (answer.allowed || !isSameRule(entry)));
  if (found.length === 0) return null;
  const line = (entry) => (isSameRule(entry) ? sameRuleLine(entry) : otherRuleLine(entry, text, onExplain));
  return element("div", { class: "note" }, ...found.slice(0, MAX_ENTRIES).map(line));
};
