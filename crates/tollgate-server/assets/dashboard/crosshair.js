// Crosshair of a chart: selects a point by pointer or keys. The legend shows the values of the selected point and the
// event next to it, or the values of the newest point if none is selected.
import { element, setText } from "./dom.js";
import { moment } from "./format.js";

// Distance in pixels up to which an event belongs to the selected point.
const MARK_DISTANCE = 5;

const KEYS = {
  ArrowLeft: -1,
  ArrowRight: 1,
  ArrowDown: -1,
  ArrowUp: 1,
  PageDown: -60,
  PageUp: 60,
  Home: -Infinity,
  End: Infinity,
};

const nearest = (points, time) => {
  let best = null;
  points.forEach((point, index) => {
    if (best === null || Math.abs(point.t - time) < Math.abs(points[best].t - time)) best = index;
  });
  return best;
};

const createLegend = (label, series) => {
  const values = series.map(() => element("b", { class: "value" }));
  const swatches = series.map(({ look, colour }) => element("i", { class: `swatch ${look} ${colour}` }));
  const when = element("span", { class: "dim when" });
  const band = element("span", { class: "item", hidden: true }, element("i", { class: "swatch band" }), "Redis lost");
  const mark = element("i", { class: "c-mark", hidden: true });
  const items = series.map(({ name }, at) => element("span", { class: "item" }, swatches[at], name, " ", values[at]));
  return {
    root: element("figcaption", {}, element("span", { class: "title" }, label), items, band, mark, when),
    band,
    mark,
    values,
    swatches,
    when,
  };
};

export const createCrosshair = ({ canvas, label, series, format, onMove }) => {
  const { root: legend, values, swatches, when, band, mark } = createLegend(label, series);
  let selected = null; // time of the selected point
  let shown = { points: [], marks: [], box: null };
  for (const [name, value] of Object.entries({
    tabindex: 0,
    role: "slider",
    "aria-label": label,
    "aria-valuemin": 0,
  })) {
    canvas.setAttribute(name, value);
  }

  const select = (time) => {
    if (selected === time) return;
    selected = time;
    onMove();
  };

  canvas.addEventListener("pointermove", (event) => {
    const { points, box } = shown;
    if (!box || points.length === 0) return;
    select(points[nearest(points, box.time(event.offsetX))].t);
  });
  canvas.addEventListener("pointerleave", () => select(null));
  canvas.addEventListener("blur", () => select(null));
  canvas.addEventListener("keydown", (event) => {
    const { points } = shown;
    if (event.key === "Escape") return select(null);
    if (!(event.key in KEYS) || points.length === 0) return;
    event.preventDefault();
    const from = selected === null ? points.length : nearest(points, selected);
    select(points[Math.min(points.length - 1, Math.max(0, from + KEYS[event.key]))].t);
  });

  // Texts of the events next to a point.
  const eventsAt = ({ t }) => {
    const { marks, box } = shown;
    const isNear = (event) => Math.abs(box.x(event.t) - box.x(t)) <= MARK_DISTANCE;
    return marks.filter(isNear).map(({ text }) => text);
  };

  const updateLegend = (points, index) => {
    const point = points[index ?? points.length - 1];
    const texts = series.map(({ value }) => (point ? format(value(point)) : "–"));
    texts.forEach((text, at) => setText(values[at], text));
    const events = index === null || !point ? [] : eventsAt(point);
    const whenText = index === null || !point ? "" : [moment(point.t), ...events].join(" · ");
    setText(when, whenText);
    canvas.setAttribute("aria-valuemax", String(Math.max(0, points.length - 1)));
    // Screen readers announce only a second that the user selected.
    if (index === null && canvas.hasAttribute("aria-valuetext")) return;
    canvas.setAttribute("aria-valuenow", String(index ?? Math.max(0, points.length - 1)));
    canvas.setAttribute(
      "aria-valuetext",
      point
        ? [`${moment(point.t)}: ${series.map(({ name }, at) => `${name} ${texts[at]}`).join(", ")}`, ...events].join("; ")
        : "no data",
    );
  };

  return {
    legend,
    // Reads the colours from the style sheet, which depends on the theme.
    colours: () => ({
      series: swatches.map((swatch) => getComputedStyle(swatch).color),
      ink: getComputedStyle(when).color,
      line: getComputedStyle(legend).borderBottomColor,
      band: getComputedStyle(band.firstChild).color,
      mark: getComputedStyle(mark).color,
    }),
    // Updates the legend and returns the index of the selected point, or null.
    show: ({ points, marks, bands }, box) => {
      shown = { points, marks, box };
      band.hidden = bands.length === 0;
      const index = selected === null || points.length === 0 ? null : nearest(points, selected);
      updateLegend(points, index);
      return index;
    },
  };
};
