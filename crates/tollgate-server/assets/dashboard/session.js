// Who is at the page: logging in and out. The token goes to the node and is forgotten; a name for the audit is kept
// for as long as the tab.
import { ask, onUnauthorised } from "./api.js";
import { byId, setText } from "./dom.js";

const AUTHOR = "tollgate.author";
const NOBODY = { read: false, admin: false, login: true, administered: true, until: null };

// Storage may be forbidden; then the name lasts as long as the page.
let name = "";
try {
  name = sessionStorage.getItem(AUTHOR) ?? "";
} catch {
  // Nothing to read it from.
}

const remember = (given) => {
  name = given;
  try {
    sessionStorage.setItem(AUTHOR, given);
  } catch {
    // Nothing to keep it in.
  }
};

export const author = () => name;

const explain = (problem) => {
  if (problem.status === 401) return "That token is not known here.";
  if (problem.status === 429)
    return `Too many wrong tokens came from here. Try again in ${problem.retryAfter ?? 60} s.`;
  if (problem.status === 404) return "This service has no token to log in with: start it with TOLLGATE_ADMIN_TOKEN.";
  return `It did not work: ${problem.message}.`;
};

const whyLogIn = (session) => {
  if (!isSecureContext)
    return "Logging in needs https, or a page of this machine: the session’s cookie travels no other way.";
  return session.read
    ? "With the admin token: overrides, resets, the audit."
    : "Reading this page needs the read or the admin token.";
};

// The form that asks for the token; `onToken` is given what was typed, which is forgotten here.
const createDialog = ({ isNeeded, onToken }) => {
  const dialog = byId("login");
  const token = byId("token");
  const tell = (problem) => setText(byId("login-problem"), problem);

  const open = (problem = "") => {
    tell(problem);
    if (!dialog.open) dialog.showModal();
    token.focus();
  };

  byId("author").value = author();
  byId("login-open").addEventListener("click", () => open());
  byId("login-close").addEventListener("click", () => dialog.close());
  // Escape closes it, and browsers insist on that; without it there is nothing to see, so it comes back.
  dialog.addEventListener("close", () => {
    if (isNeeded()) open();
  });
  byId("login-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const typed = token.value;
    token.value = "";
    remember(byId("author").value.trim());
    onToken(typed);
  });
  return { open, tell, close: () => dialog.close() };
};

const NOT_KEPT = "The browser did not keep the session: it takes it only over https, or on this machine.";
const ENDED = "The session has ended. Log in again, then repeat the last step.";

// Whatever was shown to who was logged in goes with the page.
const logOut = async () => {
  await ask("POST", "/api/logout").catch(() => null);
  remember("");
  location.reload();
};

export const createSession = (onChange) => {
  let session = NOBODY;

  const show = () => {
    byId("login-open").hidden = session.admin || !session.login;
    byId("logout").hidden = session.until === null;
    byId("login-close").hidden = !session.read;
    setText(byId("login-why"), whyLogIn(session));
    onChange(session);
  };

  const refresh = async () => {
    session = await ask("GET", "/api/session");
    show();
    if (!session.read) dialog.open();
  };

  const logIn = async (token) => {
    try {
      await ask("POST", "/api/login", { body: { token } });
      await refresh();
      if (session.until !== null) dialog.close();
      else dialog.tell(NOT_KEPT);
    } catch (problem) {
      dialog.open(explain(problem));
    }
  };

  // The session ended in the middle of something: ask again, and leave what was typed.
  const ended = async () => {
    const was = session;
    await refresh().catch(() => null);
    if (was.until !== null && session.until === null) dialog.open(ENDED);
  };

  const dialog = createDialog({ isNeeded: () => !session.read, onToken: logIn });
  byId("logout").addEventListener("click", logOut);
  onUnauthorised(ended);
  return { refresh };
};
