// Everything about one client (/api/clients/{id}): recent refusals, counters and overrides in every rule.
import { button, element } from "./dom.js";
import { overrideText } from "./explanation.js";
import { ago, count, duration, limitText, usageText } from "./format.js";
import { nodeNow } from "./node-time.js";
import { formatQuery } from "./query.js";
import { createTable } from "./table.js";
import { ruleAndLimit, shortText } from "./text.js";
import { usageBar } from "./usage-bar.js";

const capacityOf = ({ burst, limit }) => burst ?? limit;

const usageOf = (counter) =>
  usageText({ ...counter, used: counter.count, capacity: capacityOf(counter) });

// The enforced counter without quota for one more request that is available last; undefined if every counter has
// quota. A block of a rule does not count, because it may not match the requests of this client.
export const exhaustedCounter = ({ counters }) =>
  counters
    .filter((counter) => counter.mode === "enforce" && counter.remaining === 0 && capacityOf(counter) > 0)
    .sort((a, b) => b.reset_after_ms - a.reset_after_ms)[0];

// The query of a refused request: its facts, or the key and the limit of an inline limit; null if neither is known.
export const refusedQuery = ({ key, rule, limit, facts }, { tenant, counters }) => {
  const inTenant = tenant ? { tenant } : {};
  if (facts) {
    const { tenant: _, ...others } = facts;
    return { facts: others, ...inTenant };
  }
  const counter = counters.find((entry) => entry.rule === rule && entry.name === limit && entry.key === key);
  if (rule !== "inline" || !counter) return null;
  const { name, algorithm, limit: number, window_ms: window, burst, unit } = counter;
  const spec = { name, algorithm, limit: number, window_ms: window ?? undefined, burst };
  // A limit in another unit refuses only requests that cost something of it.
  if (unit !== "requests") return { key, limits: [{ ...spec, unit }], costs: { [unit]: 1 }, ...inTenant };
  return { key, limits: [spec], ...inTenant };
};

const refusalLimit = ({ limit_text: text, rule, limit, key }, counters) => {
  const counter = counters.find((entry) => entry.rule === rule && entry.name === limit && entry.key === key);
  return text ?? (counter ? limitText(counter) : limit);
};

export const refusalSummary = (refusal, { counters }) => [
  `refused ≥ ${count(refusal.count)} ${refusal.count === 1 ? "time" : "times"} in the last 5 minutes, last ` +
    `${ago(Math.max(0, nodeNow() - refusal.last_at))}, by rule `,
  element("strong", {}, shortText(refusal.rule)),
  ", limit ",
  element("code", {}, shortText(refusalLimit(refusal, counters))),
];

// Table of recent refusals. `onExplain` receives the text of the query of a refused request.
export const refusalsTable = (view, onExplain) => {
  const table = createTable({
    caption: "Recent refusals of this client",
    columns: [
      { name: "Refused by" },
      { name: "Times", look: "number" },
      { name: "Last", look: "number" },
      { name: "Explain", hidden: true },
    ],
    empty: "Not refused in the last 5 minutes.",
    keyOf: ({ key, rule, limit }) => JSON.stringify([key, rule, limit]),
    makeRow: (refusal) => ({
      cells: [
        element(
          "span",
          {},
          ruleAndLimit(refusal.rule, refusalLimit(refusal, view.counters)),
          refusal.key === view.client ? null : element("span", { class: "dim" }, " key ", shortText(refusal.key)),
        ),
        `≥ ${count(refusal.count)}`,
        ago(Math.max(0, nodeNow() - refusal.last_at)),
        refusal.facts
          ? button("Explain", () => onExplain(formatQuery(refusal.facts, view.tenant)), {
              class: "small",
              "aria-label": `Explain the request that rule ${refusal.rule} refused`,
            })
          : "",
      ],
    }),
  });
  table.show(view.refusals);
  return table.root;
};

const counterRow = (view) => (counter) => ({
  cells: [
    element(
      "span",
      {},
      ruleAndLimit(counter.rule, counter.limit_text, counter.node),
      counter.mode === "shadow" ? element("span", { class: "tag" }, "not enforced") : null,
      counter.overridden ? element("span", { class: "tag" }, "override") : null,
      counter.key === view.client ? null : element("div", { class: "dim" }, "key ", shortText(counter.key)),
    ),
    element("span", { class: "usage" }, usageBar(counter.count, capacityOf(counter)), ` ${usageOf(counter)}`),
    counter.reset_after_ms > 0 ? duration(counter.reset_after_ms) : "–",
  ],
});

const unusedText = (unused) =>
  unused === 1 ? "1 more limit applies to this client and is unused." : `${count(unused)} more limits apply to this client and are unused.`;

// Table of the counters that are in use; the others are only counted.
export const countersTable = (view) => {
  const used = view.counters.filter((counter) => counter.count > 0 || counter.overridden);
  const table = createTable({
    caption: "Counters of this client",
    columns: [
      { name: "Rule and limit", sort: ({ rule }) => rule },
      { name: "Usage", sort: (counter) => counter.count / Math.max(1, capacityOf(counter)) },
      { name: "Full quota in", look: "number", sort: (counter) => counter.reset_after_ms },
    ],
    empty: "No counter of this client is in use.",
    keyOf: ({ key, rule, name, node }) => JSON.stringify([key, rule, name, node]),
    makeRow: counterRow(view),
  });
  table.show(used);
  const unused = view.counters.length - used.length;
  return element(
    "div",
    {},
    table.root,
    unused > 0 ? element("p", { class: "dim" }, unusedText(unused)) : null,
    view.complete ? null : element("p", { class: "warn" }, "Not all counters and nodes could be read; some may be missing."),
  );
};

export const overrideNotes = ({ overrides }) =>
  overrides.map((override) => element("p", { class: "note" }, "Override: ", overrideText(override), "."));
