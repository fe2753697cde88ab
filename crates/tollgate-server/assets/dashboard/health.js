// Health panel: the most severe problem as a headline, since when it exists, the other problems below it, and the newest
// events. The messages contain no numbers that change every second, so that screen readers announce a message only when
// a problem appears or ends; the running time is in an element of its own.
import { byId, element, fill, setClass, setText } from "./dom.js";
import { ago, elapsed, moment } from "./format.js";
import { nodeNow } from "./node-time.js";
import { longText, shortText, visible } from "./text.js";

// Time after the start of a node during which a missing report is not a problem.
const REPORT_GRACE_MS = 15_000;
// Newest events in the panel, and their maximum age.
const MAX_EVENTS = 3;
const EVENT_AGE_MS = 3_600_000;

export const isDisconnected = (breaker) => breaker !== null && breaker !== undefined && breaker !== "closed";

const names = (nodes) => {
  const ids = nodes.map(({ id }) => id);
  const shown = ids.length > 3 ? [...ids.slice(0, 3), `${ids.length - 3} more`] : ids;
  return shown.length > 1 ? `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}` : shown[0];
};

const plural = (nodes, one, many) => `${names(nodes)} ${nodes.length > 1 ? many : one}`;

// A problem: { level, text, since, reason }. `since` is the time of its start in ms, or null.
const bad = (text, since = null, reason = null) => ({ level: "bad", text, since, reason });
const warn = (text, since = null) => ({ level: "warn", text, since });

const earliest = (times) => {
  const known = times.filter((time) => time !== null && time !== undefined);
  return known.length > 0 ? Math.min(...known) : null;
};

const timeOf = (time) => (typeof time === "string" ? Date.parse(time) : (time ?? null));

const storeProblems = ({ store, nodes }) => {
  const problems = [];
  const disconnected = nodes.filter(({ state, breaker }) => state === "Up" && isDisconnected(breaker));
  if (isDisconnected(store.breaker)) {
    const text = store.breaker === "open" ? "Redis is unreachable" : "Redis is being probed";
    problems.push(bad(text, timeOf(store.lost_since), store.loss_reason ?? store.warning));
  } else if (disconnected.length > 0) {
    const since = earliest(disconnected.map((node) => timeOf(node.lost_since)));
    problems.push(bad(`${names(disconnected)} cannot reach Redis`, since));
  }
  if (store.warning && !isDisconnected(store.breaker)) problems.push(warn(store.warning));
  if (store.max_keys && store.keys >= 0.9 * store.max_keys)
    problems.push(warn("The memory store has reached 90 % of its maximum number of keys (--max-keys)"));
  return problems;
};

// The policy that most nodes run; in a tie, that of the serving node.
export const commonPolicy = (nodes, servingPolicy) => {
  const votes = new Map([[servingPolicy, 0.5]]);
  for (const { policy, state } of nodes) if (policy && state === "Up") votes.set(policy, (votes.get(policy) ?? 0) + 1);
  return [...votes].reduce((winner, entry) => (entry[1] > winner[1] ? entry : winner))[0];
};

