// Untrusted text: keys, tenants, facts and reasons. Invisible characters are replaced by their code points, each text
// has its own writing direction, and long text is shortened in the middle, because names often differ at the end only.
import { button, element } from "./dom.js";

const SHORT_LENGTH = 40;
const LONG_LENGTH = 240;
// Part of the letters of a shortened text that is taken from its end.
const END_PART = 0.3;
const INVISIBLE = /([\p{C}\p{Zl}\p{Zp}\u115f\u1160\u2800\u3164\uffa0]|(?! )\p{Zs})/u;

const codePoint = (letter) => `U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

// Plain string with visible code points, for titles and labels.
export const visible = (text) =>
  text
    .split(INVISIBLE)
    .map((piece, index) => (index % 2 ? `‹${codePoint(piece)}›` : piece))
    .join("");

const pieces = (text) =>
  text
    .split(INVISIBLE)
    .map((piece, index) => (index % 2 ? element("span", { class: "invisible" }, codePoint(piece)) : piece));

const fullText = (text) => element("bdi", { dir: "auto", class: "untrusted" }, ...pieces(text));

const copyButton = (text) => {
  if (!navigator.clipboard) return null;
  const copy = button(
    "Copy",
    async () => {
      try {
        await navigator.clipboard.writeText(text);
        copy.textContent = "Copied";
      } catch {
        copy.textContent = "Copy failed";
      }
    },
    { class: "small" },
  );
  return copy;
};

// Start and end of the letters, `length` in total.
const shortened = (letters, length) => {
  const end = Math.floor(length * END_PART);
  return [letters.slice(0, length - end), letters.slice(-end)].map((part) => fullText(part.join("")));
};

const expandable = (text, letters, length) => {
  const [start, end] = shortened(letters, length);
  const content = element("span", { class: "shortened" }, start, "…", end);
  const copy = copyButton(text);
  const root = element("span", { class: "long", title: visible(text) });
  const toggle = button(
    `all ${letters.length}`,
    () => {
      const isOpen = toggle.getAttribute("aria-expanded") !== "true";
      toggle.setAttribute("aria-expanded", String(isOpen));
      toggle.textContent = isOpen ? "less" : `all ${letters.length}`;
      content.className = isOpen ? "" : "shortened";
      content.replaceChildren(...(isOpen ? [fullText(text)] : [start, "…", end]));
      if (isOpen && copy) root.append(" ", copy);
      else copy?.remove();
    },
    { class: "small", "aria-expanded": "false" },
  );
  root.append(content, " ", toggle);
  return root;
};

const upTo = (text, length) => {
  const letters = [...text];
  return letters.length > length ? expandable(text, letters, length) : fullText(text);
};

// An element for a name (short) or a sentence (long).
export const shortText = (text) => upTo(text, SHORT_LENGTH);
export const longText = (text) => upTo(text, LONG_LENGTH);

// A key, and its tenant if it has one.
export const keyWithTenant = (key, tenant) =>
  element(
    "span",
    { class: "key" },
    shortText(key),
    tenant ? element("span", { class: "dim" }, " tenant ", shortText(tenant)) : null,
  );

// A rule and its limit, and the node if each node counts on its own.
export const ruleAndLimit = (rule, limit, node) =>
  element(
    "span",
    {},
    element("strong", {}, shortText(rule)),
    " ",
    element("code", {}, shortText(limit)),
    node ? element("span", { class: "dim" }, " on ", shortText(node)) : null,
  );
