// Events of the fleet (/api/events), newest first: a table of them, the marks and outages for the charts, and the newest
// ones for the health panel. They are loaded again only when a frame announces a new one.
import { request } from "./api.js";
import { byId, element } from "./dom.js";
import { moment } from "./format.js";
import { createPagedList } from "./paged-list.js";
import { createTable } from "./table.js";
import { longText, shortText } from "./text.js";

const PAGE_SIZE = 50;
// Time within which the same event on other nodes has the same cause.
const SAME_EVENT_MS = 10_000;
// Events for the charts.
const MAX_MARKS = 200;

const KINDS = {
  store_lost: ["Redis lost", "bad"],
  store_back: ["Redis back", "good"],
  node_joined: ["node joined", ""],
  node_left: ["node left", ""],
  node_silent: ["node silent", "bad"],
  node_back: ["node back", "good"],
  policy_reloaded: ["policy reloaded", ""],
  policy_rejected: ["policy rejected", "bad"],
  override_set: ["override set", ""],
  override_removed: ["override removed", ""],
  client_reset: ["usage reset", ""],
};

export const eventName = ({ kind }) => KINDS[kind]?.[0] ?? kind.replaceAll("_", " ");
const eventClass = ({ kind }) => KINDS[kind]?.[1] ?? "";

// Times are RFC 3339 texts or milliseconds.
const timeOf = ({ at }) => (typeof at === "number" ? at : Date.parse(at));

const detailOf = ({ detail }) => (typeof detail === "string" ? detail : "");

const makeRow = (event) => ({
  cells: [
    element("span", { title: new Date(timeOf(event)).toISOString() }, moment(timeOf(event))),
    element("span", { class: eventClass(event) }, eventName(event)),
    event.node ? shortText(event.node) : "–",
    longText(detailOf(event) || "–"),
  ],
});

// Times from the loss of Redis to its return, over all nodes. An outage that has not ended ends now.
const outagesOf = (events, now) => {
  const bands = [];
  const since = new Map();
  for (const event of [...events].reverse()) {
    if (event.kind === "store_lost" && !since.has(event.node)) since.set(event.node, timeOf(event));
    else if (event.kind === "store_back" && since.has(event.node)) {
      bands.push({ from: since.get(event.node), to: timeOf(event) });
      since.delete(event.node);
    }
  }
  return [...bands, ...[...since.values()].map((from) => ({ from, to: now }))];
};

// Merges overlapping bands, so that the outage of a fleet is as dark as that of one node.
const merged = (bands) => {
  const result = [];
  for (const band of [...bands].sort((a, b) => a.from - b.from)) {
    const last = result.at(-1);
    if (last && band.from <= last.to) last.to = Math.max(last.to, band.to);
    else result.push({ ...band });
  }
  return result;
};

// Adjacent events of the same kind within a few seconds, such as the loss of Redis on every node.
const groupsOf = (events) => {
  const groups = [];
  for (const event of events) {
    const [first] = groups.at(-1) ?? [];
    const isSame = first?.kind === event.kind && timeOf(first) - timeOf(event) <= SAME_EVENT_MS;
    if (isSame) groups.at(-1).push(event);
    else groups.push([event]);
  }
  return groups;
};

export const createEvents = (onChange) => {
  let latest; // the newest event that a frame announced
  let recent = [];
  const table = createTable({
    caption: "Events, newest first",
    columns: [
      ...["Time", "Event", "Node"].map((name) => ({ name, look: "tight" })),
      { name: "Detail" },
    ],
    empty: "No event in the last 24 hours.",
    keyOf: (event) => JSON.stringify(event),
    makeRow,
  });
  const list = createPagedList(table, async (cursor) => {
    const page = await request("GET", "/api/events", { query: { limit: PAGE_SIZE, cursor } });
    return { items: page.events, cursor: page.cursor };
  });
  byId("events-list").append(list.root);

  const load = async () => {
    await Promise.all([
      list.reload(),
      request("GET", "/api/events", { query: { limit: MAX_MARKS } })
        .then((page) => (recent = page.events))
        .catch(() => null),
    ]);
    onChange();
  };

  return {
    // Loads the events at the start and when a frame announces a new one.
    notice: (frame) => {
      const announced = JSON.stringify(frame.latest_event ?? null);
      if (announced === latest) return;
      latest = announced;
      load();
    },
    // Marks and bands for charts from `start` to `now`. The current outage is known from the frame, even without its
    // event.
    forCharts: (frame, start, now) => {
      const bands = outagesOf(recent, now);
      const lostSince = frame?.store.lost_since;
      if (lostSince) bands.push({ from: lostSince, to: now });
      const marks = recent.map((event) => ({
        t: timeOf(event),
        text: event.node ? `${eventName(event)} (${event.node})` : eventName(event),
      }));
      return { marks: marks.filter(({ t }) => t > start), bands: merged(bands).filter(({ to }) => to > start) };
    },
    // Time since when a node rejects its policy file, or null: that of the first rejection after the last reload.
    policyRejectedSince: (node) => {
      const policies = recent.filter((event) => event.node === node && event.kind.startsWith("policy_"));
      const reloaded = policies.findIndex(({ kind }) => kind !== "policy_rejected");
      const rejected = policies.slice(0, reloaded === -1 ? undefined : reloaded).at(-1);
      return rejected ? timeOf(rejected) : null;
    },
    // Events after `start`, at most `max`: [{ at, name, className, text }]. The same event of several nodes is one.
    newest: (start, max) =>
      groupsOf(recent.filter((event) => timeOf(event) >= start))
        .slice(0, max)
        .map((group) => ({
          at: timeOf(group[0]),
          name: eventName(group[0]),
          className: eventClass(group[0]),
          text: [[...new Set(group.map(({ node }) => node))].join(", "), detailOf(group[0])].filter(Boolean).join(": "),
        })),
  };
};
