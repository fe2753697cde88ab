// Health panel: the most severe problem as a headline and the others below it. The messages contain no numbers that
// change every second, so that screen readers announce a message only when a problem appears or ends.
import { byId, element, fill, setClass } from "./dom.js";
import { longText } from "./text.js";

// Time after the start of a node during which a missing report is not a problem.
const REPORT_GRACE_MS = 15_000;

export const isDisconnected = (breaker) => breaker !== null && breaker !== undefined && breaker !== "closed";

const names = (nodes) => {
  const ids = nodes.map(({ id }) => id);
  const shown = ids.length > 3 ? [...ids.slice(0, 3), `${ids.length - 3} more`] : ids;
  return shown.length > 1 ? `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}` : shown[0];
};

const storeProblems = ({ store, nodes }) => {
  const problems = [];
  const disconnected = nodes.filter(({ state, breaker }) => state === "Up" && isDisconnected(breaker));
  if (isDisconnected(store.breaker)) {
    problems.push([
      "bad",
      store.breaker === "open"
        ? "Redis is unreachable: nodes decide by their share of each limit"
        : "Redis is being probed; until it responds, nodes decide by their share of each limit",
    ]);
  } else if (disconnected.length > 0)
    problems.push(["bad", `${names(disconnected)} cannot reach Redis: decisions by share of each limit`]);
  if (store.warning) problems.push(["warn", store.warning]);
  if (store.max_keys && store.keys >= 0.9 * store.max_keys)
    problems.push(["warn", "The memory store has reached 90 % of its maximum number of keys (--max-keys)"]);
  return problems;
};

// The policy that most nodes run; in a tie, that of the serving node.
export const commonPolicy = (nodes, servingPolicy) => {
  const votes = new Map([[servingPolicy, 0.5]]);
  for (const { policy, state } of nodes) if (policy && state === "Up") votes.set(policy, (votes.get(policy) ?? 0) + 1);
  return [...votes].reduce((winner, entry) => (entry[1] > winner[1] ? entry : winner))[0];
};

const nodeProblems = ({ nodes, store }, policy, silent) => {
  const problems = [];
  const down = nodes.filter(({ state }) => state !== "Up");
  if (down.length > 0) problems.push(["warn", `${names(down)} ${down.length > 1 ? "are" : "is"} down`]);
  const common = commonPolicy(nodes, policy?.version ?? null);
  const different = nodes.filter((node) => node.state === "Up" && node.policy && node.policy !== common);
  if (different.length > 0)
    problems.push(["warn", `${names(different)} ${different.length > 1 ? "run" : "runs"} a different policy`]);
  if (silent.length > 0) problems.push(["warn", `${names(silent)} ${silent.length > 1 ? "send" : "sends"} no reports`]);
  for (const { id, warning, state } of nodes)
    if (warning && state === "Up" && warning !== store.warning) problems.push(["warn", `${id}: ${warning}`]);
  return problems;
};

// Returns a function that finds nodes that are up but have sent no report for a while. A frame of a single node has no
// reports of other nodes.
const createSilentNodes = () => {
  let since = new Map();
  return ({ t, scope, nodes }) => {
    const silent = scope === "fleet" ? nodes.filter(({ state, reporting }) => state === "Up" && !reporting) : [];
    since = new Map(silent.map(({ id }) => [id, since.get(id) ?? t]));
    return silent.filter(({ id }) => t - since.get(id) >= REPORT_GRACE_MS);
  };
};

const frameProblems = (frame, policy, silent) => [
  ...storeProblems(frame),
  ...(frame.now.errors > 0 && frame.store.breaker === "closed" ? [["warn", "Some Redis calls fail"]] : []),
  ...(frame.now.degraded > 0 && !isDisconnected(frame.store.breaker)
    ? [["warn", "Some decisions are made without Redis"]]
    : []),
  ...(policy?.error
    ? [["bad", `The policy file could not be loaded; the previous policy stays active: ${policy.error}`]]
    : []),
  ...nodeProblems(frame, policy, silent),
];

const connectionProblems = (connection) =>
  connection === "silent" ? [["bad", "No updates from this node; the data below is outdated"]] : [];

// Returns [[level, text]…], most severe first, without duplicates.
const findProblems = ({ frame, policy, connection }, silent) => {
  const all = [...connectionProblems(connection), ...(frame ? frameProblems(frame, policy, silent) : [])];
  const unique = [...new Map(all.map((problem) => [problem[1], problem])).values()];
  return [...unique.filter(([level]) => level === "bad"), ...unique.filter(([level]) => level !== "bad")];
};

const SIGNS = { bad: "✕", warn: "!", ok: "✓", wait: "…" };

export const createHealth = () => {
  const section = byId("health");
  const message = byId("health-message");
  const more = byId("health-more");
  const silentNodes = createSilentNodes();

  return {
    update: (state) => {
      const [first, ...others] = findProblems(state, state.frame ? silentNodes(state.frame) : []);
      const noProblem = state.connection === "live" ? ["ok", "No problems detected"] : ["wait", "Waiting for data"];
      const [level, text] = first ?? noProblem;
      setClass(section, level);
      fill(message, [level, text], () => [
        element("span", { class: "sign", "aria-hidden": "true" }, SIGNS[level]),
        longText(text),
      ]);
      fill(more, others, () => others.map(([, other]) => element("li", {}, longText(other))));
    },
  };
};
