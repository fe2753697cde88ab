// Table that is loaded page by page, with a button for the next page and an error line.
import { button, element, setText } from "./dom.js";

// Pages may be empty although more follow; after this many empty pages the user decides whether to continue.
const MAX_EMPTY_PAGES = 10;

// `load(cursor)` returns { items, cursor }; the cursor of the last page is null.
export const createPagedList = (table, load) => {
  const status = element("p", { class: "problem", role: "status" });
  const more = button("More", () => loadMore(), { class: "quiet", hidden: true });
  const root = element("div", {}, table.root, more, status);
  let items = [];
  let cursor = null;
  let generation = 0;

  // Repeats a failed load when the node and its store are available again.
  const retry = () => {
    if (root.isConnected && status.textContent !== "") loadMore();
  };

  const readPages = async (current) => {
    let found = [];
    for (let pages = 0; pages < MAX_EMPTY_PAGES && found.length === 0; pages += 1) {
      const page = await load(cursor);
      if (current !== generation) return;
      found = page.items;
      cursor = page.cursor;
      if (cursor === null) break;
    }
    items = items.concat(found);
  };

  const loadMore = async () => {
    generation += 1;
    const current = generation;
    more.disabled = true;
    try {
      await readPages(current);
      if (current !== generation) return;
      setText(status, items.length === 0 && cursor !== null ? "No match so far; press More to continue." : "");
      table.root.hidden = false;
    } catch (problem) {
      if (current !== generation) return;
      setText(status, `Loading failed: ${problem.message}.`);
      table.root.hidden = items.length === 0;
      addEventListener("tollgate:recovered", retry, { once: true });
    }
    table.show(items);
    more.hidden = cursor === null;
    more.disabled = false;
  };

  return {
    root,
    reload: () => {
      items = [];
      cursor = null;
      return loadMore();
    },
    clear: () => {
      generation += 1;
      items = [];
      table.show(items);
      setText(status, "");
      more.hidden = true;
    },
  };
};
