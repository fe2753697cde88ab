// Table of all nodes.
import { byId, element, fill, setClass, setText } from "./dom.js";
import { ago, count, latency, moment, percent, rate } from "./format.js";
import { commonPolicy } from "./health.js";
import { nodeNow } from "./node-time.js";
import { createTable } from "./table.js";
import { longText, shortText } from "./text.js";

// A frame of a large fleet does not contain all nodes.
export const nodesTotal = ({ nodes, nodes_total: total }) => total ?? nodes.length;

const COLUMNS = [
  { name: "Node", sort: ({ id }) => id, total: (nodes) => `${count(nodes.length)} nodes` },
  { name: "State", look: "tight", sort: (node) => stateText(node) },
  { name: "Store", look: "tight" },
  { name: "Allowed/s", look: "number", sort: ({ allowed }) => allowed, total: (nodes) => rate(sum(nodes, "allowed")) },
  { name: "Refused/s", look: "number", sort: ({ refused }) => refused, total: (nodes) => rate(sum(nodes, "refused")) },
  { name: "p99", look: "number", sort: (node) => node.p99_us },
  { name: "Policy", look: "tight" },
  { name: "Version" },
  { name: "Warning" },
];

const sum = (nodes, name) => nodes.reduce((total, node) => total + (node[name] ?? 0), 0);

// Times in frames are RFC 3339 texts or milliseconds.
const timeOf = (time) => (typeof time === "number" ? time : Date.parse(time));

const lastSeenText = ({ last_seen: seen }) => {
  if (!seen) return "";
  const time = timeOf(seen);
  return `, last seen ${moment(time)} (${ago(Math.max(0, nodeNow() - time))})`;
};

const stateText = (node) => {
  if (node.state !== "Up") return `✕ Down${lastSeenText(node)}`;
  return node.silent ? `○ Silent${lastSeenText(node)}` : "● Up";
};

const BREAKER_TEXT = { closed: "connected", open: "unreachable", half_open: "being probed" };

const storeText = ({ breaker, isMemory }) => {
  if (breaker === null) return isMemory ? "memory" : "–";
  return BREAKER_TEXT[breaker] ?? breaker;
};

// Leases of a node, and the share of checks decided from them; empty without leases.
const leasesText = ({ leases, leased, allowed, refused }) => {
  if (!leases && !leased) return "";
  const share = percent(leased, Math.max(allowed + refused, leased));
  return `${count(leases ?? 0)} ${leases === 1 ? "lease" : "leases"}, ${share} of checks`;
};

const makeRow = () => {
  const cells = COLUMNS.map(() => element("span"));
  const [id, state, store, allowed, refused, p99, policy, version, warning] = cells;
  const update = (node) => {
    fill(id, [node.id, node.address, node.isServing], () => [
      element("strong", {}, shortText(node.id)),
      element("span", { class: "dim" }, " ", shortText(node.address), node.isServing ? ", serves this page" : ""),
    ]);
    const isUp = node.state === "Up";
    setText(state, stateText(node));
    setClass(state, isUp && !node.silent ? "good" : "bad");
    state.title = `registered ${moment(node.registered_at)}`;
    fill(store, [storeText(node), leasesText(node)], ([text, leases]) => [
      text,
      leases ? element("div", { class: "dim" }, leases) : "",
    ]);
    setClass(store, node.breaker === null || node.breaker === "closed" ? "" : "bad");
    setText(allowed, node.reporting ? rate(node.allowed) : "–");
    setText(refused, node.reporting ? rate(node.refused) : "–");
    setText(p99, node.reporting ? latency(node.p99_us) : "–");
    fill(policy, [node.policy, node.hasOtherPolicy], () => [
      element("code", {}, shortText(node.policy?.slice(0, 12) ?? "–")),
      node.hasOtherPolicy ? element("span", { class: "tag warn" }, "differs") : "",
    ]);
    fill(version, node.version, () => shortText(node.version ?? "–"));
    fill(warning, [node.warning, node.reporting, isUp], () =>
      longText(node.warning ?? (node.reporting || !isUp ? "–" : "sends no reports")),
    );
    setClass(warning, node.warning ? "warn" : "dim");
  };
  return { cells, update };
};

export const createNodes = () => {
  const table = createTable({
    steady: true,
    caption: "Nodes",
    columns: COLUMNS,
    empty: "No node is registered.",
    keyOf: ({ id }) => id,
    makeRow,
  });
  const omitted = element("p", { class: "dim", hidden: true });
  byId("nodes-table").append(table.root, omitted);
  return {
    update: ({ frame, policy }) => {
      if (!frame) return;
      const common = commonPolicy(frame.nodes, policy?.version ?? null);
      table.show(
        frame.nodes.map((node) => ({
          ...node,
          isServing: node.id === frame.node,
          isMemory: frame.store.kind === "memory",
          hasOtherPolicy: node.state === "Up" && node.policy !== null && node.policy !== common,
        })),
      );
      const more = nodesTotal(frame) - frame.nodes.length;
      omitted.hidden = more <= 0;
      setText(omitted, `and ${count(more)} more`);
    },
  };
};
