// The figures of now, large.
import { byId, element, setClass, setText } from "./dom.js";
import { count, latency, percent, rate } from "./format.js";
import { nodesTotal } from "./nodes.js";

const storeTile = ({ store }) => {
  const name = store.kind === "memory" ? "Memory" : "Redis";
  const full = store.keys !== null && store.max_keys ? `${count(store.keys)} of ${count(store.max_keys)} keys` : null;
  if (store.breaker === null) return { value: name, below: full ?? "counters in this process", level: "" };
  const states = { closed: [name, "answers", ""], open: [`${name} lost`, "not asked", "bad"] };
  const [value, word, level] = states[store.breaker] ?? [`${name} tried`, "not trusted yet", "warn"];
  return { value, below: `${word}: breaker ${store.breaker.replace("_", "-")}`, level };
};

// Of the others Redis knows; while it is lost, only how many there were.
const nodesTile = (frame, fleet) => {
  const { nodes, scope, store } = frame;
  const up = nodes.filter(({ state }) => state === "Up").length;
  if (scope !== "fleet" && store.kind !== "memory")
    return { value: `${up} of ${fleet ?? "?"}`, below: "Redis knows the others", level: "warn" };
  const total = nodesTotal(frame);
  return {
    value: `${total > nodes.length ? "≥ " : ""}${count(up)} of ${count(total)}`,
    below: scope === "fleet" ? "figures of all" : "figures of this one",
    level: up < nodes.length ? "warn" : "",
  };
};

const withoutStore = ({ now, store }) => {
  if (store.kind === "memory") return "no store to lose";
  return now.degraded > 0 ? "decided without Redis" : "none without Redis";
};

const TILES = {
  Allowed: ({ now }) => ({ value: rate(now.allowed), unit: "/s", below: "over 5 s" }),
  Refused: ({ now }) => ({
    value: rate(now.refused),
    unit: "/s",
    below: `${percent(now.refused, now.allowed + now.refused)} of all`,
  }),
  "Time to decide": ({ now }) => ({ value: latency(now.p99_us), below: `p99; p50 ${latency(now.p50_us)}` }),
  Store: storeTile,
  "Nodes up": nodesTile,
  Degraded: (frame) => ({
    value: rate(frame.now.degraded),
    unit: "/s",
    below: withoutStore(frame),
    level: frame.now.degraded > 0 ? "warn" : "",
  }),
};

const tile = (name) => {
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
    update: (told) => {
      setText(value, told.value);
      setText(unit, told.unit ?? "");
      setText(below, told.below);
      setClass(root, `tile ${told.level ?? ""}`.trim());
    },
  };
};

export const createTiles = () => {
  const tiles = Object.entries(TILES).map(([name, tell]) => ({ tell, ...tile(name) }));
  let fleet = null; // how many nodes there were when that was known last
  byId("tiles").append(...tiles.map(({ root }) => root));
  return {
    update: ({ frame }) => {
      if (!frame) return;
      if (frame.scope === "fleet") fleet = nodesTotal(frame);
      for (const { tell, update } of tiles) update(tell(frame, fleet));
    },
  };
};