const nodeProblems = ({ nodes, store }, policy, notReporting) => {
  const problems = [];
  const silent = nodes.filter((node) => node.silent);
  const seen = earliest(silent.map((node) => timeOf(node.last_seen)));
  if (silent.length > 0) problems.push(warn(plural(silent, "is silent", "are silent"), seen));
  const down = nodes.filter((node) => node.state !== "Up" && !node.silent);
  if (down.length > 0) problems.push(warn(plural(down, "is down", "are down")));
  const common = commonPolicy(nodes, policy?.version ?? null);
  const different = nodes.filter((node) => node.state === "Up" && node.policy && node.policy !== common);
  if (different.length > 0) problems.push(warn(plural(different, "runs", "run").concat(" a different policy")));
  const others = notReporting.filter((node) => !node.silent);
  if (others.length > 0) problems.push(warn(plural(others, "sends", "send").concat(" no reports")));
  for (const { id, warning, state } of nodes)
    if (warning && state === "Up" && warning !== store.warning) problems.push(warn(`${id}: ${warning}`));
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

const policyProblem = ({ error }, since) => bad("The policy file could not be loaded; the previous policy stays active", since, error);

const frameProblems = (frame, policy, notReporting, rejectedSince) => [
  ...storeProblems(frame),
  ...(frame.now.errors > 0 && frame.store.breaker === "closed" ? [warn("Some Redis calls fail")] : []),
  ...(frame.now.degraded > 0 && !isDisconnected(frame.store.breaker)
    ? [warn("Some decisions are made without Redis")]
    : []),
  ...(policy?.error ? [policyProblem(policy, rejectedSince)] : []),
  ...nodeProblems(frame, policy, notReporting),
];

const connectionProblems = ({ connection, frame }) =>
  connection === "silent" ? [bad("No updates from this node; the data below is outdated", frame?.t ?? null)] : [];

// Returns the problems, most severe first, without duplicates.
const findProblems = (state, notReporting, rejectedSince) => {
  const { frame, policy } = state;
  const all = [...connectionProblems(state), ...(frame ? frameProblems(frame, policy, notReporting, rejectedSince) : [])];
  const unique = [...new Map(all.map((problem) => [problem.text, problem])).values()];
  return [...unique.filter(({ level }) => level === "bad"), ...unique.filter(({ level }) => level !== "bad")];
};

const SIGNS = { bad: "✕", warn: "!", ok: "✓", wait: "…" };

const sinceText = (since) => (since ? `since ${moment(since)}, for ${elapsed(nodeNow() - since)}` : "");

const EFFECTS = { deny: "Every request refused", allow: "Every request allowed", local: "By the share of each node" };

// Rules whose decisions do not depend on Redis: unlimited ones, blocks, and those that a node counts itself.
const isIndependent = ({ mode, distributed, limits }) =>
  mode === "unlimited" || distributed !== "on" || limits.every((limit) => limit === "blocked");

// What the rules do while Redis is lost: [[effect, rules]…].
const effectsOf = (policy) => {
  const affected = (policy?.rules ?? []).filter((rule) => !isIndependent(rule));
  return Object.entries(EFFECTS)
    .map(([value, text]) => [text, affected.filter((rule) => rule.on_store_loss === value).map(({ rule }) => rule)])
    .filter(([, rules]) => rules.length > 0);
};

const effectLine = ([text, rules]) => {
  const shown = rules.slice(0, 4).flatMap((rule, at) => [at > 0 ? ", " : "", element("strong", {}, shortText(rule))]);
  const more = rules.length > 4 ? ` and ${rules.length - 4} more` : "";
  return element("li", {}, `${text}: `, ...shown, more);
};

const eventLine = ({ at, name, className, text }) =>
  element(
    "li",
    { title: visible(text) },
    element("span", { class: "dim" }, `${moment(at)} `),
    element("b", { class: className }, name),
    text ? element("bdi", { dir: "auto" }, ` ${visible(text)}`) : null,
  );

export const createHealth = (events) => {
  const section = byId("health");
  const silentNodes = createSilentNodes();

  return {
    update: (state) => {
      const { frame, policy, connection } = state;
      const rejectedSince = frame ? events.policyRejectedSince(frame.node) : null;
      const [first, ...others] = findProblems(state, frame ? silentNodes(frame) : [], rejectedSince);
      const noProblem = { level: connection === "live" ? "ok" : "wait", text: connection === "live" ? "No problems detected" : "Waiting for data" };
      const { level, text } = first ?? noProblem;
      setClass(section, level);
      fill(byId("health-message"), [level, text], () => [
        element("span", { class: "sign", "aria-hidden": "true" }, SIGNS[level]),
        longText(text),
      ]);
      setText(byId("health-since"), first ? sinceText(first.since) : "");
      fill(byId("health-reason"), first?.reason ?? null, (reason) => (reason ? longText(reason) : null));
      const isLost = frame && isDisconnected(frame.store.breaker);
      fill(byId("health-effects"), isLost ? effectsOf(policy) : [], (effects) => effects.map(effectLine));
      const lines = others.map(({ text: other, since, reason }) => [
        reason ? `${other}: ${reason}` : other,
        since ? ago(nodeNow() - since) : "",
      ]);
      fill(byId("health-more"), lines, () =>
        lines.map(([other, since]) => element("li", {}, longText(other), since ? element("span", { class: "dim" }, ` ${since}`) : null)),
      );
      const newest = frame ? events.newest(nodeNow() - EVENT_AGE_MS, MAX_EVENTS) : [];
      fill(byId("health-events"), newest, () => newest.map(eventLine));
      byId("health-changes").hidden = newest.length === 0;
    },
  };
};
