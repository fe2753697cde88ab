// An answer of /explain in plain words.
import { element } from "./dom.js";
import { count, duration, limitOf, moment } from "./format.js";
import { describeLimits } from "./rates.js";
import { createTable } from "./table.js";
import { said, sentence } from "./text.js";

// Rules that did not match are told first to last, but not for pages.
const RULES_SHOWN = 12;

const isTrial = ({ limit, mode }) => mode === "shadow" && limit.startsWith("next.");

const modeOf = (take) => {
  if (isTrial(take)) return "trial: never refuses";
  return take.mode === "shadow" ? "shadow: never refuses" : "enforced";
};

// The enforced take that decided: of a refusal the one that lasts longest, else the one with least left.
const deciding = ({ answer, takes }) => {
  const enforced = takes.filter(({ mode, rule }) => mode === "enforce" && rule === answer.rule);
  if (!answer.allowed) {
    const against = enforced.filter(({ verdict }) => verdict !== "allow");
    return against.find(({ verdict }) => verdict === "never") ?? against.sort((one, other) => other.retry_after_ms - one.retry_after_ms)[0];
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
  const by = ["by rule ", element("strong", {}, said(answer.rule)), take ? [", limit ", element("code", {}, said(take.limit))] : ""].flat();
  const of = answer.share ?? answer.burst ?? answer.limit;
  if (answer.limit === null) return [element("b", { class: "good" }, "✓ Allowed"), ": nothing limits it (", ...by, ")."];
  if (answer.allowed) return [element("b", { class: "good" }, "✓ Allowed"), ` now, ${count(answer.remaining)} of ${count(of)} left after it (`, ...by, ")."];
  const used = take?.algorithm === "block" || of === 0 ? ", which lets nothing pass" : `: ${count(answer.count)} of ${count(of)} used`;
  return [element("b", { class: "bad" }, "✕ Refused"), " now ", ...by, `${used}. ${room(answer)}`];
};

export const degradedNote = ({ answer }) =>
  answer.degraded ? element("p", { class: "warn" }, "Redis is lost: this is what this node says by its share; others may differ.") : null;

const ruleLine = ({ rule, matched, because }) =>
  element("li", { class: matched ? "matched" : "" },
    element("span", { class: matched ? "good" : "dim" }, matched ? "✓ " : "· "), element("strong", {}, said(rule)),
    matched ? " matches" : [" does not match: ", sentence(because ?? "")]);

export const rulesTried = ({ rules }) => {
  if (rules.length === 0) return element("p", { class: "dim" }, "No rule was tried: the default applies.");
  const missed = rules.filter(({ matched }) => !matched);
  const shown = new Set([...rules.filter(({ matched }) => matched), ...missed.slice(-RULES_SHOWN)]);
  const left = rules.length - shown.size;
  const list = element("ol", { class: "tried" },
    left > 0 ? element("li", { class: "dim" }, `${count(left)} rules before did not match`) : null,
    rules.filter((rule) => shown.has(rule)).map(ruleLine),
    rules.some(({ matched }) => matched) ? null : element("li", { class: "matched" }, element("span", { class: "good" }, "✓ "), "so the ", element("strong", {}, "default"), " applies"));
  return list;
};

// Used of a limit, as a bar; `after` is what the request would add.
export const bar = (used, of, after = used) => {
  const share = (value) => `${of > 0 ? Math.min(100, (100 * value) / of) : 100}%`;
  const made = element("span", { class: used >= of ? "bar full" : "bar", "aria-hidden": "true" }, element("i", { class: "after" }), element("i", { class: "before" }));
  made.style.setProperty("--before", share(used));
  made.style.setProperty("--after", share(after));
  return made;
};

const capacity = ({ numbers }) => numbers.burst ?? numbers.limit;

const figures = (take) => {
  const { before, after } = take;
  const change = before.count === after.count ? count(before.count) : `${count(before.count)} → ${count(after.count)}`;
  return element("span", { class: "used" }, bar(before.count, capacity(take), after.count), ` ${change} of ${count(capacity(take))}`);
};

const verdictOf = (take) => {
  if (take.verdict === "allow") return element("span", { class: "good" }, "has room");
  const text = take.verdict === "never" ? "never has room" : `full; room in ${duration(take.retry_after_ms)}`;
  return element("span", { class: take.mode === "enforce" ? "bad" : "warn" }, take.mode === "enforce" ? text : `would refuse: ${text}`);
};

const besides = ({ beside, distributed }) => {
  if (!beside) return distributed === "on" ? null : element("div", { class: "dim" }, distributed === "off" ? "counted by this node alone" : "compared with Redis");
  const word = beside.verdict === "allow" ? "has room" : "would refuse";
  return element("div", { class: "dim" }, `Redis, only compared: ${word}, ${count(beside.count)} used`);
};

export const takesTable = ({ takes }) => {
  const table = createTable({
    caption: "Limits it takes from",
    columns: ["Limit", "Used", "Says", "Mode"].map((name) => ({ name })),
    empty: "It takes from no limit.",
    keyOf: ({ key, limit }) => JSON.stringify([key, limit]),
    make: (take) => ({
      cells: [
        element("span", {}, element("strong", {}, said(take.rule)), " ", element("code", {}, said(take.limit)),
          element("div", { class: "dim" }, `${limitOf(take.numbers)}, ${take.algorithm.replaceAll("_", " ")}${take.cost === 1 ? "" : `, takes ${count(take.cost)}`}`)),
        figures(take),
        element("span", {}, verdictOf(take), besides(take)),
        modeOf(take),
      ],
    }),
  });
  table.show(takes);
  return table.root;
};

export const overrideNote = ({ override }) => {
  if (!override) return null;
  const until = override.expires_at ? `, until ${moment(override.expires_at)}` : "";
  return element("p", { class: "note" }, "It has limits of its own: ", element("code", {}, describeLimits(override.limits)),
    ` in ${override.applies_to.join(", ") || "no rule"}${until}.`, override.problem ? [" ", element("span", { class: "warn" }, sentence(override.problem))] : "");
};
