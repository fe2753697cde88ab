// Text form of a query, as on the command line: a key, or facts separated by spaces. Values with spaces or invisible
// characters are JSON strings in double quotes. A method and a path may follow, or stand alone: `c1 GET /search`.

const WORD = /\s*((?:[^\s"=]+=)?)("(?:[^"\\]|\\.)*"|[^\s]+)/y;

const unquote = (value) => {
  if (!value.startsWith('"')) return value;
  try {
    return JSON.parse(value);
  } catch {
    throw new Error(`${value} is not a valid quoted value; inside quotes write \\" for " and \\\\ for \\`);
  }
};

const splitWords = (text) => {
  const words = [];
  WORD.lastIndex = 0;
  while (WORD.lastIndex < text.length) {
    const [, name, value] = WORD.exec(text) ?? [];
    if (value === undefined) break;
    words.push({ name: name.slice(0, -1), value: unquote(value), isQuoted: value.startsWith('"') });
  }
  return words;
};

// As on the command line, `https://x?a=b` is a key that contains an equals sign.
const isFact = ({ name }) => /^[!-~]+$/.test(name) && !/[/?]/.test(name);

// A method and a path at the end of the text, and the text before them.
const REQUEST_LINE = /^(?:(.*\S)\s+)?([A-Z]{3,10})\s+(\/\S*)$/s;

const isQuotedKey = (text) => /^"(?:[^"\\]|\\.)*"$/s.test(text);

// Parses typed text into a body for /api/explain. If the first word is not a fact, the whole text is a key.
export const parseQuery = (typed) => {
  const text = typed.trim();
  if (text === "") throw new Error("Enter a client, facts such as client=c1, or a route such as GET /search");
  const [, before, method, path] = (isQuotedKey(text) ? null : REQUEST_LINE.exec(text)) ?? [];
  if (path === undefined) return parseKeyOrFacts(text);
  if (before === undefined) return { facts: { method, path } };
  const { key, facts, ...others } = parseKeyOrFacts(before);
  for (const name of ["method", "path"])
    if (Object.hasOwn(facts ?? {}, name)) throw new Error(`Fact ${name} is given twice; give it once`);
  return { facts: { ...(key === undefined ? facts : { client: key }), method, path }, ...others };
};

const parseKeyOrFacts = (text) => {
  const words = splitWords(text);
  if (words.length === 1 && words[0].isQuoted && words[0].name === "") return { key: words[0].value };
  if (words.length === 0 || !isFact(words[0])) return { key: text };
  const facts = {};
  for (const word of words) {
    if (!isFact(word))
      throw new Error(`“${word.value}” is not a fact; write fact=value, and quote values that contain spaces`);
    if (Object.hasOwn(facts, word.name)) throw new Error(`Fact ${word.name} is given twice; give it once`);
    Object.defineProperty(facts, word.name, { value: word.value, enumerable: true });
  }
  const { tenant, ...others } = facts;
  return { facts: others, ...(tenant === undefined ? {} : { tenant }) };
};

const escape = (letter) =>
  letter
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
const quote = (value) => {
  if (/^[^\s"\\\p{C}\p{Z}]+$/u.test(value)) return value;
  return JSON.stringify(value).replace(/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, escape);
};

export const formatQuery = (facts, tenant = "") => {
  const all = tenant && !Object.hasOwn(facts, "tenant") ? { ...facts, tenant } : facts;
  return Object.entries(all)
    .map(([name, value]) => `${name}=${quote(value)}`)
    .join(" ");
};

// The client of a query, or null.
export const clientOf = ({ key, facts }) => key ?? facts?.client ?? null;

const ROUTE_FACTS = ["method", "path", "host"];

// Whether a query is about a route, not about a client.
export const isRoute = ({ key, facts = {} }) =>
  key === undefined && Object.hasOwn(facts, "path") && Object.keys(facts).every((name) => ROUTE_FACTS.includes(name));

// The value to look up: that of the client, or of another fact that rules count by.
export const subjectOf = (query) => {
  const others = Object.entries(query.facts ?? {}).filter(([name]) => !ROUTE_FACTS.includes(name));
  return clientOf(query) ?? query.facts?.user ?? query.facts?.ip ?? others[0]?.[1] ?? null;
};

// Whether a query names only a client or another subject, without facts of a request.
export const isSubjectOnly = ({ key, facts = {} }) =>
  key !== undefined || (Object.keys(facts).length === 1 && !ROUTE_FACTS.includes(Object.keys(facts)[0]));
