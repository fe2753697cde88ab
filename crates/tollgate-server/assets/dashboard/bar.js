// How much of a limit is used, as a picture beside the figures.
import { element } from "./dom.js";

// `after` is what a request would make of it.
export const bar = (used, of, after = used) => {
  const share = (value) => `${of > 0 ? Math.min(100, (100 * value) / of) : 100}%`;
  const made = element(
    "span",
    { class: used >= of ? "bar full" : "bar", "aria-hidden": "true" },
    element("i", { class: "after" }),
    element("i", { class: "before" }),
  );
  made.style.setProperty("--before", share(used));
  made.style.setProperty("--after", share(after));
  return made;
};
