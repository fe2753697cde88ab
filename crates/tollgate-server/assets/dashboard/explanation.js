// Response of /api/explain as text.
import { element } from "./dom.js";
import { count, duration, limitText, moment, unitSuffix, usageText } from "./format.js";
import { describeLimits } from "./rates.js";
import { longText, shortText } from "./text.js";

// Maximum number of rules without a match that are shown.
const MAX_UNMATCHED_RULES = 12;

// The take of the deciding limit; undefined if the request is unlimited.
const decidingTake = ({ answer, takes }) =>
  takes.find(({ mode, rule, limit }) => mode === "enforce" && rule === answer.rule && limit === answer.limit_name);

const retryText = (answer) => {
  if (answer.verdict === "never") return "Retrying does not help.";
  return `Retry in ${duration(answer.retry_after_ms)}.`;
};

const allowedText = (answer, capacity, unit) =>
  answer.limit === null
    ? " now: no limit"
    : ` now, ${count(answer.remaining)} of ${count(capacity)}${unitSuffix(unit)} left after this request`;

// Elements of the answer: allowed or refused, by which rule and limit, and when to retry.
export const headline = (explanation) => {
  const { answer } = explanation;
  const take = decidingTake(explanation);
  const rule = ["rule ", element("strong", {}, shortText(answer.rule))];
  const source = take ? [...rule, ", limit ", element("code", {}, limitText({ ...take.numbers, unit: take.unit }))] : rule;
  const capacity = answer.share ?? answer.burst ?? answer.limit;
  if (answer.allowed)
    return [element("b", { class: "good" }, "✓ Allowed"), `${allowedText(answer, capacity, take?.unit)} (`, ...source, ")."];
  const refused = element("b", { class: "bad" }, "✕ Refused");
  if (take?.algorithm === "block" || capacity === 0) return [refused, " now: blocked by ", ...rule, "."];
  const { count: used, remaining } = answer;
  const usage = usageText({ algorithm: take?.algorithm, unit: take?.unit, used, remaining, capacity });
  return [refused, " now by ", ...source, `: ${usage}. ${retryText(answer)}`];
};

export const degradedNote = ({ answer }) =>
  answer.degraded
    ? element(
        "p",
        { class: "warn" },
        "Redis is unreachable: this is the decision of this node by its share; other nodes may decide differently.",
      )
    : null;

const ruleLine = ({ rule, matched, because }) =>
  element(
    "li",
    { class: matched ? "matched" : "" },
    element("span", { class: matched ? "good" : "dim" }, matched ? "✓ " : "· "),
    element("strong", {}, shortText(rule)),
    matched ? " matched" : [": no match: ", longText(because ?? "")],
  );

export const rulesTried = ({ rules }) => {
  if (rules.length === 0) return element("p", { class: "dim" }, "No rule was tried.");
  const unmatched = rules.filter(({ matched }) => !matched);
  const shown = new Set([...rules.filter(({ matched }) => matched), ...unmatched.slice(-MAX_UNMATCHED_RULES)]);
  const omitted = rules.length - shown.size;
  return element(
    "ol",
    { class: "rules-tried" },
    omitted > 0 ? element("li", { class: "dim" }, `${count(omitted)} earlier rules did not match`) : null,
    rules.filter((rule) => shown.has(rule)).map(ruleLine),
  );
};

// An override of a client; `applies_to` are the rules of the active policy that it changes.
export const overrideText = (override) => {
  const until = override.expires_at ? `, until ${moment(override.expires_at)}` : "";
  return [
    element("code", {}, describeLimits(override.limits)),
    ` for ${override.rule ?? (override.applies_to.join(", ") || "no rule")}${until}`,
    override.problem ? [". ", element("span", { class: "warn" }, longText(override.problem))] : "",
  ].flat();
};
