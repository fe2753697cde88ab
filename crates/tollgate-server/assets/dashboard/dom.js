// Making and changing what is on the page. Text only ever becomes text: nothing here reads markup.

export const byId = (id) => document.getElementById(id);

// An attribute that is null or false is left out; a child that is null too.
export const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
};

export const button = (label, act, attributes = {}) => {
  const made = element("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", act);
  return made;
};

// Only what differs is written, so that nobody is told of what did not change.
export const setText = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

export const setClass = (node, name) => {
  if (node.className !== name) node.className = name;
};

// Fills a place with nodes made from `value`, unless it was filled from the same value last time.
const filled = new WeakMap();
export const fill = (node, value, make) => {
  const mark = JSON.stringify(value);
  if (filled.get(node) === mark) return;
  filled.set(node, mark);
  node.replaceChildren(...[make(value)].flat().filter((child) => child !== null));
};
