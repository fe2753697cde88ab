// Table of all nodes.
import { byId, element, fill, setClass, setText } from "./dom.js";
import { count, latency, moment, rate } from "./format.js";
import { commonPolicy } from "./health.js";
import { createTable } from "./table.js";
import { longText, shortText } from "./text.js";

// A frame of a large fleet does not contain all nodes.
export const nodesTotal = ({ nodes, nodes_total: total }) => total ?? nodes.length;

const COLUMNS = [
  { name: "Node" },
  { name: "State", look: "tight" },
  { name: "Store", look: "tight" },
  { name: "Allowed/s", look: "number" },
  { name: "Refused/s", look: "number" },
  { name: "p99", look: "number" },
  { name: "Policy", look: "tight" },
  { name: "Version" },
  { name: "Warning" },
];

const BREAKER_TEXT = { closed: "connected", open: "unreachable", half_open: "being probed" };

const storeText = ({ breaker, isMemory }) => {
  if (breaker === null) return isMemory ? "memory" : "–";
  return BREAKER_TEXT[breaker] ?? breaker;
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
    setText(state, isUp ? "● Up" : "✕ Down");
    setClass(state, isUp ? "good" : "bad");
    state.title = `registered ${moment(node.registered_at)}`;
    setText(store, storeText(node));
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
