// A chart of the last fifteen minutes on a canvas: areas on top of one another, or lines.
import { createCrosshair } from "./crosshair.js";
import { element } from "./dom.js";
import { clock, minute } from "./format.js";
import { SPAN_MS } from "./history.js";

const MARGIN = { left: 52, right: 8, top: 8, bottom: 20 };
// Seconds that nobody told of are a gap, not a line across.
const GAP_MS = 1500;
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

// The values of each series at each point, those stacked with what is beneath them.
const layersOf = (points, series, stacked) => {
  let below = points.map(() => 0);
  return series.map(({ value }) => {
    const base = below;
    const tops = points.map((point, at) => {
      const own = value(point);
      return own === null || own === undefined ? null : own + (stacked ? base[at] : 0);
    });
    if (stacked) below = tops;
    return { tops, base };
  });
};

// Stretches of points that belong together, as [first, last].
const stretches = (points, tops) => {
  const found = [];
  points.forEach((point, at) => {
    if (tops[at] === null) return;
    const joined = at > 0 && tops[at - 1] !== null && point.t - points[at - 1].t <= GAP_MS;
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
  pen.beginPath();
  for (let at = first; at <= last; at += 1) pen.lineTo(box.x(points[at].t), box.y(tops[at]));
  for (let at = last; at >= first; at -= 1) pen.lineTo(box.x(points[at].t), box.y(base[at] ?? 0));
  pen.fill();
};

const drawLine = (pen, box, points, { tops }, [first, last]) => {
  pen.beginPath();
  pen.moveTo(box.x(points[first].t) - (first === last ? 1 : 0), box.y(tops[first]));
  for (let at = first; at <= last; at += 1) pen.lineTo(box.x(points[at].t), box.y(tops[at]));
  pen.stroke();
};

const drawSeries = (pen, box, points, layer, { look, colour }) => {
  pen.strokeStyle = colour;
  pen.lineWidth = WIDTHS[look] ?? 1.2;
  for (const stretch of stretches(points, layer.tops)) {
    if (look === "area" || look === "hatched") {
      pen.fillStyle = look === "hatched" ? hatch(pen, colour) : colour;
      pen.globalAlpha = look === "hatched" ? 0.9 : 0.35;
      drawArea(pen, box, points, layer, stretch);
      pen.globalAlpha = 1;
    }
    drawLine(pen, box, points, layer, stretch);
  }
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
    if (value === null) continue;
    pen.beginPath();
    pen.arc(at, box.y(value), 3, 0, 2 * Math.PI);
    pen.fill();
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
export const createChart = ({ label, series, stacked = false, least = 1, format, exact = format }) => {
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
    const layers = layersOf(points, series, stacked);
    const highest = layers.reduce(
      (most, { tops }) => tops.reduce((high, value) => Math.max(high, value ?? 0), most),
      0,
    );
    const ticks = ticksOf(Math.max(highest, least), height < 120 ? 2 : 4);
    const scale = scaleOf(points, now);
    const box = boxOf(size, ticks.at(-1), now, scale);
    const colours = cross.colours();
    drawGrid(pen, box, { ticks, format, ...colours });
    drawTimes(pen, box, { now, scale, ...colours });
    layers.forEach((layer, at) => drawSeries(pen, box, points, layer, { ...series[at], colour: colours.series[at] }));
    const chosen = cross.show(points, box);
    if (chosen !== null)
      drawCross(
        pen,
        box,
        points[chosen],
        layers.map(({ tops }) => tops[chosen]),
        colours.ink,
      );
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
