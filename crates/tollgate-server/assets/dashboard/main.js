// Joins the parts: the session decides what is shown, the stream what it says. All drawing happens in one place, at
// most once a frame of the screen, and never in a tab that nobody sees.
import { createBlocks } from "./blocks.js";
import { byId, fill, setClass, setText } from "./dom.js";
import { createHealth, lost } from "./health.js";
import { count } from "./format.js";
import { createHistory } from "./history.js";
import { createLive } from "./live.js";
import { createNodes, nodesTotal } from "./nodes.js";
import { createOverrides } from "./overrides.js";
import { createPolicy } from "./policy.js";
import { createRefused } from "./refused.js";
import { createRollout } from "./rollout.js";
import { createSession } from "./session.js";
import { said } from "./text.js";
import { createTiles } from "./tiles.js";
import { heard } from "./time.js";
import { createTraffic } from "./traffic.js";
import { createWhy } from "./why.js";

const state = { policy: null, frame: null, history: createHistory(), connection: "connecting", read: true };
let admin = false;
let shown = false;

const recent = () => state.frame?.refused ?? [];
const overrides = createOverrides();
const why = createWhy({ recent, isAdmin: () => admin, onOverride: overrides.edit });
createBlocks({ recent, onWhy: why.go });

const STATES = {
  connecting: "connecting",
  live: "live",
  reconnecting: "reconnecting",
  silent: "no news, reconnecting",
};

const header = {
  update: ({ frame, connection, read }) => {
    setText(byId("connection"), STATES[connection]);
    byId("connection").hidden = !read;
    setClass(byId("connection"), connection === "live" ? "state live" : "state");
    if (!frame) return;
    const nodes = nodesTotal(frame);
    fill(byId("scope"), [frame.node, frame.scope, nodes], () => {
      const fleet = nodes === 1 ? "the whole fleet, 1 node" : `the whole fleet, ${count(nodes)} nodes`;
      return ["by ", said(frame.node), ` · ${frame.scope === "fleet" ? fleet : "this node alone"}`];
    });
  },
};

const panels = [
  header,
  createHealth(),
  createTiles(),
  createTraffic(),
  createRefused(why.go),
  createNodes(),
  createRollout(),
  createPolicy(),
  overrides,
];

let drawing = 0;
const draw = () => {
  drawing = 0;
  for (const panel of panels) panel.update(state);
};
const redraw = () => {
  if (drawing === 0 && !document.hidden) drawing = requestAnimationFrame(draw);
};

// Whether there is somebody to ask, and something to answer from.
const isWell = () => state.connection === "live" && !lost(state.frame?.store.breaker);

const change = (what) => {
  const was = isWell();
  Object.assign(state, what);
  if (isWell() && !was) dispatchEvent(new Event("tollgate:back"));
  redraw();
};

const live = createLive({
  onState: (connection) => change({ connection }),
  onPolicy: (policy) => change({ policy }),
  // A long one comes in parts.
  onHistory: ({ points, first }) => {
    if (first === false) state.history.extend(points);
    else state.history.replace(points);
    redraw();
  },
  onFrame: (frame) => {
    heard(frame.t);
    state.history.add(frame.points, frame.t);
    change({ frame });
  },
  // The node may be another than before, with other tokens.
  onBack: () => session.refresh().catch(() => null),
  onRefused: () => session.refresh().catch(() => null),
});

// What was typed stays, whoever comes and goes.
let started = false;
let administered = null;
const admit = (told) => {
  byId("content").hidden = !told.read;
  if (told.admin !== admin || told.administered !== administered || !started) overrides.admit(told);
  if (told.read !== shown) (told.read ? live.start : live.stop)();
  const other = told.admin !== admin;
  [admin, administered, shown] = [told.admin, told.administered, told.read];
  change({ read: told.read });
  if (told.read && !started) why.follow();
  else if (other) why.again();
  started ||= told.read;
};

const session = createSession(admit);
document.addEventListener("visibilitychange", redraw);
redraw();

const begin = () =>
  session.refresh().catch(() => {
    change({ connection: "reconnecting" });
    setTimeout(begin, 3000);
  });
begin();
