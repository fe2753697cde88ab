// Table of the limits that apply to an explained request, with their usage before and after it.
import { element } from "./dom.js";
import { count, duration, limitText } from "./format.js";
import { createTable } from "./table.js";
import { ruleAndLimit } from "./text.js";
import { usageBar } from "./usage-bar.js";

const isTrial = ({ limit, mode }) => mode === "shadow" && limit.startsWith("next.");

const modeText = (take) => {
  if (isTrial(take)) return "trial, not enforced";
  return take.mode === "shadow" ? "shadow, not enforced" : "enforced";
};

const capacityOf = ({ numbers }) => numbers.burst ?? numbers.limit;

const usageElement = (take) => {
  const { before, after } = take;
  const [used, usedAfter] = [count(before.count), count(after.count)];
  const change = used === usedAfter ? used : `${used} → ${usedAfter}`;
  return element(
    "span",
    { class: "usage" },
    usageBar(before.count, capacityOf(take), after.count),
    ` ${change} of ${count(capacityOf(take))}`,
  );
};

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

const kindText = ({ numbers, algorithm, cost }) => {
  const kind = `${limitText(numbers)}, ${algorithm.replaceAll("_", " ")}`;
  return cost === 1 ? kind : `${kind}, cost ${count(cost)}`;
};

export const limitsTable = ({ takes }) => {
  const table = createTable({
    caption: "Limits",
    columns: ["Limit", "Used", "Result", "Mode"].map((name) => ({ name })),
    empty: "No limit applies.",
    keyOf: ({ key, limit }) => JSON.stringify([key, limit]),
    makeRow: (take) => ({
      cells: [
        element("span", {}, ruleAndLimit(take.rule, take.limit), element("div", { class: "dim" }, kindText(take))),
        usageElement(take),
        element("span", {}, resultElement(take), redisElement(take)),
        modeText(take),
      ],
    }),
  });
  table.show(takes);
  return table.root;
};
