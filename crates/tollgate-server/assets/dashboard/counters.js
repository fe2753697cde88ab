// Live counters of keys that begin so, the exact one first.
import { ask } from "./api.js";
import { bar } from "./bar.js";
import { element } from "./dom.js";
import { count, limitOf } from "./format.js";
import { createPages } from "./pages.js";
import { createTable } from "./table.js";
import { keyed, scoped } from "./text.js";

const makeRow = (counter) => {
  const used = element("span", { class: "used" });
  return {
    cells: [keyed(counter.key, counter.tenant), scoped(counter.rule, counter.name, counter.node), limitOf(counter), used],
    update: ({ count: taken, burst, limit }) =>
      used.replaceChildren(bar(taken, burst ?? limit), ` ${count(taken)} of ${count(burst ?? limit)}`),
  };
};

const exactFirst = (key) => (one, other) =>
  Number(other.key === key) - Number(one.key === key) ||
  one.key.localeCompare(other.key) ||
  one.rule.localeCompare(other.rule);

export const countersOf = (key, tenant) => {
  const table = createTable({
    caption: "Counters in use",
    columns: ["Key", "Counted by", "Limit", "Used"].map((name) => ({ name })),
    empty: "Nothing is counted under this key now.",
    keyOf: (counter) => JSON.stringify([counter.key, counter.tenant, counter.rule, counter.name, counter.node]),
    make: makeRow,
  });
  const pages = createPages(table, async (cursor) => {
    const page = await ask("GET", "/api/counters", { query: { prefix: key, tenant, limit: 20, cursor } });
    return { items: page.counters.sort(exactFirst(key)), cursor: page.cursor };
  });
  pages.restart();
  return pages.root;
};
