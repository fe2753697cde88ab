// Active policy, and errors and warnings of its file.
import { byId, element, fill } from "./dom.js";
import { createTable } from "./table.js";
import { longText, shortText } from "./text.js";

const COLUMNS = [
  { name: "Rule", sort: ({ rule }) => rule },
  { name: "Match" },
  ...["Mode", "Keyed per", "Limits", "Trial limits", "Without Redis", "Counted"].map((name) => ({ name })),
];

const STORE_LOSS_TEXT = { local: "share of the limit", allow: "allow", deny: "refuse" };
const DISTRIBUTION_TEXT = { on: "in Redis", shadow: "per node, compared with Redis", off: "per node" };

const makeRow = (rule) => ({
  cells: [
    element("strong", {}, shortText(rule.rule)),
    element(
      "span",
      {},
      longText(rule.match || (rule.match === undefined ? "–" : "all requests")),
      rule.continues ? element("span", { class: "tag" }, "continues") : null,
    ),
    rule.mode,
    shortText(rule.per.join(", ") || "all requests together"),
    element("code", {}, shortText(rule.limits.join(", ") || "none")),
    element("code", {}, shortText((rule.next ?? []).join(", ") || "–")),
    STORE_LOSS_TEXT[rule.on_store_loss] ?? rule.on_store_loss,
    DISTRIBUTION_TEXT[rule.distributed] ?? rule.distributed,
  ],
});

const sizeText = ({ rules, rules_total: total }) => {
  const text = `, ${total} ${total === 1 ? "rule" : "rules"} and the default`;
  return rules.length <= total ? `${text}; the first ${rules.length - 1} and the default are shown.` : `${text}.`;
};

const summary = (policy) => [
  "Version ",
  element("code", {}, shortText(policy.version)),
  ...(policy.file ? [" from ", shortText(policy.file)] : [" without a file"]),
  sizeText(policy),
];

export const createPolicy = () => {
  const table = createTable({
    caption: "Active rules",
    columns: COLUMNS,
    empty: "No rules.",
    keyOf: (rule) => JSON.stringify(rule),
    makeRow,
  });
  byId("policy-rules").append(table.root);
  return {
    update: ({ policy }) => {
      if (!policy) return;
      fill(byId("policy-line"), [policy.version, policy.file, policy.rules_total], () => summary(policy));
      const errors = policy.error ? [`The policy file could not be loaded: ${policy.error}`] : [];
      const notes = [...errors, ...policy.warnings];
      fill(byId("policy-notes"), notes, () => notes.map((note) => element("li", { class: "warn" }, longText(note))));
      table.show(policy.rules);
    },
  };
};
