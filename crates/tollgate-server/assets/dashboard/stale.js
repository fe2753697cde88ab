// Marks the figures as outdated while the serving node sends no updates, and links to the other nodes.
import { byId, element, fill, setText } from "./dom.js";
import { ago, clock } from "./format.js";
import { nodeNow } from "./node-time.js";
import { shortText } from "./text.js";

// URL of this page on another node. An unspecified address is that of the machine in the address bar.
const pageUrl = (address) => {
  const host = address.replace(/^(?:0\.0\.0\.0|\[::\])(?=:)/, location.hostname);
  return `${location.protocol}//${host}/${location.hash}`;
};

// Other nodes; those that were silent or down in the last frame come last.
const otherNodes = ({ known_nodes: known, nodes, node }) => {
  const states = new Map(nodes.map((each) => [each.id, each]));
  const isDown = ({ id }) => (states.get(id)?.silent ?? false) || (states.get(id)?.state ?? "Up") !== "Up";
  return (known ?? nodes)
    .filter(({ id, address }) => id !== node && address)
    .map((each) => ({ id: each.id, address: each.address, isDown: isDown(each) }))
    .sort((a, b) => Number(a.isDown) - Number(b.isDown));
};

const nodeLink = ({ id, address }) => element("a", { href: pageUrl(address) }, shortText(id));

export const createStale = () => ({
  update: ({ connection, frame }) => {
    const isStale = connection === "silent" && frame !== null;
    document.body.classList.toggle("stale", isStale);
    byId("stale").hidden = !isStale;
    if (!isStale) return;
    setText(byId("stale-age"), `The figures are of ${clock(frame.t)} (${ago(nodeNow() - frame.t)}).`);
    const others = otherNodes(frame).slice(0, 8);
    fill(byId("stale-nodes"), others, () =>
      others.length === 0
        ? "No other node is known."
        : ["Open another node: ", ...others.flatMap((other) => [nodeLink(other), other.isDown ? " (silent) " : " "])],
    );
  },
});
