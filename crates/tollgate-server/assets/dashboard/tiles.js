// Tiles with the current rates, the store and the nodes.
import { byId, element, setClass, setText } from "./dom.js";
import { count, latency, percent, rate } from "./format.js";
import { nodesTotal } from "./nodes.js";

const storeTile = ({ store }) => {
  const name = store.kind === "memory" ? "Memory" : "Redis";
  const keys = store.keys !== null && store.max_keys ? `${count(store.keys)} of ${count(store.max_keys)} keys` : null;
  if (store.breaker === null) return { value: name, below: keys ?? "counters in this process", level: "" };
  const states = {
    closed: { value: name, below: "connected", level: "" },
    open: { value: `${name} down`, below: "unreachable: breaker open", level: "bad" },
  };
  return states[store.breaker] ?? { value: `${name} probed`, below: "breaker half-open", level: "warn" };
};

const reportState = (nodes) => {
  const down = nodes.filter(({ state }) => state !== "Up").length;
  const silent = nodes.filter((node) => node.state === "Up" && node.silent).length;
  const waiting = nodes.filter(({ state, reporting }) => state === "Up" && !reporting).length;
  if (down > 0) return `${count(down)} down`;
  if (silent > 0) return `${count(silent)} silent`;
  return waiting > 0 ? `${count(waiting)} not reporting` : "all nodes reporting";
};

// Redis holds the list of nodes. While it is down, only the last known number of nodes is available.
const nodesTile = (frame, lastTotal) => {
  const { nodes, scope, store } = frame;
  const up = nodes.filter(({ state, silent }) => state === "Up" && !silent).length;
  if (scope !== "fleet" && store.kind !== "memory")
    return { value: `${up} of ${lastTotal ?? "?"}`, below: "other nodes unknown while Redis is down", level: "warn" };
  const total = nodesTotal(frame);
  return {
    value: `${total > nodes.length ? "≥ " : ""}${count(up)} of ${count(total)}`,
    below: scope === "fleet" ? reportState(nodes) : "data of this node only",
    level: up < nodes.length ? "warn" : "",
  };
};

const degradedText = ({ now, store }) => {
  if (store.kind === "memory") return "does not apply to memory";
  return now.degraded > 0 ? "decided without Redis" : "none without Redis";
};

const TILES = {
  Allowed: ({ now }) => ({ value: rate(now.allowed), unit: "/s", below: "average of 5 s" }),
  Refused: ({ now }) => ({
    value: rate(now.refused),
    unit: "/s",
    below: `${percent(now.refused, now.allowed + now.refused)} of requests`,
  }),
  "Decision time": ({ now }) => ({ value: latency(now.p99_us), below: `p99; p50 ${latency(now.p50_us)}` }),
  Store: storeTile,
  "Nodes up": nodesTile,
  Degraded: (frame) => ({
    value: rate(frame.now.degraded),
    unit: "/s",
    below: degradedText(frame),
    level: frame.now.degraded > 0 ? "warn" : "",
  }),
};

const createTile = (name) => {
  const value = element("span");
  const unit = element("span", { class: "unit" });
  const below = element("dd", { class: "below dim" });
  const root = element(
    "div",
    { class: "tile" },
    element("dt", {}, name),
    element("dd", { class: "value" }, value, unit),
    below,
  );
  return {
    root,
    update: (content) => {
      setText(value, content.value);
      setText(unit, content.unit ?? "");
      setText(below, content.below);
      setClass(root, `tile ${content.level ?? ""}`.trim());
    },
  };
};

export const createTiles = () => {
  const tiles = Object.entries(TILES).map(([name, contentOf]) => ({ contentOf, ...createTile(name) }));
  let lastTotal = null; // number of nodes when Redis was last available
  byId("tiles").append(...tiles.map(({ root }) => root));
  return {
    update: ({ frame }) => {
      if (!frame) return;
      if (frame.scope === "fleet") lastTotal = nodesTotal(frame);
      for (const { contentOf, update } of tiles) update(contentOf(frame, lastTotal));
    },
  };
};
