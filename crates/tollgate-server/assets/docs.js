// Shows /openapi.json: every path with its fields, and a way to try it on this node.

const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

const resolver = (api) => (schema) => {
  if (!schema?.$ref) return schema ?? {};
  const named = schema.$ref.split("/").slice(1).reduce((at, part) => at?.[part], api);
  return { ...named, ...schema, title: schema.$ref.split("/").at(-1) };
};

const typeOf = (schema, resolve) => {
  const found = resolve(schema);
  if (found.enum) return found.enum.join(" | ");
  const either = found.anyOf ?? found.oneOf;
  if (either) return either.map((one) => typeOf(one, resolve)).join(" or ");
  if (found.type === "array") return `list of ${typeOf(found.items, resolve)}`;
  return found.title ?? [found.type].flat().join(" or ");
};

// Fields of an object, and beneath them those of the objects they lead to, each once.
const fieldRows = (schema, resolve, prefix = "", seen = new Set()) => {
  const found = resolve(schema);
  const items = found.type === "array" ? resolve(found.items) : found;
  if (!items.properties || seen.has(items.title)) return [];
  const inside = new Set(seen).add(items.title);
  return Object.entries(items.properties).flatMap(([name, field]) => {
    const whole = resolve(field);
    const path = `${prefix}${name}`;
    const must = items.required?.includes(name) ? "" : " (may be left out)";
    const row = element("tr", {},
      element("td", {}, element("code", {}, path)),
      element("td", {}, typeOf(field, resolve) + must),
      element("td", {}, whole.description ?? ""));
    const deeper = whole.type === "array" ? `${path}[].` : `${path}.`;
    return [row, ...fieldRows(field, resolve, deeper, inside)];
  });
};

const fields = (title, schema, resolve) => {
  const rows = fieldRows(schema, resolve);
  if (rows.length === 0) return [];
  const head = element("tr", {}, ...["field", "type", ""].map((text) => element("th", {}, text)));
  return [element("h3", {}, title), element("div", { class: "scroll" }, element("table", {}, head, ...rows))];
};

// What comes first of a stream that would go on for long.
const beginning = async (response) => {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("event: frame")) {
    const { value, done } = await reader.read();
    if (done) break;
    text += value;
  }
  await reader.cancel();
  return text;
};

const show = (out, response, text) => {
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // Not JSON: as it came.
  }
  out.textContent = `${response.status} ${response.statusText}\n\n${shown}`;
  out.classList.toggle("refused", !response.ok || shown.includes('"allowed": false'));
};

// Only of this page, for as long as it is open: a token is never stored.
const token = document.getElementById("token");

const addressOf = (path, inputs) => {
  const query = new URLSearchParams();
  let filled = path;
  for (const label of inputs) {
    const input = label.querySelector("input");
    if (input.dataset.place === "path") filled = filled.replace(`{${input.name}}`, encodeURIComponent(input.value));
    else if (input.value !== "") query.set(input.name, input.value);
  }
  return query.size > 0 ? `${filled}?${query}` : filled;
};

const optionsOf = (method, body) => {
  const headers = {};
  if (body) headers["content-type"] = "application/json";
  if (token.value !== "") headers.authorization = `Bearer ${token.value}`;
  return { method, headers, ...(body ? { body: body.value } : {}) };
};

const tryOut = (path, method, operation) => {
  const out = element("pre", { "aria-live": "polite", hidden: "" });
  const button = element("button", { type: "button" }, "Try it");
  const json = operation.requestBody?.content["application/json"];
  const body = json && element("textarea", { spellcheck: "false", "aria-label": `Body of ${path}` });
  if (body) body.value = JSON.stringify(json.example, null, 2);
  const inputs = (operation.parameters ?? []).map((parameter) => {
    const input = element("input", { name: parameter.name, spellcheck: "false", "data-place": parameter.in });
    return element("label", {}, `${parameter.name}: ${parameter.description}`, input);
  });
  button.addEventListener("click", async () => {
    out.hidden = false;
    try {
      const response = await fetch(addressOf(path, inputs), optionsOf(method, body));
      const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
      show(out, response, isStream ? await beginning(response) : await response.text());
    } catch (error) {
      out.textContent = String(error);
      out.classList.add("refused");
    }
  });
  return [...inputs, ...(body ? [body] : []), button, out];
};

const operationView = (path, method, operation, resolve) => {
  const asked = operation.requestBody?.content["application/json"]?.schema;
  const told = operation.responses["200"]?.content?.["application/json"]?.schema;
  const others = Object.entries(operation.responses).filter(([status]) => status !== "200");
  const summary = element("summary", {},
    element("span", { class: `method ${method}` }, method.toUpperCase()),
    element("span", { class: "path" }, path),
    element("span", { class: "dim" }, operation.summary));
  const content = element("div", {},
    element("p", {}, operation.description ?? ""),
    ...tryOut(path, method.toUpperCase(), operation),
    ...fields("Question", asked, resolve),
    ...fields("Answer", told, resolve),
    ...others.map(([status, response]) => element("p", { class: "dim" }, `${status}: ${response.description}`)));
  return element("details", {}, summary, content);
};

const render = (api) => {
  document.getElementById("summary").replaceChildren(
    `${api.info.summary} Version ${api.info.version}. The description itself: `,
    element("a", { href: "/openapi.json" }, "/openapi.json"));
  const resolve = resolver(api);
  const main = document.getElementById("operations");
  for (const tag of api.tags) {
    main.append(element("h2", {}, tag.description));
    for (const [path, methods] of Object.entries(api.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        if (operation.tags.includes(tag.name)) main.append(operationView(path, method, operation, resolve));
      }
    }
  }
};

try {
  const response = await fetch("/openapi.json");
  render(await response.json());
} catch (error) {
  document.getElementById("summary").textContent = `The description could not be read: ${error}`;
}
