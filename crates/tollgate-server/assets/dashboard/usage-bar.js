// Bar that shows the used part of a limit.
import { element } from "./dom.js";

// `after` is the usage after the explained request.
export const usageBar = (used, capacity, after = used) => {
  const width = (value) => `${capacity > 0 ? Math.min(100, (100 * value) / capacity) : 100}%`;
  const bar = element(
    "span",
    { class: used >= capacity ? "bar full" : "bar", "aria-hidden": "true" },
    element("i", { class: "after" }),
    element("i", { class: "before" }),
  );
  bar.style.setProperty("--before", width(used));
  bar.style.setProperty("--after", width(after));
  return bar;
};
