// An answer of /explain in plain words.
import { element } from "./dom.js";
import { count, duration, moment } from "./format.js";
import { describeLimits } from "./rates.js";
import { said, sentence } from "./text.js";

// Rules that did not match are told first to last, but not for pages.
const RULES_SHOWN = 12;

// The enforced take that decided: of a refusal the one that lasts longest, else the one with least left.
const deciding = ({ answer, takes }) => {
  const enforced = takes.filter(({ mode, rule }) => mode === "enforce" && rule === answer.rule);
  if (!answer.allowed) {
    const against = enforced.filter(({ verdict }) => verdict !== "allow");
    return (
      against.find(({ verdict }) => verdict === "never") ??
      against.sort((one, other) => other.retry_after_ms - one.retry_after_ms)[0]
    );
  }
  return enforced.find(({ after }) => after.remaining === answer.remaining) ?? enforced[0];
};

const room = (answer) => {
  if (answer.verdict === "never") return "Waiting will not help.";
  return `There is room in ${duration(answer.retry_after_ms)}.`;
};

export const headline = (explanation) => {
  const { answer } = explanation;
  const take = deciding(explanation);
  const by = [
    "by rule ",
    element("strong", {}, said(answer.rule)),
    take ? [", limit ", element("code", {}, said(take.limit))] : "",
  ].flat();
  const of = answer.share ?? answer.burst ?? answer.limit;
  if (answer.limit === null)
    return [element("b", { class: "good" }, "✓ Allowed"), ": nothing limits it (", ...by, ")."];
  if (answer.allowed)
    return [
      element("b", { class: "good" }, "✓ Allowed"),
      ` now, ${count(answer.remaining)} of ${count(of)} left after it (`,
      ...by,
      ").",
    ];
  const used =
    take?.algorithm === "block" || of === 0
      ? ", which lets nothing pass"
      : `: ${count(answer.count)} of ${count(of)} used`;
  return [element("b", { class: "bad" }, "✕ Refused"), " now ", ...by, `${used}. ${room(answer)}`];
};

export const degradedNote = ({ answer }) =>
  answer.degraded
    ? element("p", { class: "warn" }, "Redis is lost: this is what this node says by its share; others may differ.")
    : null;

const ruleLine = ({ rule, matched, because }) =>
  element(
    "li",
    { class: matched ? "matched" : "" },
    element("span", { class: matched ? "good" : "dim" }, matched ? "✓ " : "· "),
    element("strong", {}, said(rule)),
    matched ? " matches" : [" does not match: ", sentence(because ?? "")],
  );

export const rulesTried = ({ rules }) => {
  if (rules.length === 0) return element("p", { class: "dim" }, "No rule was tried: the default applies.");
  const missed = rules.filter(({ matched }) => !matched);
  const shown = new Set([...rules.filter(({ matched }) => matched), ...missed.slice(-RULES_SHOWN)]);
  const left = rules.length - shown.size;
  const list = element(
    "ol",
    { class: "tried" },
    left > 0 ? element("li", { class: "dim" }, `${count(left)} rules before did not match`) : null,
    rules.filter((rule) => shown.has(rule)).map(ruleLine),
    rules.some(({ matched }) => matched)
      ? null
      : element(
          "li",
          { class: "matched" },
          element("span", { class: "good" }, "✓ "),
          "so the ",
          element("strong", {}, "default"),
          " applies",
        ),
  );
  return list;
};

export const overrideNote = ({ override }) => {
  if (!override) return null;
  const until = override.expires_at ? `, until ${moment(override.expires_at)}` : "";
  return element(
    "p",
    { class: "note" },
    "It has limits of its own: ",
    element("code", {}, describeLimits(override.limits)),
    ` in ${override.applies_to.join(", ") || "no rule"}${until}.`,
    override.problem ? [" ", element("span", { class: "warn" }, sentence(override.problem))] : "",
  );
};
