// Lists that come in pages: a table, a button for more, and what went wrong.
import { button, element, setText } from "./dom.js";

// A page may be empty and yet have another behind it; so many are turned at most before asking whether to go on.
const TURNS = 10;

// `load(cursor)` answers { items, cursor }; a cursor of null is the end.
export const createPages = (table, load) => {
  const told = element("p", { class: "problem", role: "status" });
  const more = button("More", () => turn(), { class: "quiet", hidden: true });
  const root = element("div", {}, table.root, more, told);
  let items = [];
  let cursor = null;
  let asked = 0;

  // What could not be read is tried once more when there is somebody to read from again.
  const again = () => {
    if (root.isConnected && told.textContent !== "") turn();
  };

  const read = async (mine) => {
    let found = [];
    for (let turns = 0; turns < TURNS && found.length === 0; turns += 1) {
      const page = await load(cursor);
      if (mine !== asked) return;
      found = page.items;
      cursor = page.cursor;
      if (cursor === null) break;
    }
    items = items.concat(found);
  };

  const turn = async () => {
    asked += 1;
    const mine = asked;
    more.disabled = true;
    try {
      await read(mine);
      if (mine !== asked) return;
      setText(told, items.length === 0 && cursor !== null ? "Nothing yet; there is more to look through." : "");
      table.root.hidden = false;
    } catch (problem) {
      if (mine !== asked) return;
      setText(told, `It could not be read: ${problem.message}.`);
      table.root.hidden = items.length === 0;
      addEventListener("tollgate:back", again, { once: true });
    }
    table.show(items);
    more.hidden = cursor === null;
    more.disabled = false;
  };

  return {
    root,
    restart: () => {
      items = [];
      cursor = null;
      return turn();
    },
    forget: () => {
      asked += 1;
      items = [];
      table.show(items);
      setText(told, "");
      more.hidden = true;
    },
  };
};
