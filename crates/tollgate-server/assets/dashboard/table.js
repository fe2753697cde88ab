// Tables that update existing rows in place, so that focus and selection are kept. Columns may be sortable and have
// totals.
import { button, element, setText } from "./dom.js";

// A column: { name }, optionally `hidden` (the name is for screen readers only), `look` ("number" or "tight"),
// `sort(item)` (the value to sort by) and `total(items)` (text of the last row).
const cell = ({ name, hidden, look }, content) =>
  element("td", { role: "cell", class: look, "data-label": hidden ? null : name }, content);

const canHover = matchMedia("(hover: hover)");

// Whether the user is interacting with the rows.
const isInUse = (body) => body.matches(":focus-within") || (canHover.matches && body.matches(":hover"));

const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : (a ?? -Infinity) - (b ?? -Infinity));

// Header with a button for each sortable column. Numbers are sorted from the highest first.
const createHeader = (columns, onChange) => {
  let sorted = null; // { column, direction }, or null for the order of the items
  const marks = new Map();

  const nextDirection = (column) => {
    const first = column.look === "number" ? -1 : 1;
    if (sorted?.column !== column) return first;
    return sorted.direction === first ? -first : null;
  };

  const toggle = (column) => {
    const direction = nextDirection(column);
    sorted = direction === null ? null : { column, direction };
    for (const [other, { header, mark }] of marks) {
      const isSorted = sorted?.column === other;
      const order = sorted?.direction === 1 ? "ascending" : "descending";
      if (isSorted) header.setAttribute("aria-sort", order);
      else header.removeAttribute("aria-sort");
      setText(mark, isSorted ? (order === "ascending" ? " ▲" : " ▼") : "");
    }
    onChange();
  };

  const headerCell = (column) => {
    const { name, hidden, look, sort } = column;
    const label = hidden ? element("span", { class: "sr-only" }, name) : name;
    const header = element("th", { scope: "col", role: "columnheader", class: look });
    if (!sort) header.append(label);
    else {
      const mark = element("span", { "aria-hidden": "true" });
      header.append(button([label, mark], () => toggle(column), { class: "sort" }));
      header.classList.add("sortable");
      marks.set(column, { header, mark });
    }
    return header;
  };

  const row = element("tr", { role: "row" }, columns.map(headerCell));
  return {
    root: element("thead", { role: "rowgroup" }, row),
    inOrder: (items) => {
      if (!sorted) return items;
      const { column, direction } = sorted;
      return [...items].sort((a, b) => direction * compare(column.sort(a), column.sort(b)));
    },
  };
};

// Row of totals, or null if no column has one.
const createTotals = (columns) => {
  if (!columns.some(({ total }) => total)) return null;
  const cells = columns.map((column) => cell(column, null));
  return {
    root: element("tfoot", { role: "rowgroup" }, element("tr", { role: "row" }, cells)),
    show: (items) => columns.forEach(({ total }, at) => setText(cells[at], total ? total(items) : "")),
  };
};

// `makeRow(item)` returns { cells, update(item) }; a cell is a node or a string, in the order of the columns. `steady`
// is for tables that update by themselves: their rows are neither moved nor removed while the user interacts with them.
export const createTable = ({ caption, columns, empty, keyOf, makeRow, steady = false }) => {
  let items = [];
  const body = element("tbody", { role: "rowgroup" });
  const header = createHeader(columns, () => render(false));
  const totals = createTotals(columns);
  const table = element(
    "table",
    { role: "table" },
    element("caption", { class: "sr-only" }, caption),
    header.root,
    body,
    totals?.root,
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

  function render(isSteady) {
    const newRows = new Map();
    for (const item of header.inOrder(items)) {
      const key = keyOf(item);
      const existing = rows.get(key);
      if (existing) existing.update?.(item, existing.row);
      newRows.set(key, existing ?? createRow(item));
    }
    if (!isSteady || !isInUse(body)) reorder(newRows);
    else for (const [key, entry] of newRows) if (!rows.has(key)) body.append(rows.set(key, entry).get(key).row);
    totals?.show(items);
    if (totals) totals.root.hidden = items.length < 2;
    scroll.hidden = rows.size === 0;
    note.hidden = rows.size > 0;
  }

  scroll.hidden = true;
  return {
    root,
    show: (newItems) => {
      items = newItems;
      render(steady);
    },
  };
};
