// Who is refused now: looked up when asked for, since it goes through the counters.
import { ask } from "./api.js";
import { byId } from "./dom.js";
import { duration, moment } from "./format.js";
import { createPages } from "./pages.js";
import { writeQuestion } from "./question.js";
import { questionOf, whyButton } from "./refused.js";
import { createTable } from "./table.js";
import { keyed, scoped, sentence } from "./text.js";
import { nodeNow } from "./time.js";

const COLUMNS = [
  { name: "Key" },
  { name: "Refused by", look: "tight" },
  { name: "Until", look: "tight" },
  { name: "Why" },
  { name: "Ask", hidden: true },
];

const until = (time) => {
  if (time === null) return "for good";
  const left = Date.parse(time) - nodeNow();
  return left > 0 ? `${moment(time)}, in ${duration(left)}` : moment(time);
};

// The reason begins with what another column tells.
const reasonOf = ({ rule, name, reason }) => {
  const known = `rule ${rule}, limit ${name}: `;
  return reason.startsWith(known) ? reason.slice(known.length) : reason;
};

// Of who was refused lately, more is known than the key.
const askAbout = (block, recent) => {
  const same = recent.find(
    (entry) => entry.key === block.key && entry.tenant === block.tenant && entry.rule === block.rule,
  );
  return same ? questionOf(same) : writeQuestion({ client: block.key }, block.tenant);
};

export const createBlocks = ({ recent, onWhy }) => {
  const table = createTable({
    caption: "Keys refused now",
    columns: COLUMNS,
    empty: "Nobody is refused now.",
    keyOf: (block) => JSON.stringify([block.key, block.tenant, block.rule, block.name, block.blocked_until]),
    make: (block) => ({
      cells: [
        keyed(block.key, block.tenant),
        scoped(block.rule, block.name, block.node),
        until(block.blocked_until),
        sentence(reasonOf(block)),
        whyButton(block.key, () => onWhy(askAbout(block, recent()))),
      ],
    }),
  });
  const pages = createPages(table, async (cursor) => {
    const page = await ask("GET", "/api/blocks", { query: { prefix: byId("blocks-prefix").value, limit: 50, cursor } });
    return { items: page.blocked, cursor: page.cursor };
  });
  pages.root.hidden = true;
  byId("blocks-list").append(pages.root);
  byId("blocks-form").addEventListener("submit", (event) => {
    event.preventDefault();
    pages.root.hidden = false;
    pages.restart();
  });
};
