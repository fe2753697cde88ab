// "Why?" panel: explains the decision on a typed or linked (#why=…) query.
import { clientPath, request } from "./api.js";
import { button, byId, element } from "./dom.js";
import { confirmButton } from "./confirm.js";
import { countersTable } from "./counters.js";
import { degradedNote, headline, overrideNote, rulesTried } from "./explanation.js";
import { clock } from "./format.js";
import { limitsTable } from "./limits-table.js";
import { nodeNow } from "./node-time.js";
import { clientOf, parseQuery } from "./query.js";
import { recentRefusals } from "./recent-refusals.js";
import { author } from "./session.js";
import { longText, shortText } from "./text.js";

const HASH = "#why=";

const linkedText = () => {
  if (!location.hash.startsWith(HASH)) return null;
  try {
    return decodeURIComponent(location.hash.slice(HASH.length));
  } catch {
    return null;
  }
};

const queryElement = ({ key, facts, tenant }) => {
  const all = Object.entries({ ...(key === undefined ? facts : { key }), ...(tenant === undefined ? {} : { tenant }) });
  return element(
    "p",
    { class: "query" },
    all.map(([name, value]) => element("span", {}, element("span", { class: "dim" }, `${name} `), shortText(value))),
  );
};

const resetButton = (client, tenant, onDone) =>
  confirmButton("Reset usage", "Reset the usage of this client?", "Yes, reset", async () => {
    await request("POST", clientPath(client, "reset"), { query: { tenant, author: author() } });
    await onDone("The usage of this client was reset.");
  });

// Buttons below the headline; administrators have more of them.
const actions = (query, { isAdmin, onRefresh, onClose, onOverride }) => {
  const client = clientOf(query);
  const { tenant } = query;
  const common = [
    button("Refresh", () => onRefresh(), { class: "small" }),
    button("Close", onClose, { class: "small" }),
  ];
  if (client === null || !isAdmin()) return element("div", { class: "actions" }, common);
  return element(
    "div",
    { class: "actions" },
    common,
    button("Set override…", () => onOverride({ client, tenant }), { class: "small" }),
    resetButton(client, tenant, onRefresh),
  );
};

const detailElements = (query, explanation, recent, buttons) =>
  [
    queryElement(query),
    degradedNote(explanation),
    overrideNote(explanation),
    recent,
    buttons,
    element("h3", {}, "Limits"),
    limitsTable(explanation),
    element("h3", {}, "Rules tried"),
    rulesTried(explanation),
    element("h3", {}, "Counters in use"),
    countersTable(explanation.answer.key, query.tenant),
    element("p", { class: "dim" }, `As of ${clock(nodeNow())}. No quota was used.`),
  ].filter((part) => part !== null);

export const createWhy = ({ recentlyRefused, isAdmin, onOverride }) => {
  const input = byId("why-input");
  const result = byId("why-result");
  const headlineElement = byId("why-headline");
  const details = byId("why-details");
  let generation = 0;

  const render = (query, explanation, note) => {
    const typed = { text: input.value, tenant: query.tenant };
    const recent = recentRefusals(explanation, typed, recentlyRefused(), openAndScroll);
    const buttons = actions(query, { isAdmin, onRefresh: showAgain, onClose: close, onOverride });
    const elements = detailElements(query, explanation, recent, buttons);
    return note ? [element("p", { class: "good" }, note), ...elements] : elements;
  };

  const show = async (text, note = null) => {
    generation += 1;
    const current = generation;
    result.hidden = false;
    result.setAttribute("aria-busy", "true");
    try {
      const query = parseQuery(text);
      const explanation = await request("POST", "/api/explain", { body: query });
      if (current !== generation) return;
      headlineElement.replaceChildren(...headline(explanation));
      details.replaceChildren(...render(query, explanation, note));
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
