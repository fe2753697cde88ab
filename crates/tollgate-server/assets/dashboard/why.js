// Asking why: what is typed or linked to (#why=…), and what the node makes of it.
import { ask, clientPath } from "./api.js";
import { button, byId, element } from "./dom.js";
import { confirmButton } from "./confirm.js";
import { countersOf } from "./counters.js";
import { degradedNote, headline, overrideNote, rulesTried } from "./explanation.js";
import { clock } from "./format.js";
import { lately } from "./lately.js";
import { clientOf, readQuestion } from "./question.js";
import { author } from "./session.js";
import { takesTable } from "./takes.js";
import { said, sentence } from "./text.js";
import { nodeNow } from "./time.js";

const HASH = "#why=";

const linked = () => {
  if (!location.hash.startsWith(HASH)) return null;
  try {
    return decodeURIComponent(location.hash.slice(HASH.length));
  } catch {
    return null;
  }
};

const asked = ({ key, facts, tenant }) => {
  const all = Object.entries({ ...(key === undefined ? facts : { key }), ...(tenant === undefined ? {} : { tenant }) });
  return element(
    "p",
    { class: "asked" },
    all.map(([name, value]) => element("span", {}, element("span", { class: "dim" }, `${name} `), said(value))),
  );
};

const resetButton = (client, tenant, onDone) =>
  confirmButton("Reset", "Forget all that this client has used?", "Yes, reset", async () => {
    await ask("POST", clientPath(client, "reset"), { query: { tenant, author: author() } });
    await onDone("Reset: it has used nothing now.");
  });

// What can be done about an answer; more by administrators.
const actsOn = (question, { isAdmin, onAgain, onClose, onOverride }) => {
  const client = clientOf(question);
  const { tenant } = question;
  const always = [
    button("Ask again", () => onAgain(), { class: "small" }),
    button("Close", onClose, { class: "small" }),
  ];
  if (client === null || !isAdmin()) return element("div", { class: "acts" }, always);
  return element(
    "div",
    { class: "acts" },
    always,
    button("Give it other limits…", () => onOverride({ client, tenant }), { class: "small" }),
    resetButton(client, tenant, onAgain),
  );
};

// `about` goes before what can be done, such as what happened lately.
const detailsOf = (question, explanation, about, acts) =>
  [
    asked(question),
    degradedNote(explanation),
    overrideNote(explanation),
    about,
    acts,
    element("h3", {}, "Limits it takes from"),
    takesTable(explanation),
    element("h3", {}, "Rules tried"),
    rulesTried(explanation),
    element("h3", {}, "Counters in use"),
    countersOf(explanation.answer.key, question.tenant),
    element("p", { class: "dim" }, `As of ${clock(nodeNow())}. Asking took nothing.`),
  ].filter((part) => part !== null);

export const createWhy = ({ recent, isAdmin, onOverride }) => {
  const input = byId("why-input");
  const result = byId("why-result");
  const first = byId("why-headline");
  const details = byId("why-details");
  let latest = 0;

  const render = (question, explanation, note) => {
    const written = { text: input.value, tenant: question.tenant };
    const about = lately(explanation, written, recent(), goThere);
    const acts = actsOn(question, { isAdmin, onAgain: showAgain, onClose: close, onOverride });
    const details = detailsOf(question, explanation, about, acts);
    return note ? [element("p", { class: "good" }, note), ...details] : details;
  };

  const show = async (text, note = null) => {
    latest += 1;
    const mine = latest;
    result.hidden = false;
    result.setAttribute("aria-busy", "true");
    try {
      const question = readQuestion(text);
      const explanation = await ask("POST", "/api/explain", { body: question });
      if (mine !== latest) return;
      first.replaceChildren(...headline(explanation));
      details.replaceChildren(...render(question, explanation, note));
    } catch (problem) {
      if (mine !== latest) return;
      first.replaceChildren(element("span", { class: "problem" }, sentence(problem.message)));
      details.replaceChildren();
    }
    result.removeAttribute("aria-busy");
  };

  // The button that was pressed goes with the answer before; who pressed it stays here.
  const showAgain = async (note) => {
    await show(input.value, note);
    if (document.activeElement === document.body) result.focus({ preventScroll: true });
  };

  // The address is what is shown, so that it can be sent to somebody, and gone back from.
  const go = async (text) => {
    const wanted = HASH + encodeURIComponent(text);
    input.value = text;
    if (location.hash !== wanted) history.pushState(null, "", wanted);
    await show(text);
  };

  // Query from elsewhere on the page: goes there, too.
  const goThere = async (text) => {
    await go(text);
    byId("why").scrollIntoView({ block: "start" });
    result.focus({ preventScroll: true });
  };

  const close = () => {
    history.pushState(null, "", location.pathname);
    follow();
    input.focus();
  };

  const follow = () => {
    const text = linked();
    input.value = text ?? "";
    if (text === null) result.hidden = true;
    else show(text);
  };

  byId("why-form").addEventListener("submit", (event) => {
    event.preventDefault();
    go(input.value);
  });
  // Other places of the page, such as where the skip link leads, are no questions.
  addEventListener("popstate", () => {
    if (location.hash === "" || linked() !== null) follow();
  });
  // Who may do more, or less, sees other buttons.
  const again = () => {
    if (!result.hidden && linked() !== null) show(linked());
  };
  return { go: goThere, follow, again };
};
