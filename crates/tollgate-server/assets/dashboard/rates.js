// Text form of limits: `20/min 200/h`, `blocked` (also `0`), `5-concurrent` (also `5-at-once`).
import { limitText } from "./format.js";

const UNITS = { ms: 1, s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

const parseLimit = (word) => {
  const slots = /^(\d+)-(?:concurrent|at-once)$/.exec(word);
  if (slots) return { limit: Number(slots[1]), algorithm: "concurrency" };
  if (word === "0" || word === "blocked") return { limit: 0, window_ms: 60_000 };
  const [, limit, times, unit] = /^(\d+)\/(\d*)(ms|s|min|h|d|w)$/.exec(word) ?? [];
  if (!unit) throw new Error(`“${word}” is not a limit; write 20/min, 100/h, 5/250ms, blocked or 5-concurrent`);
  return { limit: Number(limit), window_ms: (times === "" ? 1 : Number(times)) * UNITS[unit] };
};

const limitWord = (limit) => limitText(limit).replaceAll(" ", "-");

export const formatLimits = (limits) => limits.map(limitWord).join(" ");

const withoutNulls = (limit) => Object.fromEntries(Object.entries(limit).filter(([, value]) => value !== null));

// Parses limits. A word that equals one of the `known` limits keeps its algorithm, burst and name, which the text
// cannot express.
export const parseLimits = (text, known = []) => {
  const words = text.split(/[\s,]+/).filter((word) => word !== "");
  if (words.length === 0) throw new Error("Enter a limit, such as 20/min");
  return words.map((word) => {
    const same = known.find((limit) => limitWord(limit) === word);
    return same ? withoutNulls(same) : parseLimit(word);
  });
};

const extras = ({ burst, algorithm, name }) =>
  [burst && `burst ${burst}`, algorithm?.replaceAll("_", " "), name && `named ${name}`].filter(Boolean).join(", ");

export const describeLimits = (limits) =>
  limits.map((limit) => (extras(limit) ? `${limitText(limit)} (${extras(limit)})` : limitText(limit))).join(", ");
