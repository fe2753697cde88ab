// Limits of clients' own, and who changed what; for administrators.
import { ask, clientPath } from "./api.js";
import { createAudit } from "./audit.js";
import { confirmButton } from "./confirm.js";
import { button, byId, element } from "./dom.js";
import { moment } from "./format.js";
import { createOverrideForm } from "./override-form.js";
import { createPages } from "./pages.js";
import { describeLimits } from "./rates.js";
import { author } from "./session.js";
import { createTable } from "./table.js";
import { keyed, said, sentence } from "./text.js";

const COLUMNS = ["Client", "Limits", "In", "Until", "By", "Because"].map((name) => ({ name }));

const where = ({ rule, applies_to: rules, problem }) =>
  element(
    "span",
    {},
    rule ? element("strong", {}, said(rule)) : said(rules.join(", ") || "no rule"),
    problem ? element("div", { class: "warn" }, sentence(problem)) : null,
  );

const makeRow =
  ({ edit, remove }) =>
  (override) => ({
    cells: [
      keyed(override.client, override.tenant),
      element("code", {}, describeLimits(override.limits)),
      where(override),
      override.expires_at ? moment(override.expires_at) : "it is removed",
      element("span", {}, said(override.author || "–"), element("div", { class: "dim" }, moment(override.set_at))),
      sentence(override.reason || "–"),
      element(
        "div",
        { class: "acts" },
        button("Edit", () => edit(override), { class: "small" }),
        confirmButton("Remove", "Back to the limits of everyone?", "Yes, remove", () => remove(override)),
      ),
    ],
  });

const NO_TOKEN =
  "Without an admin token nothing can be changed: start the service with TOLLGATE_ADMIN_TOKEN (OPERATING.md).";
const LOG_IN = "Log in with the admin token to give clients limits of their own, and to see who changed what.";

export const createOverrides = () => {
  const audit = createAudit();
  const refresh = () => Promise.all([pages.restart(), audit.restart()]);
  const form = createOverrideForm(refresh);

  const remove = async ({ client, tenant }) => {
    await ask("DELETE", clientPath(client, "limits"), { query: { tenant, author: author() } });
    form.hush();
    await refresh();
    byId("overrides-prefix").focus();
  };

  const table = createTable({
    caption: "Overrides",
    columns: [...COLUMNS, { name: "Change", hidden: true }],
    empty: "No client has limits of its own.",
    keyOf: (override) => JSON.stringify(override),
    make: makeRow({ edit: form.fillIn, remove }),
  });
  const pages = createPages(table, async (cursor) => {
    const page = await ask("GET", "/admin/overrides", {
      query: { prefix: byId("overrides-prefix").value, limit: 50, cursor },
    });
    return { items: page.overrides, cursor: page.cursor };
  });
  byId("overrides-list").append(pages.root);
  byId("overrides-filter").addEventListener("submit", (event) => {
    event.preventDefault();
    pages.restart();
  });

  return {
    update: form.update,
    edit: form.fillIn,
    admit: (session) => {
      byId("overrides-how").textContent = session.administered ? LOG_IN : NO_TOKEN;
      byId("overrides-how").hidden = session.admin;
      byId("overrides-admin").hidden = !session.admin;
      if (session.admin) refresh();
      else for (const list of [pages, audit]) list.forget();
    },
  };
};
