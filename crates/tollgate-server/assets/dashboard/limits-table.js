// Table of the limits that apply to an explained request, with their usage before and after it.
import { element } from "./dom.js";
import { count, duration, limitText, unitSuffix, usageText } from "./format.js";
import { createTable } from "./table.js";
import { ruleAndLimit } from "./text.js";
import { usageBar } from "./usage-bar.js";

const isTrial = ({ limit, mode }) => mode === "shadow" && limit.startsWith("next.");

// A limit that is not enforced is marked; undefined if it is enforced.
const modeText = (take) => {
  if (isTrial(take)) return "trial, not enforced";
  return take.mode === "shadow" ? "shadow, not enforced" : undefined;
};

const capacityOf = ({ numbers }) => numbers.burst ?? numbers.limit;

// Usage before and after the request: `2 → 3 of 10 used`, or `8 → 7 of 10 left`.
const changeText = (take) => {
  const [capacity, algorithm] = [capacityOf(take), take.algorithm];
  const textOf = ({ count: used, remaining }) => usageText({ algorithm, unit: take.unit, used, remaining, capacity });
  const [before, after] = [textOf(take.before), textOf(take.after)];
  return before === after ? before : `${before.split(" ", 1)[0]} → ${after}`;
};

const usageElement = (take) =>
  element(
    "span",
    { class: "usage" },
    usageBar(take.before.count, capacityOf(take), take.after.count),
    ` ${changeText(take)}`,
  );

const refusalText = (take) => {
  if (take.verdict === "deny") return `exceeded; retry in ${duration(take.retry_after_ms)}`;
  return capacityOf(take) === 0 ? "blocked" : "the cost exceeds the limit";
};

const resultElement = (take) => {
  if (take.verdict === "allow") return element("span", { class: "good" }, "allows");
  const text = refusalText(take);
  return element(
    "span",
    { class: take.mode === "enforce" ? "bad" : "warn" },
    take.mode === "enforce" ? text : `would refuse: ${text}`,
  );
};

const DISTRIBUTION_TEXT = { off: "counted on this node only", shadow: "compared with Redis" };

// Result of Redis under `distributed: shadow`.
const redisElement = ({ shared_store: redis, distributed }) => {
  if (!redis) {
    const text = DISTRIBUTION_TEXT[distributed];
    return text ? element("div", { class: "dim" }, text) : null;
  }
  const result = redis.verdict === "allow" ? "allows" : "would refuse";
  return element("div", { class: "dim" }, `Redis (comparison only): ${result}, ${count(redis.count)} used`);
};

// What this node has taken of the limit in advance.
const leasedText = ({ leased }) => (leased ? `${count(leased)} of the used quota leased by this node` : null);

const kindText = ({ numbers, algorithm, unit, cost }) =>
  [
    algorithm.replaceAll("_", " "),
    numbers.burst && numbers.burst !== numbers.limit ? `burst ${count(numbers.burst)}` : null,
    cost === 1 ? null : `cost ${count(cost)}${unitSuffix(unit)}`,
  ]
    .filter((part) => part !== null)
    .join(", ");

export const limitsTable = ({ takes }) => {
  const table = createTable({
    caption: "Limits",
    columns: ["Limit", "Usage", "Result"].map((name) => ({ name })),
    empty: "No limit applies.",
    keyOf: ({ key, limit }) => JSON.stringify([key, limit]),
    makeRow: (take) => ({
      cells: [
        element(
          "span",
          {},
          ruleAndLimit(take.rule, limitText({ ...take.numbers, unit: take.unit })),
          element("div", { class: "dim" }, kindText(take)),
          modeText(take) ? element("div", { class: "dim" }, modeText(take)) : null,
        ),
        element(
          "span",
          {},
          usageElement(take),
          leasedText(take) ? element("div", { class: "dim" }, leasedText(take)) : null,
        ),
        element("span", {}, resultElement(take), redisElement(take)),
      ],
    }),
  });
  table.show(takes);
  return table.root;
};
