// Table of the most refused keys.
import { button, byId, element, fill, setText } from "./dom.js";
import { ago, count, rate } from "./format.js";
import { nodeNow } from "./node-time.js";
import { formatQuery } from "./query.js";
import { createTable } from "./table.js";
import { keyWithTenant, ruleAndLimit, visible } from "./text.js";

const COLUMNS = [
  { name: "Key", look: "wide", sort: ({ key }) => key, total: (entries) => `${count(entries.length)} keys` },
  { name: "Refused by", look: "tight", sort: ({ rule }) => rule },
  { name: "Now/s", look: "number", sort: ({ rate: now }) => now ?? 0, total: (entries) => rate(sum(entries, "rate")) },
  { name: "Times", look: "number", sort: ({ count: times }) => times, total: (entries) => `≥ ${count(sum(entries, "count"))}` },
  { name: "Last", look: "number", sort: ({ last_at: last }) => last },
  { name: "Explain", hidden: true },
];

const sum = (entries, name) => entries.reduce((total, entry) => total + (entry[name] ?? 0), 0);

// Number of rows before "Show all" is pressed. A phone shows fewer, so that "Why?" stays in view.
const isNarrow = matchMedia("(max-width: 44rem)");
const firstRows = () => (isNarrow.matches ? 3 : 7);

// The query for a refused request: its recorded facts, otherwise its key.
export const queryOf = ({ key, tenant, facts }) => formatQuery(facts ?? { client: key }, tenant);

// The route of the refused request and its facts other than the key, in one line.
const factsElement = ({ key, facts }) => {
  const { method, path, ...others } = facts ?? {};
  const route = [method, path].filter(Boolean).join(" ");
  const named = Object.entries(others).filter(([, value]) => value !== key);
  const all = [route, ...named.map(([name, value]) => `${name} ${value}`)].filter((text) => text !== "").join(" · ");
  return all === "" ? null : element("bdi", { class: "dim facts", dir: "auto", title: visible(all) }, visible(all));
};

export const whyButton = (key, onClick) =>
  button("Why?", onClick, { class: "small", "aria-label": `Why is ${visible(key)} refused?` });

const overrideTag = () => element("span", { class: "tag", title: "An override sets the limits of this client" }, "override");

const rowMaker = (onWhy) => (first) => {
  let latest = first;
  const why = whyButton(first.key, () => onWhy(queryOf(latest)));
  const facts = element("span", { class: "rest" });
  const refusedBy = element("span");
  const [now, times, last, tags] = [0, 1, 2, 3].map(() => element("span"));
  return {
    cells: [
      element("div", { class: "oneline" }, keyWithTenant(first.key, first.tenant), tags, facts),
      refusedBy,
      now,
      times,
      last,
      why,
    ],
    update: (entry) => {
      latest = entry;
      fill(facts, entry.facts, () => factsElement(entry));
      fill(tags, entry.overridden ?? false, (overridden) => (overridden ? overrideTag() : null));
      fill(refusedBy, [entry.rule, entry.limit_text ?? entry.limit], ([rule, limit]) => ruleAndLimit(rule, limit));
      setText(now, rate(entry.rate));
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
    const rows = firstRows();
    table.show(showAll ? latest : latest.slice(0, rows));
    toggle.hidden = latest.length <= rows;
    setText(toggle, showAll ? `Show the first ${rows}` : `Show all ${latest.length}`);
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
      setText(byId("refused-rate"), `${rate(frame.now.refused)}/s now`);
      show();
    },
  };
};
