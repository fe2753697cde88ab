// Who changed what.
import { ask } from "./api.js";
import { byId, element } from "./dom.js";
import { moment } from "./format.js";
import { createPages } from "./pages.js";
import { describeLimits } from "./rates.js";
import { createTable } from "./table.js";
import { keyed, said, sentence } from "./text.js";

const COLUMNS = ["When", "What", "Whose", "From → to", "By", "Because"].map((name) => ({ name }));

const WHAT = {
  "override.set": "override set",
  "override.remove": "override removed",
  "client.reset": "reset",
  "policy.reload": "policy reloaded",
};

const side = (value) => {
  if (value === null) return "–";
  return typeof value === "string" ? value : describeLimits(value.limits);
};

const makeRow = (entry) => ({
  cells: [
    element("span", { title: entry.at }, moment(entry.at)),
    WHAT[entry.action] ?? entry.action,
    entry.client === null ? "–" : keyed(entry.client, entry.tenant),
    entry.old === null && entry.new === null
      ? "–"
      : element("span", {}, sentence(side(entry.old)), " → ", sentence(side(entry.new))),
    element(
      "span",
      {},
      said(entry.author || "–"),
      element("div", { class: "dim" }, said(`${entry.peer}, at ${entry.node}`)),
    ),
    sentence(entry.reason || "–"),
  ],
});

export const createAudit = () => {
  const table = createTable({
    caption: "Audit, newest first",
    columns: COLUMNS,
    empty: "Nothing was changed yet.",
    keyOf: (entry) => JSON.stringify(entry),
    make: makeRow,
  });
  const pages = createPages(table, async (cursor) => {
    const page = await ask("GET", "/admin/audit", { query: { limit: 20, cursor } });
    return { items: page.audit, cursor: page.cursor };
  });
  byId("audit-list").append(pages.root);
  return pages;
};
