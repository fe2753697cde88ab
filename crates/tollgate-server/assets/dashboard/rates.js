// Limits as administrators type them: `20/min 200/h`, `0`, `5-at-once`.
import { limitOf } from "./format.js";

const UNITS = { ms: 1, s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

const parseOne = (word) => {
  const slots = /^(\d+)-at-once$/.exec(word);
  if (slots) return { limit: Number(slots[1]), algorithm: "concurrency" };
  if (word === "0") return { limit: 0, window_ms: 60_000 };
  const [, limit, times, unit] = /^(\d+)\/(\d*)(ms|s|min|h|d|w)$/.exec(word) ?? [];
  if (!unit) throw new Error(`“${word}” is no limit; write 20/min, 100/h, 5/250ms, 0 or 5-at-once`);
  return { limit: Number(limit), window_ms: (times === "" ? 1 : Number(times)) * UNITS[unit] };
};

const wordOf = (limit) => limitOf(limit).replaceAll(" ", "-");

export const writeLimits = (limits) => limits.map(wordOf).join(" ");

const without = (limit) => Object.fromEntries(Object.entries(limit).filter(([, value]) => value !== null));

// A word that stands for one of `known` is that one whole, with the algorithm, burst and name that no word tells.
export const readLimits = (text, known = []) => {
  const words = text.split(/[\s,]+/).filter((word) => word !== "");
  if (words.length === 0) throw new Error("Give a limit, such as 20/min");
  return words.map((word) => {
    const same = known.find((limit) => wordOf(limit) === word);
    return same ? without(same) : parseOne(word);
  });
};

const extras = ({ burst, algorithm, name }) =>
  [burst && `burst ${burst}`, algorithm?.replaceAll("_", " "), name && `named ${name}`].filter(Boolean).join(", ");

export const describeLimits = (limits) =>
  limits.map((limit) => (extras(limit) ? `${limitOf(limit)} (${extras(limit)})` : limitOf(limit))).join(", ");
