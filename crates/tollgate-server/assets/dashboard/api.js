// HTTP requests to the node that serves this page. Every failure is a Problem with a message to show.

// `body` is the whole response, for errors with more than a message.
class Problem extends Error {
  constructor(status, detail, { retryAfter = null, body = {} } = {}) {
    super(detail);
    this.status = status;
    this.retryAfter = retryAfter;
    this.body = body;
  }
}

const listeners = [];

// Registers a listener for 401 responses.
export const onUnauthorised = (listener) => listeners.push(listener);

const headersFor = (method) =>
  method === "GET" ? {} : { "content-type": "application/json", "x-tollgate-request": "dashboard" };

const problemOf = async (response) => {
  const body = await response.json().catch(() => ({}));
  const wait = Number(response.headers.get("retry-after"));
  const detail = body.detail ?? body.title ?? `the node returned status ${response.status}`;
  return new Problem(response.status, detail, { retryAfter: wait > 0 ? wait : null, body });
};

const withQuery = (path, query) => {
  const pairs = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return pairs.length > 0 ? `${path}?${new URLSearchParams(pairs)}` : path;
};

export const request = async (method, path, { query = {}, body } = {}) => {
  const options = { method, headers: headersFor(method), cache: "no-store" };
  if (body !== undefined) options.body = JSON.stringify(body);
  let response;
  try {
    response = await fetch(withQuery(path, query), options);
  } catch {
    throw new Problem(0, "cannot connect to this node");
  }
  if (response.ok) return response.status === 204 ? null : response.json();
  const problem = await problemOf(response);
  if (problem.status === 401 && path !== "/api/login") for (const listener of listeners) listener();
  throw problem;
};

// Browsers resolve . and .. as relative path segments, even if they are escaped.
const clientSegment = (client) => {
  if (client === "." || client === "..")
    throw new Problem(0, "browsers cannot address a client named . or ..; use the tollgate command");
  return encodeURIComponent(client);
};

export const clientPath = (client, endpoint) => `/admin/external/clients/${clientSegment(client)}/${endpoint}`;

export const readClientPath = (client) => `/api/clients/${clientSegment(client)}`;
