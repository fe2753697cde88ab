// Fifteen minutes of decisions, and of how long they took.
import { createChart } from "./chart.js";
import { byId, element, fill } from "./dom.js";
import { axis, latency, rate } from "./format.js";

const decisions = () =>
  createChart({
    label: "Decisions a second",
    stacked: true,
    format: axis,
    exact: rate,
    series: [
      { name: "allowed", look: "area", colour: "c-allowed", value: (point) => point.allowed },
      { name: "refused", look: "hatched", colour: "c-refused", value: (point) => point.refused },
    ],
  });

const times = () =>
  createChart({
    label: "Time to decide",
    least: 100,
    format: latency,
    series: [
      { name: "p50", look: "bold", colour: "c-allowed", value: (point) => point.p50_us },
      { name: "p99", look: "thin", colour: "c-slow", value: (point) => point.p99_us },
    ],
  });

// Where the node that serves this page answers checks, which need not be where it serves the page.
const checksAt = ({ nodes, node }) => {
  const address = nodes.find(({ id }) => id === node)?.address;
  if (!address) return location.origin;
  const anywhere = /^(?:0\.0\.0\.0|\[::\])(?=:)/;
  return `http://${address.replace(anywhere, location.hostname)}`;
};

export const createTraffic = () => {
  const charts = [decisions(), times()];
  byId("charts").append(...charts.map(({ root }) => root));
  const none = byId("no-traffic");
  return {
    update: ({ history, frame }) => {
      if (!frame) return;
      const points = history.settled();
      for (const chart of charts) chart.draw(points, history.now());
      none.hidden = !history.isEmpty();
      fill(none, checksAt(frame), (origin) => [
        "No traffic yet. Try ",
        element("code", {}, `curl --json '{"key":"user:1"}' ${origin}/check`),
      ]);
    },
  };
};
