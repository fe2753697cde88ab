// Login and logout. The token is sent to the node and not stored; the name for the audit log is stored until the tab
// is closed.
import { onUnauthorised, request } from "./api.js";
import { byId, setText } from "./dom.js";

const AUTHOR_KEY = "tollgate.author";
const LOGGED_OUT = { read: false, admin: false, login: true, administered: true, until: null };

// If storage is forbidden, the name is kept until the page is closed.
let authorName = "";
try {
  authorName = sessionStorage.getItem(AUTHOR_KEY) ?? "";
} catch {
  // Storage is forbidden.
}

const setAuthor = (name) => {
  authorName = name;
  try {
    sessionStorage.setItem(AUTHOR_KEY, name);
  } catch {
    // Storage is forbidden.
  }
};

export const author = () => authorName;

const loginError = (problem) => {
  if (problem.status === 401) return "The token is invalid.";
  if (problem.status === 429)
    return `Too many failed logins from this address. Try again in ${problem.retryAfter ?? 60} s.`;
  if (problem.status === 404)
    return "Login is disabled because the service has no token. Start it with TOLLGATE_ADMIN_TOKEN.";
  return `Login failed: ${problem.message}.`;
};

const loginPurpose = (session) => {
  if (!isSecureContext)
    return "Login requires https, or a page on this machine: browsers reject the session cookie otherwise.";
  return session.read
    ? "Log in with the admin token to set overrides, reset usage and read the audit log."
    : "This page requires the read token or the admin token.";
};

// Login dialog. `onToken` receives the typed token; the input is cleared.
const createDialog = ({ isRequired, onToken }) => {
  const dialog = byId("login");
  const token = byId("token");
  const showError = (text) => setText(byId("login-problem"), text);

  const open = (error = "") => {
    showError(error);
    if (!dialog.open) dialog.showModal();
    token.focus();
  };

  byId("author").value = author();
  byId("login-open").addEventListener("click", () => open());
  byId("login-close").addEventListener("click", () => dialog.close());
  // Browsers always let Escape close a dialog. Without a login there is nothing to show, so it is opened again.
  dialog.addEventListener("close", () => {
    if (isRequired()) open();
  });
  byId("login-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const typed = token.value;
    token.value = "";
    setAuthor(byId("author").value.trim());
    onToken(typed);
  });
  return { open, showError, close: () => dialog.close() };
};

const COOKIE_REJECTED = "The browser rejected the session cookie. Use https, or open the page on the node itself.";
const EXPIRED = "The session has expired. Log in again, then repeat the last action.";

// Reloads the page, so that nothing that required the login stays on it.
const logOut = async () => {
  await request("POST", "/api/logout").catch(() => null);
  setAuthor("");
  location.reload();
};

export const createSession = (onChange) => {
  let session = LOGGED_OUT;

  const show = () => {
    byId("login-open").hidden = session.admin || !session.login;
    byId("logout").hidden = session.until === null;
    byId("login-close").hidden = !session.read;
    setText(byId("login-purpose"), loginPurpose(session));
    onChange(session);
  };

  const refresh = async () => {
    session = await request("GET", "/api/session");
    show();
    if (!session.read) dialog.open();
  };

  const logIn = async (token) => {
    try {
      await request("POST", "/api/login", { body: { token } });
      await refresh();
      if (session.until !== null) dialog.close();
      else dialog.showError(COOKIE_REJECTED);
    } catch (problem) {
      dialog.open(loginError(problem));
    }
  };

  // The session expired during an action: show the login and keep the typed input.
  const handleUnauthorised = async () => {
    const previous = session;
    await refresh().catch(() => null);
    if (previous.until !== null && session.until === null) dialog.open(EXPIRED);
  };

  const dialog = createDialog({ isRequired: () => !session.read, onToken: logIn });
  byId("logout").addEventListener("click", logOut);
  onUnauthorised(handleUnauthorised);
  return { refresh };
};
