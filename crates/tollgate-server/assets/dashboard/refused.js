// Who is refused most.
import { button, byId, element, fill, setText } from "./dom.js";
import { ago, count } from "./format.js";
import { writeQuestion } from "./question.js";
import { createTable } from "./table.js";
import { keyed, said, scoped, visible } from "./text.js";
import { nodeNow } from "./time.js";

const COLUMNS = [
  { name: "Key" },
  { name: "Refused by", look: "tight" },
  { name: "Times", look: "number" },
  { name: "Last", look: "number" },
  { name: "Ask", hidden: true },
];

// So many are shown until more are asked for.
const FIRST = 8;

// What to ask about somebody who was refused: the facts of the request where they are known, else its key.
export const questionOf = ({ key, tenant, facts }) => writeQuestion(facts ?? { client: key }, tenant);

// The other facts of the request, in short.
const factsOf = ({ key, facts }) => {
  const others = Object.entries(facts ?? {})
    .filter(([, value]) => value !== key)
    .slice(0, 3);
  if (others.length === 0) return null;
  return element(
    "span",
    { class: "dim facts" },
    others.map(([name, value]) => element("span", {}, said(name), " ", said(value))),
  );
};

export const whyButton = (key, act) =>
  button("Why?", act, { class: "small", "aria-label": `Why is ${visible(key)} refused?` });

const makeRow = (onWhy) => (first) => {
  let latest = first;
  const why = whyButton(first.key, () => onWhy(questionOf(latest)));
  const facts = element("span");
  const by = element("span");
  const times = element("span");
  const last = element("span");
  return {
    cells: [element("div", {}, keyed(first.key, first.tenant), facts), by, times, last, why],
    update: (entry) => {
      latest = entry;
      fill(facts, entry.facts, () => factsOf(entry));
      fill(by, [entry.rule, entry.limit], () => scoped(entry.rule, entry.limit));
      setText(times, `≥ ${count(entry.count)}`);
      setText(last, ago(Math.max(0, nodeNow() - entry.last_at)));
    },
  };
};

export const createRefused = (onWhy) => {
  let whole = false;
  let latest = [];
  const table = createTable({
    steady: true,
    caption: "Keys refused most in the last five minutes",
    columns: COLUMNS,
    empty: "Nobody was refused in the last five minutes.",
    keyOf: ({ key, tenant, rule, limit }) => JSON.stringify([key, tenant, rule, limit]),
    make: makeRow(onWhy),
  });
  const show = () => {
    table.show(whole ? latest : latest.slice(0, FIRST));
    more.hidden = latest.length <= FIRST;
    setText(more, whole ? "Only the first" : `All ${latest.length}`);
  };
  const more = button(
    "",
    () => {
      whole = !whole;
      show();
    },
    { class: "small" },
  );
  byId("refused-table").append(table.root, more);
  return {
    update: ({ frame }) => {
      if (!frame) return;
      latest = frame.refused;
      show();
    },
  };
};
