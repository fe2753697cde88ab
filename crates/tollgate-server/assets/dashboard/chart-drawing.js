// Drawing of a chart on a canvas: grid, series, outages, events and the crosshair. `box` is the plot area with its
// conversions between values and pixels.
import { element } from "./dom.js";

// Width of a column in pixels; a column shows the maximum of its points.
export const COLUMN_WIDTH = 2;
const LINE_WIDTHS = { bold: 2.4, thin: 1 };

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

export const drawGrid = (pen, box, { ticks, format, ink, line }) => {
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

export const drawTimes = (pen, box, { now, range, ink }) => {
  pen.fillStyle = ink;
  pen.textAlign = "center";
  pen.textBaseline = "alphabetic";
  const step = range.step * (box.right - box.left < 420 ? 2 : 1);
  // Labels are at round local times.
  const offset = new Date(now).getTimezoneOffset() * 60_000;
  for (let time = Math.ceil((now - range.span - offset) / step) * step + offset; time <= now; time += step) {
    const at = box.x(time);
    if (at > box.left + 16 && at < box.right - 20) pen.fillText(range.label(time), at, box.bottom + 15);
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

export const drawSeries = (pen, box, points, layer, { look, colour }) => {
  pen.strokeStyle = colour;
  pen.lineWidth = LINE_WIDTHS[look] ?? 1.2;
  if (look === "area" || look === "hatched") {
    pen.fillStyle = look === "hatched" ? hatch(pen, colour) : colour;
    pen.globalAlpha = look === "hatched" ? 0.9 : 0.35;
    for (const run of runsOf(points, (at) => layer.tops[at] !== null)) drawArea(pen, box, points, layer, run);
    pen.globalAlpha = 1;
  }
  // A stacked value of 0 has no outline, because it would draw the top of the series below.
  const isStacked = look === "area" || look === "hatched";
  const hasOutline = isStacked ? (at) => layer.values[at] > 0 : (at) => layer.tops[at] !== null;
  pen.fillStyle = colour;
  for (const run of runsOf(points, hasOutline)) drawLine(pen, box, points, layer, run);
};

// Shaded times, such as outages.
export const drawBands = (pen, box, bands, colour) => {
  pen.fillStyle = colour;
  pen.globalAlpha = 0.16;
  for (const { from, to } of bands) {
    const [left, right] = [Math.max(box.left, box.x(from)), Math.min(box.right, box.x(to))];
    if (right > box.left && left < box.right) pen.fillRect(left, box.top, Math.max(2, right - left), box.height);
  }
  pen.globalAlpha = 1;
};

// Distance in pixels below which marks are drawn as one.
const MIN_MARK_DISTANCE = 6;

// A dashed line with a triangle at the top for each event.
export const drawMarks = (pen, box, marks, colour) => {
  let last = -Infinity;
  pen.strokeStyle = colour;
  pen.fillStyle = colour;
  pen.lineWidth = 1;
  for (const { t } of marks) {
    const at = Math.round(box.x(t)) + 0.5;
    if (at < box.left || at > box.right || Math.abs(at - last) < MIN_MARK_DISTANCE) continue;
    last = at;
    pen.setLineDash([3, 3]);
    pen.beginPath();
    pen.moveTo(at, box.top);
    pen.lineTo(at, box.bottom);
    pen.stroke();
    pen.setLineDash([]);
    pen.beginPath();
    pen.moveTo(at - 4, box.top - 6);
    pen.lineTo(at + 4, box.top - 6);
    pen.lineTo(at, box.top + 1);
    pen.fill();
  }
};

// Marks the columns above the upper end of the axis, with the highest value.
export const drawClipped = (pen, box, clipped, { format, ink }) => {
  if (clipped.length === 0) return;
  pen.fillStyle = ink;
  for (const { t } of clipped) {
    const at = box.x(t);
    pen.beginPath();
    pen.moveTo(at - 4, box.top + 7);
    pen.lineTo(at + 4, box.top + 7);
    pen.lineTo(at, box.top);
    pen.fill();
  }
  const highest = clipped.reduce((most, column) => (column.top > most.top ? column : most));
  const at = box.x(highest.t);
  pen.textAlign = at > (box.left + box.right) / 2 ? "right" : "left";
  pen.textBaseline = "top";
  pen.fillText(`peak ${format(highest.top)}`, at + (pen.textAlign === "right" ? -8 : 8), box.top);
};

export const drawCrosshair = (pen, box, point, values, ink) => {
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
