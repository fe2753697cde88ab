// Keys that are refused now. They are loaded on request only, because the node searches all counters for them.
import { request } from "./api.js";
import { byId } from "./dom.js";
import { count, duration, moment } from "./format.js";
import { nodeNow } from "./node-time.js";
import { createPagedList } from "./paged-list.js";
import { formatQuery } from "./query.js";
import { queryOf, whyButton } from "./refused.js";
import { createTable } from "./table.js";
import { keyWithTenant, longText, ruleAndLimit } from "./text.js";

const COLUMNS = [
  { name: "Key", sort: ({ key }) => key, total: (blocks) => `${count(blocks.length)} keys` },
  { name: "Refused by", sort: ({ rule }) => rule },
  { name: "Until", look: "tight", sort: ({ blocked_until: until }) => (until === null ? Infinity : Date.parse(until)) },
  { name: "Reason" },
  { name: "Explain", hidden: true },
];

const untilText = (time) => {
  if (time === null) return "permanently";
  const ms = Date.parse(time) - nodeNow();
  return ms > 0 ? `${moment(time)}, in ${duration(ms)}` : moment(time);
};

// Removes the rule and the limit from the reason, because another column shows them.
const reasonText = ({ rule, name, reason }) => {
  const prefix = `rule ${rule}, limit ${name}: `;
  return reason.startsWith(prefix) ? reason.slice(prefix.length) : reason;
};

// If the key was refused recently, the facts of that request are known.
const queryFor = (block, recent) => {
  const same = recent.find(
    (entry) => entry.key === block.key && entry.tenant === block.tenant && entry.rule === block.rule,
  );
  return same ? queryOf(same) : formatQuery({ client: block.key }, block.tenant);
};

export const createBlocks = ({ recentlyRefused, onWhy }) => {
  const table = createTable({
    caption: "Keys refused now",
    columns: COLUMNS,
    empty: "No key is refused now.",
    keyOf: (block) => JSON.stringify([block.key, block.tenant, block.rule, block.name, block.blocked_until]),
    makeRow: (block) => ({
      cells: [
        keyWithTenant(block.key, block.tenant),
        ruleAndLimit(block.rule, block.limit_text, block.node),
        untilText(block.blocked_until),
        longText(reasonText(block)),
        whyButton(block.key, () => onWhy(queryFor(block, recentlyRefused()))),
      ],
    }),
  });
  const list = createPagedList(table, async (cursor) => {
    const query = { prefix: byId("blocks-prefix").value, limit: 50, cursor };
    const page = await request("GET", "/api/blocks", { query });
    return { items: page.blocked, cursor: page.cursor };
  });
  list.root.hidden = true;
  byId("blocks-list").append(list.root);
  byId("blocks-form").addEventListener("submit", (event) => {
    event.preventDefault();
    list.root.hidden = false;
    list.reload();
  });
};
