// The limits that a request takes from, before and after.
import { bar } from "./bar.js";
import { element } from "./dom.js";
import { count, duration, limitOf } from "./format.js";
import { createTable } from "./table.js";
import { scoped } from "./text.js";

const isTrial = ({ limit, mode }) => mode === "shadow" && limit.startsWith("next.");

const modeOf = (take) => {
  if (isTrial(take)) return "trial: never refuses";
  return take.mode === "shadow" ? "shadow: never refuses" : "enforced";
};

const capacity = ({ numbers }) => numbers.burst ?? numbers.limit;

const figures = (take) => {
  const { before, after } = take;
  const [used, then] = [count(before.count), count(after.count)];
  const change = used === then ? used : `${used} → ${then}`;
  return element(
    "span",
    { class: "used" },
    bar(before.count, capacity(take), after.count),
    ` ${change} of ${count(capacity(take))}`,
  );
};

const verdictOf = (take) => {
  if (take.verdict === "allow") return element("span", { class: "good" }, "has room");
  const text = take.verdict === "never" ? "never has room" : `full; room in ${duration(take.retry_after_ms)}`;
  return element(
    "span",
    { class: take.mode === "enforce" ? "bad" : "warn" },
    take.mode === "enforce" ? text : `would refuse: ${text}`,
  );
};

const besides = ({ beside, distributed }) => {
  if (!beside)
    return distributed === "on"
      ? null
      : element("div", { class: "dim" }, distributed === "off" ? "counted by this node alone" : "compared with Redis");
  const word = beside.verdict === "allow" ? "has room" : "would refuse";
  return element("div", { class: "dim" }, `Redis, only compared: ${word}, ${count(beside.count)} used`);
};

const kindOf = ({ numbers, algorithm, cost }) => {
  const kind = `${limitOf(numbers)}, ${algorithm.replaceAll("_", " ")}`;
  return cost === 1 ? kind : `${kind}, takes ${count(cost)}`;
};

export const takesTable = ({ takes }) => {
  const table = createTable({
    caption: "Limits it takes from",
    columns: ["Limit", "Used", "Says", "Mode"].map((name) => ({ name })),
    empty: "It takes from no limit.",
    keyOf: ({ key, limit }) => JSON.stringify([key, limit]),
    make: (take) => ({
      cells: [
        element("span", {}, scoped(take.rule, take.limit), element("div", { class: "dim" }, kindOf(take))),
        figures(take),
        element("span", {}, verdictOf(take), besides(take)),
        modeOf(take),
      ],
    }),
  });
  table.show(takes);
  return table.root;
};
