// Table of the most refused keys.
import { button, byId, element, fill, setText } from "./dom.js";
import { ago, count } from "./format.js";
import { nodeNow } from "./node-time.js";
import { formatQuery } from "./query.js";
import { createTable } from "./table.js";
import { keyWithTenant, ruleAndLimit, shortText, visible } from "./text.js";

const COLUMNS = [
  { name: "Key" },
  { name: "Refused by", look: "tight" },
  { name: "Times", look: "number" },
  { name: "Last", look: "number" },
  { name: "Explain", hidden: true },
];

// Number of rows before "Show all" is pressed.
const FIRST_ROWS = 8;

// The query for a refused request: its recorded facts, otherwise its key.
export const queryOf = ({ key, tenant, facts }) => formatQuery(facts ?? { client: key }, tenant);

// Up to three facts other than the key.
const factsElement = ({ key, facts }) => {
  const others = Object.entries(facts ?? {})
    .filter(([, value]) => value !== key)
    .slice(0, 3);
  if (others.length === 0) return null;
  return element(
    "span",
    { class: "dim facts" },
    others.map(([name, value]) => element("span", {}, shortText(name), " ", shortText(value))),
  );
};

export const whyButton = (key, onClick) =>
  button("Why?", onClick, { class: "small", "aria-label": `Why is ${visible(key)} refused?` });

const rowMaker = (onWhy) => (first) => {
  let latest = first;
  const why = whyButton(first.key, () => onWhy(queryOf(latest)));
  const facts = element("span");
  const refusedBy = element("span");
  const times = element("span");
  const last = element("span");
  return {
    cells: [element("div", {}, keyWithTenant(first.key, first.tenant), facts), refusedBy, times, last, why],
    update: (entry) => {
      latest = entry;
      fill(facts, entry.facts, () => factsElement(entry));
      fill(refusedBy, [entry.rule, entry.limit], () => ruleAndLimit(entry.rule, entry.limit));
      setText(times, `≥ ${count(entry.count)}`);
      setText(last, ago(Math.max(0, nodeNow() - entry.last_at)));
    },
  };
};

export const createRefused = (onWhy) => {
  let showAll = false;
  let latest = [];
  const table = createTable({
    steady: true,
    caption: "Most refused keys in the last 5 minutes",
    columns: COLUMNS,
    empty: "No request was refused in the last 5 minutes.",
    keyOf: ({ key, tenant, rule, limit }) => JSON.stringify([key, tenant, rule, limit]),
    makeRow: rowMaker(onWhy),
  });
  const show = () => {
    table.show(showAll ? latest : latest.slice(0, FIRST_ROWS));
    toggle.hidden = latest.length <= FIRST_ROWS;
    setText(toggle, showAll ? `Show the first ${FIRST_ROWS}` : `Show all ${latest.length}`);
  };
  const toggle = button(
    "",
    () => {
      showAll = !showAll;
      show();
    },
    { class: "small" },
  );
  byId("refused-table").append(table.root, toggle);
  return {
    update: ({ frame }) => {
      if (!frame) return;
      latest = frame.refused;
      show();
    },
  };
};
