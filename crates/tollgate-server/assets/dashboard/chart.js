// Chart of the last 15 minutes on a canvas, with stacked areas or lines.
import { createCrosshair } from "./crosshair.js";
import { element } from "./dom.js";
import { clock, minute } from "./format.js";
import { SPAN_MS } from "./history.js";

const MARGIN = { left: 52, right: 8, top: 8, bottom: 20 };
// Width of a column in pixels; a column shows the maximum of its points.
const COLUMN_WIDTH = 2;
const LINE_WIDTHS = { bold: 2.4, thin: 1 };
const TICK_STEPS = [1, 2, 2.5, 5, 10];

// Round numbers from 0 to at least `max`, about `rows` of them.
const ticksFor = (max, rows) => {
  const minStep = max / rows;
  const power = 10 ** Math.floor(Math.log10(minStep));
  const step = power * TICK_STEPS.find((factor) => factor * power >= minStep * 0.9999);
  return Array.from({ length: Math.ceil((max / step) * 0.9999) + 1 }, (_, index) => index * step);
};

// Time spans of the x axis with their label steps. The shortest span that contains all points is used.
const SCALES = [
  { span: 120_000, step: 30_000, label: clock },
  { span: 300_000, step: 60_000, label: minute },
  { span: SPAN_MS, step: 180_000, label: minute },
];
const scaleFor = (points, now) => SCALES.find(({ span }) => now - (points[0]?.t ?? now) <= span) ?? SCALES.at(-1);

const maxOf = (a, b) => (a === null || (b !== null && b > a) ? b : a);

// Merges points into columns { t, from, index, values } with one value per series. Columns start at multiples of
// whole seconds, so that they keep their points as time passes.
const columnsFor = (points, series, width, { span }) => {
  const columnMs = 1000 * Math.max(1, Math.ceil((COLUMN_WIDTH * span) / width / 1000));
  const columns = [];
  for (const point of points) {
    const index = Math.floor(point.t / columnMs);
    const values = series.map(({ value }) => value(point) ?? null);
    const last = columns.at(-1);
    if (last?.index !== index) columns.push({ t: point.t, from: point.t, index, values });
    else {
      last.t = (last.from + point.t) / 2;
      last.values = last.values.map((value, series) => maxOf(value, values[series]));
    }
  }
  return columns;
};

// Values of each series per column; stacked series start at the top of the previous one.
const layersFor = (columns, series, stacked) => {
  let below = columns.map(() => 0);
  return series.map((_, layer) => {
    const bases = below;
    const values = columns.map((column) => column.values[layer]);
    const tops = values.map((value, at) => (value === null ? null : value + (stacked ? bases[at] : 0)));
    if (stacked) below = tops;
    return { values, tops, bases };
  });
};

// Runs of adjacent columns as [first, last]. Missing data is a gap, not a line.
const runsOf = (columns, hasValue) => {
  const runs = [];
  columns.forEach(({ index }, at) => {
    if (!hasValue(at)) return;
    const isAdjacent = at > 0 && hasValue(at - 1) && index - columns[at - 1].index === 1;
    if (isAdjacent) runs.at(-1)[1] = at;
    else runs.push([at, at]);
  });
  return runs;
};

const drawGrid = (pen, box, { ticks, format, ink, line }) => {
  pen.font = "11px system-ui, sans-serif";
  pen.lineWidth = 1;
  pen.strokeStyle = line;
  pen.fillStyle = ink;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const value of ticks) {
    const at = Math.round(box.y(value)) + 0.5;
    pen.beginPath();
    pen.moveTo(box.left, at);
    pen.lineTo(box.right, at);
    pen.stroke();
    pen.fillText(format(value), box.left - 6, at);
  }
};

const drawTimes = (pen, box, { now, scale, ink }) => {
  pen.fillStyle = ink;
  pen.textAlign = "center";
  pen.textBaseline = "alphabetic";
  const step = scale.step * (box.right - box.left < 420 ? 2 : 1);
  for (let time = Math.ceil((now - scale.span) / step) * step; time <= now; time += step) {
    const at = box.x(time);
    if (at > box.left + 16 && at < box.right - 20) pen.fillText(scale.label(time), at, box.bottom + 15);
  }
};

const hatches = new Map();
const hatch = (pen, colour) => {
  if (!hatches.has(colour)) hatches.set(colour, newHatch(pen, colour));
  return hatches.get(colour);
};

const newHatch = (pen, colour) => {
  const tile = element("canvas", { width: 6, height: 6 });
  const ink = tile.getContext("2d");
  ink.strokeStyle = colour;
  ink.lineWidth = 1.6;
  for (const shift of [-6, 0, 6]) {
    ink.beginPath();
    ink.moveTo(shift - 1, 7);
    ink.lineTo(shift + 7, -1);
    ink.stroke();
  }
  return pen.createPattern(tile, "repeat");
};

