// Result of "Why?": the headline and the details below it.
import { element } from "./dom.js";
import { countersTable, exhaustedCounter, overrideNotes, refusalSummary, refusalsTable } from "./client-view.js";
import { degradedNote, headline, rulesTried } from "./explanation.js";
import { clock, duration } from "./format.js";
import { limitsTable } from "./limits-table.js";
import { nodeNow } from "./node-time.js";
import { isSubjectOnly } from "./query.js";
import { routeHeadline, routeTable } from "./route-view.js";
import { ruleAndLimit, shortText } from "./text.js";

const refusedMark = (text) => element("b", { class: "bad" }, text);

// Headline if there is no explanation: the last refusal, or the counter without quota.
const unexplainedHeadline = ({ source, client }) => {
  if (source) return [refusedMark("✕ Refused"), ": this client was ", ...refusalSummary(source, client), "."];
  const counter = exhaustedCounter(client);
  const wait = counter.reset_after_ms > 0 ? ` Full quota in ${duration(counter.reset_after_ms)}.` : "";
  return [refusedMark("✕ No quota left"), " in ", ruleAndLimit(counter.rule, counter.limit_text), `.${wait}`];
};

export const resultHeadline = (result) => {
  const { kind, explanation, source, client } = result;
  if (kind === "route") return routeHeadline(explanation);
  if (!explanation) return unexplainedHeadline(result);
  const answer = headline(explanation);
  return explanation.answer.allowed && source ? [...answer, " But ", ...refusalSummary(source, client), "."] : answer;
};

const queryElement = ({ key, facts, tenant }) => {
  const all = Object.entries({ ...(key === undefined ? facts : { key }), ...(tenant === undefined ? {} : { tenant }) });
  return element(
    "p",
    { class: "query" },
    all.map(([name, value]) => element("span", {}, element("span", { class: "dim" }, `${name} `), shortText(value))),
  );
};

// What the explanation is about, if it is not exactly the typed query.
const sourceNote = ({ query, source, explanation }) => {
  if (source && explanation)
    return `Explains the last refused request of this client (${clock(source.last_at)}); its facts are filled in.`;
  if (source) return "The facts of the refused request were not recorded; add them to explain it, such as c1 GET /search.";
  if (isSubjectOnly(query)) return "Only rules that match these facts were considered; add others, such as c1 GET /search.";
  return null;
};

const column = (...parts) => element("div", { class: "why-column" }, parts);
const title = (text) => element("h3", {}, text);

const clientColumn = (client, onExplain) =>
  column(
    title("Recent refusals"),
    refusalsTable(client, onExplain),
    title("Counters in every rule"),
    countersTable(client),
  );

const explanationColumn = (explanation) =>
  column(title("Limits of this request"), limitsTable(explanation), title("Rules tried"), rulesTried(explanation));

const routeDetails = ({ query, explanation }, policy) => [
  queryElement(query),
  routeTable(explanation, policy),
  element("p", { class: "dim" }, "Add a client to see its quota, such as c1 GET /search. No quota was used."),
];

// `buttons` is the element with the actions.
export const resultDetails = (result, { policy, buttons, onExplain }) => {
  if (result.kind === "route") return [...routeDetails(result, policy), buttons];
  const { query, client, explanation } = result;
  const note = sourceNote(result);
  return [
    queryElement(query),
    note ? element("p", { class: "dim" }, note) : null,
    explanation ? degradedNote(explanation) : null,
    ...(client ? overrideNotes(client) : []),
    buttons,
    element(
      "div",
      { class: "why-columns" },
      client ? clientColumn(client, onExplain) : null,
      explanation ? explanationColumn(explanation) : null,
    ),
    element("p", { class: "dim" }, `As of ${clock(nodeNow())}. No quota was used.`),
  ].filter((part) => part !== null);
};
