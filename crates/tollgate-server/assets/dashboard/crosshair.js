// Reading a chart: which second is looked at, by pointer or by keys, and what it was. The legend tells it, and the
// newest second while none is looked at.
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
  points.forEach((point, at) => {
    if (best === null || Math.abs(point.t - time) < Math.abs(points[best].t - time)) best = at;
  });
  return best;
};

const legendOf = (label, series) => {
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
  const { root: legend, values, swatches, when } = legendOf(label, series);
  let chosen = null; // the time that is looked at
  let seen = { points: [], box: null };
  for (const [name, value] of Object.entries({
    tabindex: 0,
    role: "slider",
    "aria-label": `${label}, by the second`,
  })) {
    canvas.setAttribute(name, value);
  }

  const choose = (time) => {
    if (chosen === time) return;
    chosen = time;
    onMove();
  };

  canvas.addEventListener("pointermove", (event) => {
    const { points, box } = seen;
    if (!box || points.length === 0) return;
    choose(points[nearest(points, box.time(event.offsetX))].t);
  });
  canvas.addEventListener("pointerleave", () => choose(null));
  canvas.addEventListener("blur", () => choose(null));
  canvas.addEventListener("keydown", (event) => {
    const { points } = seen;
    if (event.key === "Escape") return choose(null);
    if (!(event.key in KEYS) || points.length === 0) return;
    event.preventDefault();
    const from = chosen === null ? points.length : nearest(points, chosen);
    choose(points[Math.min(points.length - 1, Math.max(0, from + KEYS[event.key]))].t);
  });

  const tell = (points, at) => {
    const point = points[at ?? points.length - 1];
    const texts = series.map(({ value }) => (point ? format(value(point)) : "–"));
    texts.forEach((text, one) => setText(values[one], text));
    setText(when, at === null || !point ? "" : clock(point.t));
    canvas.setAttribute("aria-valuemax", String(Math.max(0, points.length - 1)));
    // Only a second that somebody chose is worth telling.
    if (at === null && canvas.hasAttribute("aria-valuetext")) return;
    canvas.setAttribute("aria-valuenow", String(at ?? Math.max(0, points.length - 1)));
    canvas.setAttribute(
      "aria-valuetext",
      point ? `${clock(point.t)}: ${series.map(({ name }, one) => `${name} ${texts[one]}`).join(", ")}` : "nothing yet",
    );
  };

  return {
    legend,
    // Colours are those of the style sheet, which knows light from dark.
    colours: () => ({
      series: swatches.map((swatch) => getComputedStyle(swatch).color),
      ink: getComputedStyle(when).color,
      line: getComputedStyle(legend).borderBottomColor,
    }),
    // Tells what is looked at, and answers which point that is.
    show: (points, box) => {
      seen = { points, box };
      const at = chosen === null || points.length === 0 ? null : nearest(points, chosen);
      tell(points, at);
      return at;
    },
  };
};
