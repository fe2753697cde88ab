// Creating and changing DOM nodes. Text is always inserted as text, never parsed as HTML.

export const byId = (id) => document.getElementById(id);

// Creates an element. Attributes that are null, undefined or false are omitted, and so are null children.
export const element = (name, attributes = {}, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
};

export const button = (label, onClick, attributes = {}) => {
  const node = element("button", { type: "button", ...attributes }, label);
  node.addEventListener("click", onClick);
  return node;
};

// Writes only changed text, because screen readers announce every write.
export const setText = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

export const setClass = (node, name) => {
  if (node.className !== name) node.className = name;
};

// Replaces the children of `node` by those that `render(value)` returns, unless the value is unchanged.
const renderedValues = new WeakMap();
export const fill = (node, value, render) => {
  const json = JSON.stringify(value);
  if (renderedValues.get(node) === json) return;
  renderedValues.set(node, json);
  node.replaceChildren(...[render(value)].flat().filter((child) => child !== null));
};
