// Crosshair of a chart: selects a second by pointer or keys. The legend shows the values of the selected second, or
// those of the newest second if none is selected.
import { element, setText } from "./dom.js";
import { clock } from "./format.js";

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
  const items = series.map(({ name }, at) => element("span", { class: "item" }, swatches[at], name, " ", values[at]));
  return {
    root: element("figcaption", {}, element("span", { class: "title" }, label), items, when),
    values,
    swatches,
    when,
  };
};

export const createCrosshair = ({ canvas, label, series, format, onMove }) => {
  const { root: legend, values, swatches, when } = createLegend(label, series);
  let selected = null; // time of the selected second
  let shown = { points: [], box: null };
  for (const [name, value] of Object.entries({
    tabindex: 0,
    role: "slider",
    "aria-label": `${label}, last 15 minutes`,
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

  const updateLegend = (points, index) => {
    const point = points[index ?? points.length - 1];
    const texts = series.map(({ value }) => (point ? format(value(point)) : "–"));
    texts.forEach((text, at) => setText(values[at], text));
    setText(when, index === null || !point ? "" : clock(point.t));
    canvas.setAttribute("aria-valuemax", String(Math.max(0, points.length - 1)));
    // Screen readers announce only a second that the user selected.
    if (index === null && canvas.hasAttribute("aria-valuetext")) return;
    canvas.setAttribute("aria-valuenow", String(index ?? Math.max(0, points.length - 1)));
    canvas.setAttribute(
      "aria-valuetext",
      point ? `${clock(point.t)}: ${series.map(({ name }, at) => `${name} ${texts[at]}`).join(", ")}` : "no data",
    );
  };

  return {
    legend,
    // Reads the colours from the style sheet, which depends on the theme.
    colours: () => ({
      series: swatches.map((swatch) => getComputedStyle(swatch).color),
      ink: getComputedStyle(when).color,
      line: getComputedStyle(legend).borderBottomColor,
    }),
    // Updates the legend and returns the index of the selected point, or null.
    show: (points, box) => {
      shown = { points, box };
      const index = selected === null || points.length === 0 ? null : nearest(points, selected);
      updateLegend(points, index);
      return index;
    },
  };
};
