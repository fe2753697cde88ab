// API page: shows every operation of /openapi.json with its fields, and sends requests to this node.

const element = (name, attributes = {}, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};

const resolver = (api) => (schema) => {
  if (!schema?.$ref) return schema ?? {};
  const target = schema.$ref.split("/").slice(1).reduce((node, part) => node?.[part], api);
  return { ...target, ...schema, title: schema.$ref.split("/").at(-1) };
};

const typeOf = (schema, resolve) => {
  const resolved = resolve(schema);
  if (resolved.enum) return resolved.enum.join(" | ");
  const alternatives = resolved.anyOf ?? resolved.oneOf;
  if (alternatives) return alternatives.map((alternative) => typeOf(alternative, resolve)).join(" or ");
  if (resolved.type === "array") return `list of ${typeOf(resolved.items, resolve)}`;
  return resolved.title ?? [resolved.type].flat().join(" or ");
};

// The object among the alternatives of a schema, such as a limit that may also be a string.
const objectOf = (schema, resolve) =>
  (schema.anyOf ?? []).map(resolve).find((alternative) => alternative.properties) ?? schema;

// Rows for the fields of an object and, below each, those of nested objects. A type is not expanded inside itself.
const fieldRows = (schema, resolve, prefix = "", seen = new Set()) => {
  const resolved = resolve(schema);
  const object = objectOf(resolved.type === "array" ? resolve(resolved.items) : resolved, resolve);
  if (!object.properties || seen.has(object.title)) return [];
  const seenHere = new Set(seen).add(object.title);
  return Object.entries(object.properties).flatMap(([name, field]) => {
    const resolvedField = resolve(field);
    const path = `${prefix}${name}`;
    const optional = object.required?.includes(name) ? "" : " (optional)";
    const row = element("tr", {},
      element("td", {}, element("code", {}, path)),
      element("td", {}, typeOf(field, resolve) + optional),
      element("td", {}, resolvedField.description ?? ""));
    const nestedPrefix = resolvedField.type === "array" ? `${path}[].` : `${path}.`;
    return [row, ...fieldRows(field, resolve, nestedPrefix, seenHere)];
  });
};

const fieldTable = (title, schema, resolve) => {
  const rows = fieldRows(schema, resolve);
  if (rows.length === 0) return [];
  const head = element("tr", {}, ...["field", "type", ""].map((text) => element("th", {}, text)));
  return [element("h3", {}, title), element("div", { class: "scroll" }, element("table", {}, head, ...rows))];
};

// Reads an endless event stream up to the first frame.
const readFirstFrame = async (response) => {
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

const showResponse = (out, response, text) => {
  let formatted = text;
  try {
    formatted = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // Not JSON: shown unchanged.
  }
  out.textContent = `${response.status} ${response.statusText}\n\n${formatted}`;
  out.classList.toggle("refused", !response.ok || formatted.includes('"allowed": false'));
};

// The token stays in this input and is never stored.
const token = document.getElementById("token");

const urlOf = (path, inputs) => {
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
      const response = await fetch(urlOf(path, inputs), optionsOf(method, body));
      const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
      showResponse(out, response, isStream ? await readFirstFrame(response) : await response.text());
    } catch (error) {
      out.textContent = String(error);
      out.classList.add("refused");
    }
  });
  return [...inputs, ...(body ? [body] : []), button, out];
};

const operationView = (path, method, operation, resolve) => {
  const requestSchema = operation.requestBody?.content["application/json"]?.schema;
  const responseSchema = operation.responses["200"]?.content?.["application/json"]?.schema;
  const otherResponses = Object.entries(operation.responses).filter(([status]) => status !== "200");
  const summary = element("summary", {},
    element("span", { class: `method ${method}` }, method.toUpperCase()),
    element("span", { class: "path" }, path),
    element("span", { class: "dim" }, operation.summary));
  const content = element("div", {},
    element("p", {}, operation.description ?? ""),
    ...tryOut(path, method.toUpperCase(), operation),
    ...fieldTable("Request", requestSchema, resolve),
    ...fieldTable("Response", responseSchema, resolve),
    ...otherResponses.map(([status, response]) => element("p", { class: "dim" }, `${status}: ${response.description}`)));
  return element("details", {}, summary, content);
};

const render = (api) => {
  document.getElementById("summary").replaceChildren(
    `${api.info.summary} Version ${api.info.version}. OpenAPI description: `,
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
  document.getElementById("summary").textContent = `Cannot load /openapi.json: ${error}`;
}
