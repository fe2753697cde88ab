// Refusals by rule: a chart of the rules that refused most, and a table of all rules that refused in the time range.
import { createChart } from "./chart.js";
import { byId, element, fill, setText } from "./dom.js";
import { axis, count, percent, rate } from "./format.js";
import { OTHER_RULES, sumByRule } from "./history.js";
import { createTable } from "./table.js";
import { shortText, visible } from "./text.js";

// Rules with a series of their own in the chart.
const MAX_SERIES = 5;
const REFUSED = 1;
// Seconds over which the current rate is averaged.
const RATE_SECONDS = 5;

const OTHERS = "other rules";

const refusedOf = (point, rule) => point.rules?.[rule]?.[REFUSED] ?? 0;

const sum = (values) => values.reduce((total, value) => total + value, 0);

// Current refusals per second of each rule, from the newest points of the live stream.
const currentRates = (live) => {
  const latest = live.slice(-RATE_SECONDS);
  const rates = new Map();
  for (const point of latest)
    for (const rule of Object.keys(point.rules ?? {}))
      rates.set(rule, (rates.get(rule) ?? 0) + refusedOf(point, rule) / latest.length);
  return rates;
};

// Rules of the chart. A rule keeps its colour while it is one of them.
const createPalette = () => {
  let slots = Array(MAX_SERIES).fill(null);
  return (rules) => {
    const top = rules.filter(({ rule }) => rule !== OTHER_RULES).slice(0, MAX_SERIES).map(({ rule }) => rule);
    slots = slots.map((rule) => (top.includes(rule) ? rule : null));
    for (const rule of top) if (!slots.includes(rule)) slots[slots.indexOf(null)] = rule;
    return slots;
  };
};

const seriesOf = (slots) => {
  const named = slots
    .map((rule, slot) => ({ rule, colour: `c-rule-${slot + 1}` }))
    .filter(({ rule }) => rule !== null)
    .map(({ rule, colour }) => ({ name: rule, look: "area", colour, value: (point) => refusedOf(point, rule) }));
  const isOther = (rule) => !slots.includes(rule);
  const others = (point) => sum(Object.keys(point.rules ?? {}).filter(isOther).map((rule) => refusedOf(point, rule)));
  return [...named, { name: OTHERS, look: "hatched", colour: "c-refused", value: others }];
};

const limitsElement = ({ limits = [], mode, bursts = [] }) => {
  const texts = limits.map((limit, at) => {
    const burst = bursts?.[at];
    return burst && !limit.startsWith(`${burst}/`) ? `${limit} burst ${count(burst)}` : limit;
  });
  return element("span", {}, element("code", {}, shortText(mode === "unlimited" ? "unlimited" : texts.join(", ") || "–")));
};

const COLUMNS = [
  { name: "Rule", look: "tight", sort: ({ rule }) => rule, total: () => "Total" },
  { name: "Match", look: "wide" },
  { name: "Limits", look: "tight" },
  { name: "Refused/s", look: "number", sort: ({ now }) => now, total: (rows) => rate(sum(rows.map(({ now }) => now))) },
  {
    name: "Refused",
    look: "number",
    sort: ({ refused }) => refused,
    total: (rows) => count(sum(rows.map(({ refused }) => refused))),
  },
  { name: "Share", look: "number" },
];

const makeRow = (first) => {
  const swatch = element("i", { class: "dot" });
  const [now, refused, share] = [0, 1, 2].map(() => element("span"));
  const match = element("span", { class: "dim" });
  const limits = element("span");
  const name = first.rule === OTHER_RULES ? OTHERS : first.rule;
  return {
    cells: [element("span", {}, swatch, element("strong", {}, shortText(name))), match, limits, now, refused, share],
    update: (row) => {
      swatch.className = `dot ${row.colour}`;
      const matchText = row.detail?.match === "" ? "all requests" : (row.detail?.match ?? "–");
      setText(match, visible(matchText));
      match.title = visible(matchText);
      fill(limits, row.detail ?? null, (detail) => limitsElement(detail ?? {}));
      setText(now, rate(row.now));
      setText(refused, count(row.refused));
      setText(share, percent(row.refused, row.total));
    },
  };
};

export const createRefusalsByRule = () => {
  const palette = createPalette();
  let chart = null;
  const table = createTable({
    steady: true,
    caption: "Refusals by rule",
    columns: COLUMNS,
    empty: "No rule refused a request in this time.",
    keyOf: ({ rule }) => rule,
    makeRow,
  });
  byId("by-rule-table").append(table.root);

  const rowsOf = (points, live, policy) => {
    const rates = currentRates(live);
    const all = [...sumByRule(points)].map(([rule, counts]) => ({ rule, refused: counts[REFUSED] }));
    const rows = all.filter(({ refused }) => refused > 0).sort((a, b) => b.refused - a.refused);
    const total = sum(rows.map(({ refused }) => refused));
    const detail = (name) => policy?.rules.find(({ rule }) => rule === name);
    return rows.map((row) => ({ ...row, total, now: rates.get(row.rule) ?? 0, detail: detail(row.rule) }));
  };

  return {
    update: ({ frame, policy, history, view }) => {
      if (!frame) return;
      const rows = rowsOf(view.points, history.finalPoints(), policy);
      const slots = palette(rows);
      fill(byId("by-rule-chart"), slots, () => {
        const options = { label: "Refusals per second by rule", stacked: true, format: axis, exact: rate };
        chart = createChart({ ...options, series: seriesOf(slots) });
        return chart.root;
      });
      chart.draw(view);
      const colourOf = (rule) => (slots.includes(rule) ? `c-rule-${slots.indexOf(rule) + 1}` : "c-refused");
      table.show(rows.map((row) => ({ ...row, colour: colourOf(row.rule) })));
    },
  };
};
