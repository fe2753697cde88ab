// Tables that update existing rows in place, so that focus and selection are kept.
import { element } from "./dom.js";

// A column: { name }, optionally `hidden` (the name is for screen readers only) and `look` ("number" or "tight").
const headerRow = (columns) =>
  element(
    "tr",
    { role: "row" },
    columns.map(({ name, hidden, look }) =>
      element(
        "th",
        { scope: "col", role: "columnheader", class: look },
        hidden ? element("span", { class: "sr-only" }, name) : name,
      ),
    ),
  );

const cell = ({ name, hidden, look }, content) =>
  element("td", { role: "cell", class: look, "data-label": hidden ? null : name }, content);

const canHover = matchMedia("(hover: hover)");

// Whether the user is interacting with the rows.
const isInUse = (body) => body.matches(":focus-within") || (canHover.matches && body.matches(":hover"));

// `makeRow(item)` returns { cells, update(item) }; a cell is a node or a string, in the order of the columns. `steady`
// is for tables that update by themselves: their rows are neither moved nor removed while the user interacts with them.
export const createTable = ({ caption, columns, empty, keyOf, makeRow, steady = false }) => {
  const body = element("tbody", { role: "rowgroup" });
  const table = element(
    "table",
    { role: "table" },
    element("caption", { class: "sr-only" }, caption),
    element("thead", { role: "rowgroup" }, headerRow(columns)),
    body,
  );
  const scroll = element("div", { class: "scroll" }, table);
  const note = element("div", { class: "empty" }, empty);
  const root = element("div", {}, scroll, note);
  let rows = new Map();

  const createRow = (item) => {
    const { cells, update } = makeRow(item);
    const row = element(
      "tr",
      { role: "row" },
      cells.map((content, index) => cell(columns[index], content)),
    );
    update?.(item, row);
    return { row, update };
  };

  // Removes old rows and brings the others into the new order.
  const reorder = (newRows) => {
    for (const [key, { row }] of rows) if (!newRows.has(key)) row.remove();
    let next = body.firstChild;
    for (const { row } of newRows.values()) {
      if (row === next) next = next.nextSibling;
      else body.insertBefore(row, next);
    }
    rows = newRows;
  };

  const show = (items) => {
    const newRows = new Map();
    for (const item of items) {
      const key = keyOf(item);
      const existing = rows.get(key);
      if (existing) existing.update?.(item, existing.row);
      newRows.set(key, existing ?? createRow(item));
    }
    if (!steady || !isInUse(body)) reorder(newRows);
    else for (const [key, entry] of newRows) if (!rows.has(key)) body.append(rows.set(key, entry).get(key).row);
    scroll.hidden = rows.size === 0;
    note.hidden = rows.size > 0;
  };

  scroll.hidden = true;
  return { root, show };
};
