// What an operator should know first: one sentence, and beneath it whatever else is not as it should be. No figures,
// so that it changes only when something does.
import { byId, element, fill, setClass } from "./dom.js";
import { sentence as prose } from "./text.js";

const lost = (breaker) => breaker !== null && breaker !== undefined && breaker !== "closed";

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

const ofNodes = ({ nodes }, policy) => {
  const found = [];
  const down = nodes.filter(({ state }) => state !== "Up");
  if (down.length > 0) found.push(["warn", `${names(down)} ${down.length > 1 ? "are" : "is"} down`]);
  const common = commonPolicy(nodes, policy?.version ?? null);
  const others = nodes.filter((node) => node.state === "Up" && node.policy && node.policy !== common);
  if (others.length > 0)
    found.push(["warn", `${names(others)} ${others.length > 1 ? "have" : "has"} another policy than the others`]);
  for (const { id, warning, state } of nodes) if (warning && state === "Up") found.push(["warn", `${id}: ${warning}`]);
  return found;
};

const ofFrame = (frame, policy) => [
  ...ofStore(frame),
  ...(frame.now.errors > 0 ? [["bad", "Some requests could not be decided"]] : []),
  ...(frame.now.degraded > 0 && !lost(frame.store.breaker) ? [["warn", "Some decisions are made without Redis"]] : []),
  ...(policy?.error ? [["bad", `The policy file is not in force as it is now: ${policy.error}`]] : []),
  ...ofNodes(frame, policy),
];

const ofConnection = (connection) =>
  connection === "silent" ? [["bad", "No news from this node; what is below is old"]] : [];

// [[level, sentence]…], worst first; a sentence that comes twice is told once.
const findings = ({ frame, policy, connection }) => {
  const all = [...ofConnection(connection), ...(frame ? ofFrame(frame, policy) : [])];
  const once = [...new Map(all.map((one) => [one[1], one])).values()];
  return [...once.filter(([level]) => level === "bad"), ...once.filter(([level]) => level !== "bad")];
};

const SIGNS = { bad: "✕", warn: "!", ok: "✓" };

export const createHealth = () => {
  const section = byId("health");
  const sentence = byId("health-sentence");
  const more = byId("health-more");

  return {
    update: (state) => {
      if (!state.frame && state.connection !== "silent") return;
      const [first, ...others] = findings(state);
      const [level, text] = first ?? ["ok", "All well"];
      setClass(section, level);
      fill(sentence, [level, text], () => [
        element("span", { class: "sign", "aria-hidden": "true" }, SIGNS[level]),
        prose(text),
      ]);
      fill(more, others, () => others.map(([, other]) => element("li", {}, prose(other))));
    },
  };
};
