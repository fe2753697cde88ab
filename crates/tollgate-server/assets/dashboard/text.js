// Text of others: keys, tenants, facts, reasons. Shown as it is, and so that it cannot pass for anything else: what
// cannot be seen is named, directions stay inside, and what is long is cut until asked for.
import { button, element } from "./dom.js";

const KEY_SHOWN = 56;
const PROSE_SHOWN = 240;
const UNSEEN = /([\p{C}\p{Zl}\p{Zp}\u115f\u1160\u2800\u3164\uffa0]|(?! )\p{Zs})/u;

const name = (letter) => `U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

// The same text with names in place of what cannot be seen; for titles and labels.
export const visible = (text) =>
  text
    .split(UNSEEN)
    .map((piece, at) => (at % 2 ? `‹${name(piece)}›` : piece))
    .join("");

const pieces = (text) =>
  text.split(UNSEEN).map((piece, at) => (at % 2 ? element("span", { class: "unseen" }, name(piece)) : piece));

const whole = (text) => element("bdi", { dir: "auto", class: "said" }, ...pieces(text));

const copyButton = (text) => {
  if (!navigator.clipboard) return null;
  const copy = button(
    "Copy",
    async () => {
      try {
        await navigator.clipboard.writeText(text);
        copy.textContent = "Copied";
      } catch {
        copy.textContent = "Not copied";
      }
    },
    { class: "small" },
  );
  return copy;
};

const cut = (text, letters, shownLetters) => {
  const short = whole(letters.slice(0, shownLetters).join(""));
  const shown = element("span", {}, short, "…");
  const more = button(
    `all ${letters.length}`,
    () => {
      const open = more.getAttribute("aria-expanded") !== "true";
      more.setAttribute("aria-expanded", String(open));
      more.textContent = open ? "less" : `all ${letters.length}`;
      shown.replaceChildren(...(open ? [whole(text)] : [short, "…"]));
    },
    { class: "small", "aria-expanded": "false" },
  );
  return element("span", { class: "long", title: visible(text) }, shown, " ", more, " ", copyButton(text));
};

const within = (text, most) => {
  const letters = [...text];
  return letters.length > most ? cut(text, letters, most) : whole(text);
};

// What somebody else wrote, ready to be put on the page: a name, or a sentence.
export const said = (text) => within(text, KEY_SHOWN);
export const sentence = (text) => within(text, PROSE_SHOWN);

// A key, with the tenant it belongs to.
export const keyed = (key, tenant) =>
  element(
    "span",
    { class: "keyed" },
    said(key),
    tenant ? element("span", { class: "dim" }, " of ", said(tenant)) : null,
  );

// A limit, by the rule that has it, and the node that counts it where nodes do not count together.
export const scoped = (rule, limit, node) =>
  element(
    "span",
    {},
    element("strong", {}, said(rule)),
    " ",
    element("code", {}, said(limit)),
    node ? element("span", { class: "dim" }, " on ", said(node)) : null,
  );
