// Chart of a time range on a canvas, with stacked areas or lines, outages as bands and events as marks.
import {
  COLUMN_WIDTH,
  drawBands,
  drawClipped,
  drawCrosshair,
  drawGrid,
  drawMarks,
  drawSeries,
  drawTimes,
} from "./chart-drawing.js";
import { createCrosshair } from "./crosshair.js";
import { element } from "./dom.js";

const MARGIN = { left: 52, right: 8, top: 12, bottom: 20 };
const TICK_STEPS = [1, 2, 2.5, 5, 10];
// The axis ends at CLIP_FACTOR times the 95th percentile if the maximum is above BURST_FACTOR times that percentile:
// otherwise one burst would flatten everything else.
const PERCENTILE = 0.95;
const BURST_FACTOR = 6;
const CLIP_FACTOR = 2;
const MIN_COLUMNS_TO_CLIP = 20;

// Round numbers from 0 to at least `max`, about `rows` of them.
const ticksFor = (max, rows) => {
  const minStep = max / rows;
  const power = 10 ** Math.floor(Math.log10(minStep));
  const step = power * TICK_STEPS.find((factor) => factor * power >= minStep * 0.9999);
  return Array.from({ length: Math.ceil((max / step) * 0.9999) + 1 }, (_, index) => index * step);
};

const maxOf = (a, b) => (a === null || (b !== null && b > a) ? b : a);

// Merges points into columns { t, from, index, values } with one value per series. Columns start at multiples of
// the resolution, so that they keep their points as time passes.
const columnsFor = (points, series, width, { span, resolution }) => {
  const columnMs = resolution * Math.max(1, Math.ceil((COLUMN_WIDTH * span) / width / resolution));
  const columns = [];
  for (const point of points) {
    const index = Math.floor(point.t / columnMs);
    const values = series.map(({ value }) => value(point) ?? null);
    const last = columns.at(-1);
    if (last?.index !== index) columns.push({ t: point.t, from: point.t, index, values });
    else {
      last.t = (last.from + point.t) / 2;
      last.values = last.values.map((value, at) => maxOf(value, values[at]));
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

// Highest value of each column, over all series.
const topsOf = (columns, layers) =>
  columns.map(({ t }, at) => ({ t, top: Math.max(0, ...layers.map(({ tops }) => tops[at] ?? 0)) }));

// Upper end of the axis, which may be below the highest value.
const axisEnd = (tops, minTop) => {
  const max = Math.max(minTop, ...tops.map(({ top }) => top));
  const used = tops.map(({ top }) => top).filter((top) => top > 0).sort((a, b) => a - b);
  if (used.length < MIN_COLUMNS_TO_CLIP) return max;
  const usual = Math.max(minTop / CLIP_FACTOR, used[Math.floor(used.length * PERCENTILE)]);
  return max > BURST_FACTOR * usual ? CLIP_FACTOR * usual : max;
};

// Plot area and conversions between values and pixels. Values above the axis are drawn at its end.
const boxFor = ({ width, height }, maxValue, now, { span }) => {
  const box = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
  box.height = box.bottom - box.top;
  box.x = (time) => box.right - ((now - time) / span) * (box.right - box.left);
  box.time = (x) => now - ((box.right - x) / (box.right - box.left)) * span;
  box.y = (value) => box.bottom - (Math.min(value, maxValue) / maxValue) * box.height;
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
  let data = null;
  let size = { width: 0, height: 0 };
  let isInView = false;

  function paint() {
    const { width, height } = size;
    if (data === null || width === 0 || !isInView) return;
    const { points, now, range, marks, bands } = data;
    const ratio = devicePixelRatio || 1;
    resize(canvas, Math.round(width * ratio), Math.round(height * ratio));
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const columns = columnsFor(points, series, width - MARGIN.left - MARGIN.right, range);
    const layers = layersFor(columns, series, stacked);
    const tops = topsOf(columns, layers);
    const ticks = ticksFor(axisEnd(tops, minTop), height < 120 ? 2 : 4);
    const box = boxFor(size, ticks.at(-1), now, range);
    const colours = crosshair.colours();
    drawBands(pen, box, bands, colours.band);
    drawGrid(pen, box, { ticks, format, ...colours });
    drawTimes(pen, box, { now, range, ...colours });
    layers.forEach((layer, at) => drawSeries(pen, box, columns, layer, { ...series[at], colour: colours.series[at] }));
    drawMarks(pen, box, marks, colours.mark);
    drawClipped(pen, box, tops.filter(({ top }) => top > ticks.at(-1)), { format: exact, ...colours });
    const selected = crosshair.show(data, box);
    if (selected === null) return;
    const column = { values: series.map(({ value }) => value(points[selected]) ?? null) };
    const values = layersFor([column], series, stacked).map((layer) => layer.tops[0]);
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
    // data: { points, now, range, marks: [{ t, text }], bands: [{ from, to }] }
    draw: (newData) => {
      data = newData;
      paint();
    },
  };
};
