// Clock of the node, which may differ from the clock of this machine.

const MAX_LATENCY_MS = 3000;
let offsetMs = 0;

export const setNodeTime = (nodeTime) => {
  offsetMs = nodeTime - Date.now();
};

// A small difference is the latency of the frame, not a clock difference.
export const nodeNow = () => Date.now() + (Math.abs(offsetMs) > MAX_LATENCY_MS ? offsetMs : 0);
