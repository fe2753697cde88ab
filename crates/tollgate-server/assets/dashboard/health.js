// What an operator should know first: one sentence, and beneath it whatever else is not as it should be. No figures,
// so that it changes only when something does.
import { byId, element, fill, setClass } from "./dom.js";
import { sentence as prose } from "./text.js";

// So long may a node that has just come tell nothing.
const MUTE_MS = 15_000;

export const lost = (breaker) => breaker !== null && breaker !== undefined && breaker !== "closed";

const names = (nodes) => {
  const ids = nodes.map(({ id }) => id);
  const shown = ids.length > 3 ? [...ids.slice(0, 3), `${ids.length - 3} more`] : ids;
  return shown.length > 1 ? `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}` : shown[0];
};

const ofStore = ({ store, nodes }) => {
  const found = [];
  const cut = nodes.filter(({ state, breaker }) => state === "Up" && lost(breaker));
  if (lost(store.breaker)) {
    found.push([
      "bad",
      store.breaker === "open"
        ? "Redis is lost: nodes decide by their share of each limit"
        : "Redis is being tried again; until it answers, nodes decide by their share",
    ]);
  } else if (cut.length > 0) found.push(["bad", `Redis is lost to ${names(cut)}, deciding by share`]);
  if (store.warning) found.push(["warn", store.warning]);
  if (store.max_keys && store.keys >= 0.9 * store.max_keys)
    found.push(["warn", "Nearly as many keys as memory may hold"]);
  return found;
};

// The policy that most nodes have; the serving node's where none has more.
export const commonPolicy = (nodes, own) => {
  const votes = new Map([[own, 0.5]]);
  for (const { policy, state } of nodes) if (policy && state === "Up") votes.set(policy, (votes.get(policy) ?? 0) + 1);
  return [...votes].reduce((most, one) => (one[1] > most[1] ? one : most))[0];
};

const ofNodes = ({ nodes, store }, policy, mute) => {
  const found = [];
  const down = nodes.filter(({ state }) => state !== "Up");
  if (down.length > 0) found.push(["warn", `${names(down)} ${down.length > 1 ? "are" : "is"} down`]);
  const common = commonPolicy(nodes, policy?.version ?? null);
  const others = nodes.filter((node) => node.state === "Up" && node.policy && node.policy !== common);
  if (others.length > 0)
    found.push(["warn", `${names(others)} ${others.length > 1 ? "have" : "has"} another policy than the others`]);
  if (mute.length > 0) found.push(["warn", `${names(mute)} ${mute.length > 1 ? "tell" : "tells"} nothing`]);
  for (const { id, warning, state } of nodes)
    if (warning && state === "Up" && warning !== store.warning) found.push(["warn", `${id}: ${warning}`]);
  return found;
};

// Nodes that are up and yet have told no figures for a while. A frame of one node alone tells nothing of others.
const createMute = () => {
  let since = new Map();
  return ({ t, scope, nodes }) => {
    const unheard = scope === "fleet" ? nodes.filter(({ state, heard }) => state === "Up" && !heard) : [];
    since = new Map(unheard.map(({ id }) => [id, since.get(id) ?? t]));
    return unheard.filter(({ id }) => t - since.get(id) >= MUTE_MS);
  };
};

// Whatever the store left unanswered was decided all the same.
const ofFrame = (frame, policy, mute) => [
  ...ofStore(frame),
  ...(frame.now.errors > 0 && frame.store.breaker === "closed"
    ? [["warn", "Redis left some questions unanswered"]]
    : []),
  ...(frame.now.degraded > 0 && !lost(frame.store.breaker) ? [["warn", "Some decisions are made without Redis"]] : []),
  ...(policy?.error ? [["bad", `The policy file is not in force as it is now: ${policy.error}`]] : []),
  ...ofNodes(frame, policy, mute),
];

const ofConnection = (connection) =>
  connection === "silent" ? [["bad", "No news from this node; what is below is old"]] : [];

// [[level, sentence]…], worst first; a sentence that comes twice is told once.
const findings = ({ frame, policy, connection }, mute) => {
  const all = [...ofConnection(connection), ...(frame ? ofFrame(frame, policy, mute) : [])];
  const once = [...new Map(all.map((one) => [one[1], one])).values()];
  return [...once.filter(([level]) => level === "bad"), ...once.filter(([level]) => level !== "bad")];
};

const SIGNS = { bad: "✕", warn: "!", ok: "✓", wait: "…" };

export const createHealth = () => {
  const section = byId("health");
  const sentence = byId("health-sentence");
  const more = byId("health-more");
  const muteOf = createMute();

  return {
    update: (state) => {
      const [first, ...others] = findings(state, state.frame ? muteOf(state.frame) : []);
      const [level, text] = first ?? (state.connection === "live" ? ["ok", "All well"] : ["wait", "Waiting for news"]);
      setClass(section, level);
      fill(sentence, [level, text], () => [
        element("span", { class: "sign", "aria-hidden": "true" }, SIGNS[level]),
        prose(text),
      ]);
      fill(more, others, () => others.map(([, other]) => element("li", {}, prose(other))));
    },
  };
};
