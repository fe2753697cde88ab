// Who asks about a key may mean a request that was refused lately, by a rule that what is asked does not reach.
import { button, element } from "./dom.js";
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

// `asked` is the question as it is written, which is not worth asking again.
export const lately = ({ answer, takes }, asked, recent, onAsk) => {
  const reached = new Set(takes.map(({ rule }) => rule));
  const found = recent.filter(({ key, rule }) => key === answer.key && !reached.has(rule)).slice(0, MOST);
  if (found.length === 0) return null;
  return element("div", { class: "note" }, ...found.map((entry) => refusal(entry, asked, onAsk)));
};
