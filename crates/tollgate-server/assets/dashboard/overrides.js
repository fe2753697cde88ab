// Overrides panel and audit log, for administrators.
import { clientPath, request } from "./api.js";
import { createAudit } from "./audit.js";
import { confirmButton } from "./confirm.js";
import { button, byId, element } from "./dom.js";
import { count, moment } from "./format.js";
import { createOverrideForm } from "./override-form.js";
import { createPagedList } from "./paged-list.js";
import { describeLimits } from "./rates.js";
import { author } from "./session.js";
import { createTable } from "./table.js";
import { keyWithTenant, longText, shortText } from "./text.js";

const COLUMNS = [
  { name: "Client", sort: ({ client }) => client, total: (overrides) => `${count(overrides.length)} overrides` },
  { name: "Limits" },
  { name: "Rule", sort: (override) => override.rule ?? override.applies_to.join(", ") },
  { name: "Expires", sort: ({ expires_at: expiry }) => (expiry ? Date.parse(expiry) : Infinity) },
  { name: "Author", sort: (override) => override.author ?? "" },
  { name: "Reason" },
];

const rulesElement = ({ rule, applies_to: rules, problem }) =>
  element(
    "span",
    {},
    rule ? element("strong", {}, shortText(rule)) : shortText(rules.join(", ") || "no rule"),
    problem ? element("div", { class: "warn" }, longText(problem)) : null,
  );

const rowMaker =
  ({ edit, remove }) =>
  (override) => ({
    cells: [
      keyWithTenant(override.client, override.tenant),
      element("code", {}, describeLimits(override.limits)),
      rulesElement(override),
      override.expires_at ? moment(override.expires_at) : "never",
      element(
        "span",
        {},
        shortText(override.author || "–"),
        element("div", { class: "dim" }, moment(override.set_at)),
      ),
      longText(override.reason || "–"),
      element(
        "div",
        { class: "actions" },
        button("Edit", () => edit(override), { class: "small" }),
        confirmButton("Remove", "Remove it? Policy limits will apply.", "Yes, remove", () => remove(override)),
      ),
    ],
  });

const NO_ADMIN_TOKEN = "Changes are disabled: start the service with TOLLGATE_ADMIN_TOKEN (see docs/OPERATING.md).";
const LOGIN_REQUIRED = "Log in with the admin token to set overrides and to read the audit log.";

export const createOverrides = () => {
  const audit = createAudit();
  const refresh = () => Promise.all([list.reload(), audit.reload()]);
  const form = createOverrideForm(refresh);

  const remove = async ({ client, tenant, rule }) => {
    await request("DELETE", clientPath(client, "limits"), { query: { tenant, rule, author: author() } });
    form.clearStatus();
    await refresh();
    byId("overrides-prefix").focus();
  };

  const table = createTable({
    caption: "Overrides",
    columns: [...COLUMNS, { name: "Change", hidden: true }],
    empty: "No overrides.",
    keyOf: (override) => JSON.stringify(override),
    makeRow: rowMaker({ edit: form.edit, remove }),
  });
  const list = createPagedList(table, async (cursor) => {
    const page = await request("GET", "/admin/overrides", {
      query: { prefix: byId("overrides-prefix").value, limit: 50, cursor },
    });
    return { items: page.overrides, cursor: page.cursor };
  });
  byId("overrides-list").append(list.root);
  byId("overrides-filter").addEventListener("submit", (event) => {
    event.preventDefault();
    list.reload();
  });

  return {
    update: form.update,
    edit: form.edit,
    applySession: (session) => {
      byId("overrides-hint").textContent = session.administered ? LOGIN_REQUIRED : NO_ADMIN_TOKEN;
      byId("overrides-hint").hidden = session.admin;
      byId("overrides-admin").hidden = !session.admin;
      if (session.admin) refresh();
      else for (const each of [list, audit]) each.clear();
    },
  };
};
