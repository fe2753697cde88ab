// Entry point: connects the session, the event stream and the panels. All drawing happens here, at most once per
// animation frame, and never while the page is hidden.
import { createBlocks } from "./blocks.js";
import { byId, fill, setClass, setText } from "./dom.js";
import { createHealth, isDisconnected } from "./health.js";
import { createEvents } from "./events.js";
import { count } from "./format.js";
import { createHistory } from "./history.js";
import { createLive } from "./live.js";
import { createNodes, nodesTotal } from "./nodes.js";
import { setNodeTime } from "./node-time.js";
import { createOverrides } from "./overrides.js";
import { createPolicy } from "./policy.js";
import { createRanges } from "./ranges.js";
import { createRefusalsByRule } from "./refusals-by-rule.js";
import { createRefused } from "./refused.js";
import { createRollout } from "./rollout.js";
import { createSession } from "./session.js";
import { createStale } from "./stale.js";
import { shortText } from "./text.js";
import { createTiles } from "./tiles.js";
import { createTraffic } from "./traffic.js";
import { createWhy } from "./why.js";

const SESSION_RETRY_MS = 3000;
// Without frames, ages are updated by a timer.
const AGE_INTERVAL_MS = 1000;

// `view` is the selected time range for the charts: points, marks and outages.
const state = { policy: null, frame: null, history: createHistory(), view: null, connection: "connecting", read: true };
let isAdmin = false;
let isStreaming = false;

const policy = () => state.policy;
const overrides = createOverrides();
const why = createWhy({ policy, isAdmin: () => isAdmin, onOverride: overrides.edit });
createBlocks({ recentlyRefused: () => state.frame?.refused ?? [], onWhy: why.open });

const CONNECTION_TEXT = {
  connecting: "connecting",
  live: "live",
  reconnecting: "reconnecting",
  silent: "no updates, reconnecting",
};

const header = {
  update: ({ frame, connection, read }) => {
    setText(byId("connection"), CONNECTION_TEXT[connection]);
    byId("connection").hidden = !read;
    setClass(byId("connection"), connection === "live" ? "state live" : "state");
    if (!frame) return;
    const nodes = nodesTotal(frame);
    fill(byId("scope"), [frame.node, frame.scope, nodes], () => {
      const allNodes = nodes === 1 ? "1 node" : `all ${count(nodes)} nodes`;
      const scope = frame.scope === "fleet" ? allNodes : "this node only";
      return ["served by ", shortText(frame.node), ` · data of ${scope}`];
    });
  },
};

const events = createEvents(() => redraw());
const ranges = createRanges(state.history, () => redraw());

const panels = [
  header,
  createStale(),
  createHealth(events),
  createTiles(),
  createTraffic(),
  createRefused(why.open),
  createRefusalsByRule(),
  createNodes(),
  createRollout(),
  createPolicy(),
  overrides,
];

let animationFrame = 0;
const draw = () => {
  animationFrame = 0;
  const view = ranges.current();
  state.view = { ...view, ...events.forCharts(state.frame, view.now - view.range.span, view.now) };
  for (const panel of panels) panel.update(state);
};
function redraw() {
  if (animationFrame === 0 && !document.hidden) animationFrame = requestAnimationFrame(draw);
}
setInterval(() => {
  if (state.connection !== "live") redraw();
}, AGE_INTERVAL_MS);

// Whether the node and its store can serve requests of this page.
const isAvailable = () => state.connection === "live" && !isDisconnected(state.frame?.store.breaker);

const change = (changes) => {
  const wasAvailable = isAvailable();
  Object.assign(state, changes);
  if (isAvailable() && !wasAvailable) dispatchEvent(new Event("tollgate:recovered"));
  redraw();
};

const live = createLive({
  onState: (connection) => change({ connection }),
  onPolicy: (policy) => change({ policy }),
  // A long history comes in several events.
  onHistory: ({ points, first }) => {
    if (first === false) state.history.extend(points);
    else {
      state.history.replace(points);
      ranges.reload();
    }
    redraw();
  },
  onFrame: (frame) => {
    setNodeTime(frame.t);
    state.history.add(frame.points, frame.t);
    change({ frame });
    events.notice(frame);
  },
  // After a reconnect the node may be a different one, with other tokens.
  onReconnect: () => session.refresh().catch(() => null),
  onRefused: () => session.refresh().catch(() => null),
});

// Applies a changed session. Typed input is kept when the user logs in or out.
let isStarted = false;
let administered = null;
const applySession = (session) => {
  byId("content").hidden = !session.read;
  if (session.admin !== isAdmin || session.administered !== administered || !isStarted) overrides.applySession(session);
  if (session.read !== isStreaming) (session.read ? live.start : live.stop)();
  const hasNewRole = session.admin !== isAdmin;
  [isAdmin, administered, isStreaming] = [session.admin, session.administered, session.read];
  change({ read: session.read });
  if (session.read && !isStarted) why.openLinked();
  else if (hasNewRole) why.refresh();
  isStarted ||= session.read;
};

const session = createSession(applySession);
document.addEventListener("visibilitychange", redraw);
redraw();

const loadSession = () =>
  session.refresh().catch(() => {
    change({ connection: "reconnecting" });
    setTimeout(loadSession, SESSION_RETRY_MS);
  });
loadSession();
