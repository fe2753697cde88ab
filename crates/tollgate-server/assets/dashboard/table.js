// Tables whose rows are kept by key: a row that is there is changed in place, so focus and selection stay.
import { element } from "./dom.js";

// A column: { name }, and `hidden` if only readers of the screen are told its name, `look` for "number" or "tight".
const head = (columns) =>
  element(
    "tr",
    { role: "row" },
    columns.map(({ name, hidden, look }) =>
      element(
        "th",
        { scope: "col", role: "columnheader", class: look },
        hidden ? element("span", { class: "sr" }, name) : name,
      ),
    ),
  );

const cell = ({ name, hidden, look }, content) =>
  element("td", { role: "cell", class: look, "data-label": hidden ? null : name }, content);

const canHover = matchMedia("(hover: hover)");

// Whether somebody is at it.
const inUse = (body) => body.matches(":focus-within") || (canHover.matches && body.matches(":hover"));

// `make(item)` answers { cells, update(item) }; a cell is a node or text, in the order of the columns. The rows of a
// `steady` table, which changes by itself, neither move nor leave while somebody is at it.
export const createTable = ({ caption, columns, empty, keyOf, make, steady = false }) => {
  const body = element("tbody", { role: "rowgroup" });
  const table = element(
    "table",
    { role: "table" },
    element("caption", { class: "sr" }, caption),
    element("thead", { role: "rowgroup" }, head(columns)),
    body,
  );
  const scroll = element("div", { class: "scroll" }, table);
  const note = element("div", { class: "empty" }, empty);
  const root = element("div", {}, scroll, note);
  let rows = new Map();

  const made = (item) => {
    const { cells, update } = make(item);
    const row = element(
      "tr",
      { role: "row" },
      cells.map((content, at) => cell(columns[at], content)),
    );
    update?.(item, row);
    return { row, update };
  };

  const settle = (next) => {
    for (const [key, { row }] of rows) if (!next.has(key)) row.remove();
    let place = body.firstChild;
    for (const { row } of next.values()) {
      if (row === place) place = place.nextSibling;
      else body.insertBefore(row, place);
    }
    rows = next;
  };

  const show = (items) => {
    const next = new Map();
    for (const item of items) {
      const key = keyOf(item);
      const known = rows.get(key);
      if (known) known.update?.(item, known.row);
      next.set(key, known ?? made(item));
    }
    if (!steady || !inUse(body)) settle(next);
    else for (const [key, kept] of next) if (!rows.has(key)) body.append(rows.set(key, kept).get(key).row);
    scroll.hidden = rows.size === 0;
    note.hidden = rows.size > 0;
  };

  scroll.hidden = true;
  return { root, show };
};
