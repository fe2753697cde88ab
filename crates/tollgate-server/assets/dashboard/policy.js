// The policy in force, and what is wrong with its file.
import { byId, element, fill } from "./dom.js";
import { createTable } from "./table.js";
import { said, sentence } from "./text.js";

const COLUMNS = ["Rule", "Mode", "Counts per", "Limits", "On trial", "Without Redis", "Shared"].map((name) => ({
  name,
}));

const LOSS = { local: "its share", allow: "allows", deny: "refuses" };
const SHARED = { on: "in Redis", shadow: "compared with Redis", off: "each node alone" };

const makeRow = (rule) => ({
  cells: [
    element("strong", {}, said(rule.rule)),
    rule.mode,
    said(rule.per.join(", ") || "everyone together"),
    element("code", {}, said(rule.limits.join(", ") || "none")),
    element("code", {}, said((rule.next ?? []).join(", ") || "–")),
    LOSS[rule.on_store_loss] ?? rule.on_store_loss,
    SHARED[rule.distributed] ?? rule.distributed,
  ],
});

const size = ({ rules, rules_total: total }) => {
  const told = `, ${total} ${total === 1 ? "rule" : "rules"} and the default`;
  return rules.length <= total ? `${told}; the first ${rules.length - 1} and the default are shown.` : `${told}.`;
};

const line = (policy) => [
  "Version ",
  element("code", {}, said(policy.version)),
  ...(policy.file ? [" from ", said(policy.file)] : [" without a file"]),
  size(policy),
];

export const createPolicy = () => {
  const table = createTable({
    caption: "Rules in force",
    columns: COLUMNS,
    empty: "No rules.",
    keyOf: (rule) => JSON.stringify(rule),
    make: makeRow,
  });
  byId("policy-rules").append(table.root);
  return {
    update: ({ policy }) => {
      if (!policy) return;
      fill(byId("policy-line"), [policy.version, policy.file, policy.rules_total], () => line(policy));
      const notes = [...(policy.error ? [`Not in force: ${policy.error}`] : []), ...policy.warnings];
      fill(byId("policy-notes"), notes, () => notes.map((note) => element("li", { class: "warn" }, sentence(note))));
      table.show(policy.rules);
    },
  };
};
