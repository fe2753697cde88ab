// Who asks about a key may mean a request that was refused lately: by a rule that what is asked does not reach, or by
// one that has room again.
import { button, element } from "./dom.js";
import { clock, count } from "./format.js";
import { questionOf } from "./refused.js";
import { scoped } from "./text.js";

const MOST = 3;
const LETTERS = 100;

// One refusal: by what, and the question that leads to it, as far as its facts are known.
const refusal = (entry, asked, onAsk) => {
  const text = questionOf(entry);
  const short = element("bdi", { dir: "auto" }, text.length > LETTERS ? `${text.slice(0, LETTERS)}…` : text);
  return element(
    "div",
    {},
    "Lately it was refused by ",
    scoped(entry.rule, entry.limit),
    ...(entry.facts && text !== asked
      ? [", for ", button(short, () => onAsk(text), { class: "small" })]
      : [", for facts that are not known here: add those that the rule matches."]),
  );
};

const over = ({ count: times, last_at: last, rule, limit }) =>
  element(
    "div",
    {},
    `Refused ≥ ${count(times)} ${times === 1 ? "time" : "times"} in the last 5 minutes, last at ${clock(last)}, by `,
    scoped(rule, limit),
  );

// `text` is the question as it is written, which is not worth asking again.
export const lately = ({ answer, takes }, { text, tenant = "" }, recent, onAsk) => {
  const reached = new Set(takes.map(({ rule }) => rule));
  const isReached = (entry) => reached.has(entry.rule) && entry.tenant === tenant;
  const found = recent.filter((entry) => entry.key === answer.key && (answer.allowed || !isReached(entry)));
  if (found.length === 0) return null;
  const line = (entry) => (isReached(entry) ? over(entry) : refusal(entry, text, onAsk));
  return element("div", { class: "note" }, ...found.slice(0, MOST).map(line));
};
