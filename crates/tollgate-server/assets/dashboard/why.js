// "Why?" panel: explains a typed or linked (#why=…) client, request or route.
import { clientPath, request } from "./api.js";
import { button, byId, element } from "./dom.js";
import { confirmButton } from "./confirm.js";
import { clientOf, parseQuery } from "./query.js";
import { author } from "./session.js";
import { longText } from "./text.js";
import { lookUp } from "./why-lookup.js";
import { resultDetails, resultHeadline } from "./why-result.js";

const HASH = "#why=";

const linkedText = () => {
  if (!location.hash.startsWith(HASH)) return null;
  try {
    return decodeURIComponent(location.hash.slice(HASH.length));
  } catch {
    return null;
  }
};

const resetButton = (client, tenant, onDone) =>
  confirmButton("Reset usage", "Reset the usage of this client in every rule?", "Yes, reset", async () => {
    await request("POST", clientPath(client, "reset"), { query: { tenant, author: author() } });
    await onDone("The usage of this client was reset.");
  });

// The rule whose limits an override should change: the one that refuses the client.
const refusingRule = ({ explanation, source }) => {
  if (explanation && !explanation.answer.allowed) return explanation.answer.rule;
  return source?.rule ?? null;
};

// Buttons below the headline; administrators have more of them.
const actions = (result, { isAdmin, onRefresh, onClose, onOverride }) => {
  const client = clientOf(result.query);
  const { tenant } = result.query;
  const common = [
    button("Refresh", () => onRefresh(), { class: "small" }),
    button("Close", onClose, { class: "small" }),
  ];
  if (client === null || !isAdmin()) return element("div", { class: "actions" }, common);
  return element(
    "div",
    { class: "actions" },
    common,
    button("Set override…", () => onOverride({ client, tenant, rule: refusingRule(result) }), { class: "small" }),
    resetButton(client, tenant, onRefresh),
  );
};

export const createWhy = ({ policy, isAdmin, onOverride }) => {
  const input = byId("why-input");
  const result = byId("why-result");
  const headlineElement = byId("why-headline");
  const details = byId("why-details");
  let generation = 0;

  const render = (found, note) => {
    const buttons = actions(found, { isAdmin, onRefresh: showAgain, onClose: close, onOverride });
    const elements = resultDetails(found, { policy: policy(), buttons, onExplain: openAndScroll });
    return note ? [element("p", { class: "good" }, note), ...elements] : elements;
  };

  const show = async (text, note = null) => {
    generation += 1;
    const current = generation;
    result.hidden = false;
    result.setAttribute("aria-busy", "true");
    try {
      const found = await lookUp(parseQuery(text));
      if (current !== generation) return;
      headlineElement.replaceChildren(...resultHeadline(found));
      details.replaceChildren(...render(found, note));
    } catch (problem) {
      if (current !== generation) return;
      headlineElement.replaceChildren(element("span", { class: "problem" }, longText(problem.message)));
      details.replaceChildren();
    }
    result.removeAttribute("aria-busy");
  };

  // The pressed button is replaced with the old result, so the focus moves to the new result.
  const showAgain = async (note) => {
    await show(input.value, note);
    if (document.activeElement === document.body) result.focus({ preventScroll: true });
  };

  // Stores the query in the address, for links and the back button.
  const open = async (text) => {
    const hash = HASH + encodeURIComponent(text);
    input.value = text;
    if (location.hash !== hash) history.pushState(null, "", hash);
    await show(text);
  };

  const openAndScroll = async (text) => {
    await open(text);
    byId("why").scrollIntoView({ block: "start" });
    result.focus({ preventScroll: true });
  };

  const close = () => {
    history.pushState(null, "", location.pathname);
    openLinked();
    input.focus();
  };

  const openLinked = () => {
    const text = linkedText();
    input.value = text ?? "";
    if (text === null) result.hidden = true;
    else show(text);
  };

  byId("why-form").addEventListener("submit", (event) => {
    event.preventDefault();
    open(input.value);
  });
  // Other hashes, such as that of the skip link, are not queries.
  addEventListener("popstate", () => {
    if (location.hash === "" || linkedText() !== null) openLinked();
  });
  // Updates the buttons after a login or logout.
  const refresh = () => {
    if (!result.hidden && linkedText() !== null) show(linkedText());
  };
  return { open: openAndScroll, openLinked, refresh };
};
