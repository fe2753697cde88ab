// The nodes of the fleet.
import { byId, element, fill, setClass, setText } from "./dom.js";
import { count, latency, moment, rate } from "./format.js";
import { commonPolicy } from "./health.js";
import { createTable } from "./table.js";
import { said, sentence } from "./text.js";

// Of a large fleet not all nodes are told.
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

const WORDS = { closed: "answers", open: "lost", half_open: "being tried" };

const storeOf = ({ breaker, inMemory }) => {
  if (breaker === null) return inMemory ? "memory" : "–";
  return WORDS[breaker] ?? breaker;
};

const makeRow = () => {
  const cells = COLUMNS.map(() => element("span"));
  const [id, state, breaker, allowed, refused, slow, policy, version, warning] = cells;
  const update = (node) => {
    fill(id, [node.id, node.address, node.serves], () => [
      element("strong", {}, said(node.id)),
      element("span", { class: "dim" }, " ", said(node.address), node.serves ? ", serves this page" : ""),
    ]);
    const up = node.state === "Up";
    setText(state, up ? "● Up" : "✕ Down");
    setClass(state, up ? "good" : "bad");
    state.title = `registered ${moment(node.registered_at)}`;
    setText(breaker, storeOf(node));
    setClass(breaker, node.breaker === null || node.breaker === "closed" ? "" : "bad");
    setText(allowed, node.heard ? rate(node.allowed) : "–");
    setText(refused, node.heard ? rate(node.refused) : "–");
    setText(slow, node.heard ? latency(node.p99_us) : "–");
    fill(policy, [node.policy, node.differs], () => [
      element("code", {}, said(node.policy?.slice(0, 12) ?? "–")),
      node.differs ? element("span", { class: "tag warn" }, "differs") : "",
    ]);
    fill(version, node.version, () => said(node.version ?? "–"));
    fill(warning, [node.warning, node.heard, up], () =>
      sentence(node.warning ?? (node.heard || !up ? "–" : "tells no figures")),
    );
    setClass(warning, node.warning ? "warn" : "dim");
  };
  return { cells, update };
};

export const createNodes = () => {
  const table = createTable({
    steady: true,
    caption: "Nodes of the fleet",
    columns: COLUMNS,
    empty: "No node has said that it is there.",
    keyOf: ({ id }) => id,
    make: makeRow,
  });
  const left = element("p", { class: "dim", hidden: true });
  byId("nodes-table").append(table.root, left);
  return {
    update: ({ frame, policy }) => {
      if (!frame) return;
      const common = commonPolicy(frame.nodes, policy?.version ?? null);
      table.show(
        frame.nodes.map((node) => ({
          ...node,
          serves: node.id === frame.node,
          inMemory: frame.store.kind === "memory",
          differs: node.state === "Up" && node.policy !== null && node.policy !== common,
        })),
      );
      const more = nodesTotal(frame) - frame.nodes.length;
      left.hidden = more <= 0;
      setText(left, `and ${count(more)} more`);
    },
  };
};
