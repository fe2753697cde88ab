// Loads what "Why?" shows about a query: the client in every rule, and the explanation of a request. A query that
// names only a client is explained by its last refused request, because a request without a path matches other rules.
import { readClientPath, request } from "./api.js";
import { exhaustedCounter, refusedQuery } from "./client-view.js";
import { isRoute, isSubjectOnly, subjectOf } from "./query.js";

const explain = (query) => request("POST", "/api/explain", { body: query });

const readClient = (query) => {
  const subject = subjectOf(query);
  if (subject === null) return null;
  return request("GET", readClientPath(subject), { query: { tenant: query.tenant } });
};

// Returns { kind, query, explanation, client, source }. `kind` is "route" or "client"; `query` is the explained one;
// `source` is the refusal that it was taken from, or null. `explanation` is null if the facts of the last refusal are
// unknown, or if the client has no quota in a rule that the typed facts do not match.
export const lookUp = async (typed) => {
  if (isRoute(typed)) return { kind: "route", query: typed, explanation: await explain(typed), client: null, source: null };
  const client = await readClient(typed);
  const found = { kind: "client", query: typed, client, source: null };
  if (!client || !isSubjectOnly(typed)) return { ...found, explanation: await explain(typed) };
  const [source] = client.refusals;
  if (source) {
    const query = refusedQuery(source, client);
    return { ...found, query: query ?? typed, source, explanation: query ? await explain(query) : null };
  }
  const explanation = await explain(typed);
  const isElsewhere = explanation.answer.allowed && exhaustedCounter(client) !== undefined;
  return { ...found, explanation: isElsewhere ? null : explanation };
};
