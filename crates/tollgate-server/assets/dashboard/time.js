// The time of the node, which need not be that of this machine.

let ahead = 0;

export const heard = (nodeTime) => {
  ahead = nodeTime - Date.now();
};

// A difference of a second or two is only the way here.
export const nodeNow = () => Date.now() + (Math.abs(ahead) > 3000 ? ahead : 0);
