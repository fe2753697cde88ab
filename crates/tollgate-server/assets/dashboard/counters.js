// Counters of keys with a given prefix; those of the exact key come first.
import { request } from "./api.js";
import { element } from "./dom.js";
import { count, limitText } from "./format.js";
import { createPagedList } from "./paged-list.js";
import { createTable } from "./table.js";
import { keyWithTenant, ruleAndLimit } from "./text.js";
import { usageBar } from "./usage-bar.js";

const makeRow = (counter) => {
  const usage = element("span", { class: "usage" });
  return {
    cells: [
      keyWithTenant(counter.key, counter.tenant),
      ruleAndLimit(counter.rule, counter.name, counter.node),
      limitText(counter),
      usage,
    ],
    update: ({ count: used, burst, limit }) =>
      usage.replaceChildren(usageBar(used, burst ?? limit), ` ${count(used)} of ${count(burst ?? limit)}`),
  };
};

const exactKeyFirst = (key) => (a, b) =>
  Number(b.key === key) - Number(a.key === key) || a.key.localeCompare(b.key) || a.rule.localeCompare(b.rule);

export const countersTable = (key, tenant) => {
  const table = createTable({
    caption: "Counters in use",
    columns: ["Key", "Rule and limit", "Rate", "Used"].map((name) => ({ name })),
    empty: "No counter is in use for this key.",
    keyOf: (counter) => JSON.stringify([counter.key, counter.tenant, counter.rule, counter.name, counter.node]),
    makeRow,
  });
  const list = createPagedList(table, async (cursor) => {
    const page = await request("GET", "/api/counters", { query: { prefix: key, tenant, limit: 20, cursor } });
    return { items: page.counters.sort(exactKeyFirst(key)), cursor: page.cursor };
  });
  list.reload();
  return list.root;
};