const drawArea = (pen, box, points, { tops, bases }, [first, last]) => {
  if (first === last) {
    const [top, bottom] = [box.y(tops[first]), box.y(bases[first] ?? 0)];
    return pen.fillRect(box.x(points[first].t) - COLUMN_WIDTH / 2, top, COLUMN_WIDTH, bottom - top);
  }
  pen.beginPath();
  for (let at = first; at <= last; at += 1) pen.lineTo(box.x(points[at].t), box.y(tops[at]));
  for (let at = last; at >= first; at -= 1) pen.lineTo(box.x(points[at].t), box.y(bases[at] ?? 0));
  pen.fill();
};

const drawDot = (pen, x, y, radius) => {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
};

// A run of one column is a dot.
const drawLine = (pen, box, points, { tops }, [first, last]) => {
  if (first === last) return drawDot(pen, box.x(points[first].t), box.y(tops[first]), 2);
  pen.beginPath();
  for (let at = first; at <= last; at += 1) pen.lineTo(box.x(points[at].t), box.y(tops[at]));
  pen.stroke();
};

const drawSeries = (pen, box, points, layer, { look, colour }) => {
  pen.strokeStyle = colour;
  pen.lineWidth = LINE_WIDTHS[look] ?? 1.2;
  if (look === "area" || look === "hatched") {
    pen.fillStyle = look === "hatched" ? hatch(pen, colour) : colour;
    pen.globalAlpha = look === "hatched" ? 0.9 : 0.35;
    for (const run of runsOf(points, (at) => layer.tops[at] !== null)) drawArea(pen, box, points, layer, run);
    pen.globalAlpha = 1;
  }
  // A stacked value of 0 has no outline, because it would draw the top of the series below.
  const hasOutline = look === "hatched" ? (at) => layer.values[at] > 0 : (at) => layer.tops[at] !== null;
  pen.fillStyle = colour;
  for (const run of runsOf(points, hasOutline)) drawLine(pen, box, points, layer, run);
};

const drawCrosshair = (pen, box, point, values, ink) => {
  const at = Math.round(box.x(point.t)) + 0.5;
  pen.strokeStyle = ink;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(at, box.top);
  pen.lineTo(at, box.bottom);
  pen.stroke();
  pen.fillStyle = ink;
  for (const value of values) {
    if (value !== null) drawDot(pen, at, box.y(value), 3);
  }
};

// Plot area and conversions between values and pixels.
const boxFor = ({ width, height }, maxValue, now, { span }) => {
  const box = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
  box.height = box.bottom - box.top;
  box.x = (time) => box.right - ((now - time) / span) * (box.right - box.left);
  box.time = (x) => now - ((box.right - x) / (box.right - box.left)) * span;
  box.y = (value) => box.bottom - (value / maxValue) * box.height;
  return box;
};

// Setting the size clears the canvas, so it is set only if it changed.
const resize = (canvas, width, height) => {
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
};

// series: [{ name, look: "area" | "hatched" | "bold" | "thin", colour: CSS class, value(point) }]. `minTop` is the
// smallest upper end of the y axis; `exact` formats the values of the legend.
export const createChart = ({ label, series, stacked = false, minTop = 4, format, exact = format }) => {
  const canvas = element("canvas", { class: "plot" });
  const crosshair = createCrosshair({ canvas, label, series, format: exact, onMove: () => paint() });
  const root = element("figure", { class: "chart" }, crosshair.legend, canvas);
  let data = { points: [], now: 0 };
  let size = { width: 0, height: 0 };
  let isInView = false;

  function paint() {
    const { points, now } = data;
    const { width, height } = size;
    if (width === 0 || !isInView) return;
    const ratio = devicePixelRatio || 1;
    resize(canvas, Math.round(width * ratio), Math.round(height * ratio));
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const scale = scaleFor(points, now);
    const columns = columnsFor(points, series, width - MARGIN.left - MARGIN.right, scale);
    const layers = layersFor(columns, series, stacked);
    const max = layers.reduce((all, { tops }) => tops.reduce((most, top) => Math.max(most, top ?? 0), all), 0);
    const ticks = ticksFor(Math.max(max, minTop), height < 120 ? 2 : 4);
    const box = boxFor(size, ticks.at(-1), now, scale);
    const colours = crosshair.colours();
    drawGrid(pen, box, { ticks, format, ...colours });
    drawTimes(pen, box, { now, scale, ...colours });
    layers.forEach((layer, at) => drawSeries(pen, box, columns, layer, { ...series[at], colour: colours.series[at] }));
    const selected = crosshair.show(points, box);
    if (selected === null) return;
    const column = { values: series.map(({ value }) => value(points[selected]) ?? null) };
    const values = layersFor([column], series, stacked).map(({ tops }) => tops[0]);
    drawCrosshair(pen, box, points[selected], values, colours.ink);
  }

  new ResizeObserver(([entry]) => {
    size = { width: entry.contentRect.width, height: entry.contentRect.height };
    paint();
  }).observe(canvas);
  new IntersectionObserver(
    ([entry]) => {
      isInView = entry.isIntersecting;
      paint();
    },
    { rootMargin: "50%" },
  ).observe(canvas);
  addEventListener("tollgate:theme", () => paint());

  return {
    root,
    draw: (points, now) => {
      data = { points, now };
      paint();
    },
  };
};
