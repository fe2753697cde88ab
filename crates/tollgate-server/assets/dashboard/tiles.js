// The figures of now, large.
import { byId, element, setClass, setText } from "./dom.js";
import { count, latency, percent, rate } from "./format.js";

const storeTile = ({ store }) => {
  const name = store.kind === "memory" ? "Memory" : "Redis";
  const full = store.keys !== null && store.max_keys ? `${count(store.keys)} of ${count(store.max_keys)} keys` : null;
  if (store.breaker === null) return { value: name, below: full ?? "counters in this process", level: "" };
  const states = { closed: [name, "answers", ""], open: [`${name} lost`, "not asked", "bad"] };
  const [value, word, level] = states[store.breaker] ?? [`${name} tried`, "not trusted yet", "warn"];
  return { value, below: `${word}: breaker ${store.breaker.replace("_", "-")}`, level };
};

const nodesTile = ({ nodes, scope }) => {
  const up = nodes.filter(({ state }) => state === "Up").length;
  const below = scope === "fleet" ? "figures of all" : "figures of this one";
  return { value: `${up} of ${nodes.length}`, below, level: up < nodes.length ? "warn" : "" };
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
  Degraded: ({ now }) => ({
    value: rate(now.degraded),
    unit: "/s",
    below: now.degraded > 0 ? "decided without Redis" : "none without Redis",
    level: now.degraded > 0 ? "warn" : "",
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
  byId("tiles").append(...tiles.map(({ root }) => root));
  return {
    update: ({ frame }) => {
      if (frame) for (const { tell, update } of tiles) update(tell(frame));
    },
  };
};
