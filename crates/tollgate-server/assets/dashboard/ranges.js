// Points of the selected time range. The points of the last 15 minutes come from the live stream, one per second; those
// of longer ranges are loaded once (/api/history) and then extended from the live stream. Values are rates per second;
// `seconds` is the time that a point covers.
import { request } from "./api.js";
import { byId, setText } from "./dom.js";
import { clock, minute } from "./format.js";

const MINUTE_MS = 60_000;

// `resolution` is the length of a point in ms, `step` the distance of the labels of the time axis.
export const RANGES = {
  "5m": { name: "5 min", text: "last 5 minutes", span: 5 * MINUTE_MS, resolution: 1000, step: MINUTE_MS, label: clock },
  "1h": { name: "1 h", text: "last hour", span: 60 * MINUTE_MS, resolution: 10_000, step: 10 * MINUTE_MS, label: minute },
  "24h": { name: "24 h", text: "last 24 hours", span: 1440 * MINUTE_MS, resolution: 300_000, step: 240 * MINUTE_MS, label: minute },
};

const COUNTS = ["allowed", "refused", "degraded", "errors"];

const mapRules = (rules, change) =>
  Object.fromEntries(Object.entries(rules ?? {}).map(([rule, counts]) => [rule, counts.map(change)]));

// A point of /api/history, which contains counts, as rates.
const fromCounts = (point, seconds) => ({
  t: point.t,
  seconds,
  ...Object.fromEntries(COUNTS.map((name) => [name, (point[name] ?? 0) / seconds])),
  p50_us: point.p50_us ?? null,
  p99_us: point.p99_us ?? null,
  rules: mapRules(point.rules, (value) => value / seconds),
});

const largest = (points, name) => {
  const values = points.map((point) => point[name]).filter((value) => value !== null && value !== undefined);
  return values.length > 0 ? Math.max(...values) : null;
};

const sumRules = (points) => {
  const sums = {};
  for (const { rules } of points)
    for (const [rule, counts] of Object.entries(rules ?? {}))
      sums[rule] = counts.map((value, index) => value + (sums[rule]?.[index] ?? 0));
  return sums;
};

// One point for several seconds: the average of the rates and the largest of the times.
const merge = (t, points) => {
  const seconds = points.length;
  const total = (name) => points.reduce((sum, point) => sum + (point[name] ?? 0), 0);
  return {
    t,
    seconds,
    ...Object.fromEntries(COUNTS.map((name) => [name, total(name) / seconds])),
    p50_us: largest(points, "p50_us"),
    p99_us: largest(points, "p99_us"),
    rules: mapRules(sumRules(points), (value) => value / seconds),
  };
};

// Points of `resolution` ms from points of one second. Seconds of the first may be missing.
const mergeSeconds = (seconds, resolution) => {
  const groups = new Map();
  for (const point of seconds) {
    const start = Math.floor(point.t / resolution) * resolution;
    groups.has(start) ? groups.get(start).push(point) : groups.set(start, [point]);
  }
  return [...groups].map(([start, points]) => merge(start, points));
};

const requestsOf = ({ allowed, refused, seconds }) => (allowed + refused) * seconds;

// Loaded points, extended by those of the live stream.
const createLongRange = (range, onChange) => {
  const { span, resolution } = RANGES[range];
  let points = [];
  let problem = null;

  const load = async () => {
    try {
      const loaded = await request("GET", "/api/history", { query: { range } });
      const seconds = loaded.resolution_s ?? resolution / 1000;
      points = loaded.points.map((point) => fromCounts(point, seconds));
      problem = loaded.complete === false ? "Some of the history could not be read." : null;
    } catch (error) {
      problem = `The history could not be loaded: ${error.message}.`;
    }
    onChange();
  };

  return {
    load,
    problem: () => problem,
    points: (live, now) => {
      const latest = mergeSeconds(live, resolution);
      const known = points.find(({ t }) => t === latest[0]?.t);
      if (known && requestsOf(known) > requestsOf(latest[0])) latest.shift();
      const start = latest[0]?.t ?? Infinity;
      points = [...points.filter(({ t }) => t < start), ...latest].filter(({ t }) => t > now - span);
      return points;
    },
  };
};

// Control of the time range, and the points of the selected range. `history` are the points of the live stream.
export const createRanges = (history, onChange) => {
  let selected = "5m";
  let long = null;
  const buttons = [...byId("range").querySelectorAll("button")];

  const select = (range) => {
    selected = range;
    for (const each of buttons) each.setAttribute("aria-pressed", String(each.value === range));
    long = range === "5m" ? null : createLongRange(range, onChange);
    long?.load();
    onChange();
  };
  for (const each of buttons) each.addEventListener("click", () => select(each.value));

  return {
    // After a longer pause of the live stream, points are missing.
    reload: () => long?.load(),
    // { range, points, now }, for one drawing of all charts.
    current: () => {
      const [live, now] = [history.finalPoints(), history.now()];
      const range = RANGES[selected];
      setText(byId("range-problem"), long?.problem() ?? "");
      for (const label of document.querySelectorAll(".range-text")) setText(label, range.text);
      const points = long ? long.points(live, now) : live.filter(({ t }) => t > now - range.span);
      return { range, points, now };
    },
  };
};
