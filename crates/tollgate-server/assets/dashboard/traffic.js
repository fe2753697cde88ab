// Requests by front end, and charts of decisions and decision times.
import { createChart } from "./chart.js";
import { byId, element, fill, setText } from "./dom.js";
import { axis, latency, rate } from "./format.js";

const decisionsChart = () =>
  createChart({
    label: "Decisions per second",
    stacked: true,
    format: axis,
    exact: rate,
    series: [
      { name: "allowed", look: "area", colour: "c-allowed", value: (point) => point.allowed },
      { name: "refused", look: "hatched", colour: "c-refused", value: (point) => point.refused },
    ],
  });

const timesChart = () =>
  createChart({
    label: "Decision time",
    minTop: 100,
    format: latency,
    series: [
      { name: "p50", look: "bold", colour: "c-allowed", value: (point) => point.p50_us },
      { name: "p99", look: "thin", colour: "c-slow", value: (point) => point.p99_us },
    ],
  });

const FRONT_ENDS = { http: "HTTP", resp: "RESP", grpc: "gRPC" };

// Nodes of older versions send no requests by front end.
const frontEndsText = ({ requests = {} }) => {
  const rates = Object.entries(requests).map(([name, value]) => `${FRONT_ENDS[name] ?? name} ${rate(value)}/s`);
  return rates.length > 0 ? `Requests by front end: ${rates.join(" · ")}` : "";
};

// URL of the check endpoint of the serving node; with --admin it differs from the URL of this page.
const checkOrigin = ({ nodes, node }) => {
  const address = nodes.find(({ id }) => id === node)?.address;
  if (!address) return location.origin;
  const unspecified = /^(?:0\.0\.0\.0|\[::\])(?=:)/;
  return `http://${address.replace(unspecified, location.hostname)}`;
};

export const createTraffic = () => {
  const charts = [decisionsChart(), timesChart()];
  byId("charts").append(...charts.map(({ root }) => root));
  const noTraffic = byId("no-traffic");
  return {
    update: ({ history, frame, view }) => {
      if (!frame) return;
      setText(byId("front-ends"), frontEndsText(frame));
      for (const chart of charts) chart.draw(view);
      noTraffic.hidden = !history.isEmpty();
      fill(noTraffic, checkOrigin(frame), (origin) => [
        "No traffic yet. Try ",
        element("code", {}, `curl --json '{"key":"user:1"}' ${origin}/check`),
      ]);
    },
  };
};
