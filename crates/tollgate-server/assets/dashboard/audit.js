// Audit log.
import { request } from "./api.js";
import { byId, element } from "./dom.js";
import { moment } from "./format.js";
import { createPagedList } from "./paged-list.js";
import { describeLimits } from "./rates.js";
import { createTable } from "./table.js";
import { keyWithTenant, longText, shortText } from "./text.js";

const COLUMNS = ["Time", "Action", "Client", "Old → new", "Author", "Reason"].map((name) => ({ name }));

const ACTIONS = {
  "override.set": "override set",
  "override.remove": "override removed",
  "client.reset": "usage reset",
  "policy.reload": "policy reloaded",
};

const valueText = (value) => {
  if (value === null) return "–";
  return typeof value === "string" ? value : describeLimits(value.limits);
};

const makeRow = (entry) => ({
  cells: [
    element("span", { title: entry.at }, moment(entry.at)),
    ACTIONS[entry.action] ?? entry.action,
    entry.client === null ? "–" : keyWithTenant(entry.client, entry.tenant),
    entry.old === null && entry.new === null
      ? "–"
      : element("span", {}, longText(valueText(entry.old)), " → ", longText(valueText(entry.new))),
    element(
      "span",
      {},
      shortText(entry.author || "–"),
      element("div", { class: "dim" }, shortText(`from ${entry.peer} on ${entry.node}`)),
    ),
    longText(entry.reason || "–"),
  ],
});

export const createAudit = () => {
  const table = createTable({
    caption: "Audit log, newest first",
    columns: COLUMNS,
    empty: "No changes are recorded.",
    keyOf: (entry) => JSON.stringify(entry),
    makeRow,
  });
  const list = createPagedList(table, async (cursor) => {
    const page = await request("GET", "/admin/audit", { query: { limit: 20, cursor } });
    return { items: page.audit, cursor: page.cursor };
  });
  byId("audit-list").append(list.root);
  return list;
};
