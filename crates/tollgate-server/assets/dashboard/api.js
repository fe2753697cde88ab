// Asking the node that serves this page. What goes wrong is a Problem with a sentence to show.

class Problem extends Error {
  constructor(status, detail, retryAfter = null) {
    super(detail);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

const listeners = [];

// Called whenever a request was refused for want of a session.
export const onUnauthorised = (listener) => listeners.push(listener);

const headersOf = (method) =>
  method === "GET" ? {} : { "content-type": "application/json", "x-tollgate-request": "dashboard" };

const problemOf = async (response) => {
  const told = await response.json().catch(() => ({}));
  const wait = Number(response.headers.get("retry-after"));
  const detail = told.detail ?? told.title ?? `the node answered ${response.status}`;
  return new Problem(response.status, detail, wait > 0 ? wait : null);
};

const addressOf = (path, query) => {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return given.length > 0 ? `${path}?${new URLSearchParams(given)}` : path;
};

export const ask = async (method, path, { query = {}, body } = {}) => {
  const options = { method, headers: headersOf(method), cache: "no-store" };
  if (body !== undefined) options.body = JSON.stringify(body);
  let response;
  try {
    response = await fetch(addressOf(path, query), options);
  } catch {
    throw new Problem(0, "this node cannot be reached");
  }
  if (response.ok) return response.status === 204 ? null : response.json();
  const problem = await problemOf(response);
  if (problem.status === 401 && path !== "/api/login") for (const listener of listeners) listener();
  throw problem;
};

// Browsers read these two as steps in a path, however they are written.
export const clientPath = (client, what) => {
  if (client === "." || client === "..") throw new Problem(0, "a client called . or .. has no address of its own");
  return `/admin/external/clients/${encodeURIComponent(client)}/${what}`;
};
