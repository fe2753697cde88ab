// What is typed to ask about a request, as the command line has it: a key, or facts between spaces. Values with
// spaces or signs that cannot be seen stand in double quotes, as JSON writes them.

const WORD = /\s*((?:[^\s"=]+=)?)("(?:[^"\\]|\\.)*"|[^\s]+)/y;

const unquote = (value) => {
  if (!value.startsWith('"')) return value;
  try {
    return JSON.parse(value);
  } catch {
    throw new Error(`${value} is not well quoted; in quotes write \\" for " and \\\\ for \\`);
  }
};

const words = (text) => {
  const found = [];
  WORD.lastIndex = 0;
  while (WORD.lastIndex < text.length) {
    const [, name, value] = WORD.exec(text) ?? [];
    if (value === undefined) break;
    found.push({ name: name.slice(0, -1), value: unquote(value), quoted: value.startsWith('"') });
  }
  return found;
};

// As on the command line, `https://x?a=b` is a key that happens to hold an equals sign.
const isFact = ({ name }) => /^[!-~]+$/.test(name) && !/[/?]/.test(name);

// The body of /explain. What does not begin with a fact is a key from end to end.
export const readQuestion = (typed) => {
  const text = typed.trim();
  if (text === "") throw new Error("Type a key, or facts such as client=c1");
  const found = words(text);
  if (found.length === 1 && found[0].quoted && found[0].name === "") return { key: found[0].value };
  if (found.length === 0 || !isFact(found[0])) return { key: text };
  const facts = {};
  for (const word of found) {
    if (!isFact(word))
      throw new Error(`“${word.value}” is no fact; write fact=value, with quotes where a value has spaces`);
    if (Object.hasOwn(facts, word.name)) throw new Error(`The fact ${word.name} is given twice`);
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

export const writeQuestion = (facts, tenant = "") => {
  const all = tenant && !Object.hasOwn(facts, "tenant") ? { ...facts, tenant } : facts;
  return Object.entries(all)
    .map(([name, value]) => `${name}=${quote(value)}`)
    .join(" ");
};

// Which client a question is about, if it says so.
export const clientOf = ({ key, facts }) => key ?? facts?.client ?? null;
