// Preview of an override: the limits that it replaces and those that stay, or the rules to choose from. Nothing is
// changed before the confirmation.
import { button, element } from "./dom.js";
import { createTable } from "./table.js";
import { longText, shortText } from "./text.js";

const limitElement = (text, burst) => element("code", {}, burst ? `${text} burst ${burst}` : text);

const limitOrNone = (text, burst, none) =>
  text === null ? element("span", { class: "dim" }, none) : limitElement(text, burst);

const changesTable = (changes) => {
  const table = createTable({
    caption: "Limits before and after the override",
    columns: ["Rule", "Now", "With the override"].map((name) => ({ name })),
    empty: "No limit changes.",
    keyOf: ({ rule, limit_name: name, after }) => JSON.stringify([rule, name, after]),
    makeRow: ({ rule, before, after, burst_before: burstBefore, burst_after: burstAfter }) => ({
      cells: [
        element("strong", {}, shortText(rule)),
        limitOrNone(before, burstBefore, "none"),
        element("span", {}, "→ ", limitOrNone(after, burstAfter, "removed")),
      ],
    }),
  });
  table.show(changes);
  return table.root;
};

const keptLine = (keeps) =>
  keeps.length === 0
    ? null
    : element(
        "p",
        {},
        "Stay: ",
        keeps.flatMap(({ rule, limit, burst }, at) => [at > 0 ? ", " : "", shortText(rule), " ", limitElement(limit, burst)]),
      );

const lostBlocks = (changes) => changes.filter(({ before, after }) => before === "blocked" && after !== "blocked");

// `result` is the response of a dry run.
export const previewElements = (result, { isFresh, onConfirm, onCancel }) => {
  const { replaces = [], keeps = [], problem } = result;
  const unblocked = lostBlocks(replaces).map(({ rule }) => rule);
  const confirm = button("Set override", onConfirm);
  return [
    element("h3", {}, "Nothing is changed yet. This override would set:"),
    changesTable(replaces),
    keptLine(keeps),
    isFresh ? element("p", {}, "The client's counters of this rule would be reset.") : null,
    unblocked.length > 0 ? element("p", { class: "problem" }, `Lifts the block of ${unblocked.join(", ")}.`) : null,
    problem ? element("p", { class: "warn" }, longText(problem)) : null,
    element("div", { class: "actions" }, confirm, " ", button("Cancel", onCancel, { class: "quiet" })),
  ].filter((part) => part !== null);
};

const candidateButton = ({ rule, limits, blocks }, onChoose) =>
  element(
    "li",
    {},
    button(rule, () => onChoose(rule), { class: "small" }),
    " ",
    element("code", {}, limits.join(", ")),
    blocks ? element("span", { class: "tag warn" }, "blocked") : null,
  );

// Rules to choose from, if an override without a rule could mean several.
export const candidateElements = (candidates, { onChoose, onCancel }) => [
  element("h3", {}, "Several rules count this client. Choose the one to change:"),
  element(
    "ul",
    { class: "candidates" },
    candidates.map((candidate) => candidateButton(candidate, onChoose)),
  ),
  button("Cancel", onCancel, { class: "quiet" }),
];
