// A chart of the last fifteen minutes on a canvas: areas on top of one another, or lines.
import { createCrosshair } from "./crosshair.js";
import { element } from "./dom.js";
import { clock, minute } from "./format.js";
import { SPAN_MS } from "./history.js";

const MARGIN = { left: 52, right: 8, top: 8, bottom: 20 };
// So many pixels are a column: what is in one is told by its highest values.
const COLUMN = 2;
const WIDTHS = { bold: 2.4, thin: 1 };
const STEPS = [1, 2, 2.5, 5, 10];

// Round numbers up to or above the highest value, about so many.
const ticksOf = (highest, rows) => {
  const least = highest / rows;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * STEPS.find((one) => one * power >= least * 0.9999);
  return Array.from({ length: Math.ceil((highest / step) * 0.9999) + 1 }, (_, at) => at * step);
};

// How much time is shown, and where it is told: all of it, once there is so much.
const SCALES = [
  { span: 120_000, step: 30_000, label: clock },
  { span: 300_000, step: 60_000, label: minute },
  { span: SPAN_MS, step: 180_000, label: minute },
];
const scaleOf = (points, now) => SCALES.find(({ span }) => now - (points[0]?.t ?? now) <= span) ?? SCALES.at(-1);

const higher = (one, other) => (one === null || (other !== null && other > one) ? other : one);

// Points of the same column made one: { t, place, values }, a value of each series. Columns are whole seconds, and
// stay where they are as time goes on.
const columnsOf = (points, series, width, { span }) => {
  const each = 1000 * Math.max(1, Math.ceil((COLUMN * span) / width / 1000));
  const columns = [];
  for (const point of points) {
    const place = Math.floor(point.t / each);
    const values = series.map(({ value }) => value(point) ?? null);
    const last = columns.at(-1);
    if (last?.place !== place) columns.push({ t: point.t, from: point.t, place, values });
    else {
      last.t = (last.from + point.t) / 2;
      last.values = last.values.map((one, at) => higher(one, values[at]));
    }
  }
  return columns;
};

// The values of each series in each column, those stacked with what is beneath them.
const layersOf = (columns, series, stacked) => {
  let below = columns.map(() => 0);
  return series.map((_, one) => {
    const base = below;
    const owns = columns.map(({ values }) => values[one]);
    const tops = owns.map((own, at) => (own === null ? null : own + (stacked ? base[at] : 0)));
    if (stacked) below = tops;
    return { owns, tops, base };
  });
};

// Stretches of columns that belong together, as [first, last]. What nobody told of is a gap, not a line across.
const stretches = (columns, isThere) => {
  const found = [];
  columns.forEach(({ place }, at) => {
    if (!isThere(at)) return;
    const joined = at > 0 && isThere(at - 1) && place - columns[at - 1].place === 1;
    if (joined) found.at(-1)[1] = at;
    else found.push([at, at]);
  });
  return found;
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

const drawArea = (pen, box, points, { tops, base }, [first, last]) => {
  if (first === last) {
    const [top, bottom] = [box.y(tops[first]), box.y(base[first] ?? 0)];
    return pen.fillRect(box.x(points[first].t) - COLUMN / 2, top, COLUMN, bottom - top);
  }
  pen.beginPath();
  for (let at = first; at <= last; at += 1) pen.lineTo(box.x(points[at].t), box.y(tops[at]));
  for (let at = last; at >= first; at -= 1) pen.lineTo(box.x(points[at].t), box.y(base[at] ?? 0));
  pen.fill();
};

const drawDot = (pen, x, y, radius) => {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
};

// What is alone is a dot.
const drawLine = (pen, box, points, { tops }, [first, last]) => {
  if (first === last) return drawDot(pen, box.x(points[first].t), box.y(tops[first]), 2);
  pen.beginPath();
  for (let at = first; at <= last; at += 1) pen.lineTo(box.x(points[at].t), box.y(tops[at]));
  pen.stroke();
};

const drawSeries = (pen, box, points, layer, { look, colour }) => {
  pen.strokeStyle = colour;
  pen.lineWidth = WIDTHS[look] ?? 1.2;
  if (look === "area" || look === "hatched") {
    pen.fillStyle = look === "hatched" ? hatch(pen, colour) : colour;
    pen.globalAlpha = look === "hatched" ? 0.9 : 0.35;
    for (const stretch of stretches(points, (at) => layer.tops[at] !== null))
      drawArea(pen, box, points, layer, stretch);
    pen.globalAlpha = 1;
  }
  // On top of something else, nothing would be an outline of that.
  const isDrawn = look === "hatched" ? (at) => layer.owns[at] > 0 : (at) => layer.tops[at] !== null;
  pen.fillStyle = colour;
  for (const stretch of stretches(points, isDrawn)) drawLine(pen, box, points, layer, stretch);
};

const drawCross = (pen, box, point, values, ink) => {
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

// Where things are on a canvas of this size.
const boxOf = ({ width, height }, top, now, { span }) => {
  const box = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
  box.height = box.bottom - box.top;
  box.x = (time) => box.right - ((now - time) / span) * (box.right - box.left);
  box.time = (x) => now - ((box.right - x) / (box.right - box.left)) * span;
  box.y = (value) => box.bottom - (value / top) * box.height;
  return box;
};

// Setting a size clears the canvas, even the same.
const fit = (canvas, width, height) => {
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
};

// series: [{ name, look: "area" | "hatched" | "bold" | "thin", colour: a class, value(point) }]
export const createChart = ({ label, series, stacked = false, least = 4, format, exact = format }) => {
  const canvas = element("canvas", { class: "plot" });
  const cross = createCrosshair({ canvas, label, series, format: exact, onMove: () => paint() });
  const root = element("figure", { class: "chart" }, cross.legend, canvas);
  let data = { points: [], now: 0 };
  let size = { width: 0, height: 0 };
  let inView = false;

  function paint() {
    const { points, now } = data;
    const { width, height } = size;
    if (width === 0 || !inView) return;
    const sharp = devicePixelRatio || 1;
    fit(canvas, Math.round(width * sharp), Math.round(height * sharp));
    const pen = canvas.getContext("2d");
    pen.setTransform(sharp, 0, 0, sharp, 0, 0);
    pen.clearRect(0, 0, width, height);
    const scale = scaleOf(points, now);
    const columns = columnsOf(points, series, width - MARGIN.left - MARGIN.right, scale);
    const layers = layersOf(columns, series, stacked);
    const highest = layers.reduce(
      (most, { tops }) => tops.reduce((high, value) => Math.max(high, value ?? 0), most),
      0,
    );
    const ticks = ticksOf(Math.max(highest, least), height < 120 ? 2 : 4);
    const box = boxOf(size, ticks.at(-1), now, scale);
    const colours = cross.colours();
    drawGrid(pen, box, { ticks, format, ...colours });
    drawTimes(pen, box, { now, scale, ...colours });
    layers.forEach((layer, at) => drawSeries(pen, box, columns, layer, { ...series[at], colour: colours.series[at] }));
    const chosen = cross.show(points, box);
    if (chosen === null) return;
    const exactly = [{ values: series.map(({ value }) => value(points[chosen]) ?? null) }];
    const values = layersOf(exactly, series, stacked).map(({ tops }) => tops[0]);
    drawCross(pen, box, points[chosen], values, colours.ink);
  }

  new ResizeObserver(([entry]) => {
    size = { width: entry.contentRect.width, height: entry.contentRect.height };
    paint();
  }).observe(canvas);
  new IntersectionObserver(
    ([entry]) => {
      inView = entry.isIntersecting;
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
