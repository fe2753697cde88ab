// Points of the live stream: the last 15 minutes, one per second, oldest first.

const SPAN_MS = 900_000;

// Name of the entry that sums up all rules without an entry of their own.
export const OTHER_RULES = "…";

// Age after which a point is final; nodes report with a delay.
const FINAL_AGE_MS = 2000;

export const createHistory = () => {
  let points = [];
  let now = 0;

  // Inserts a point, or replaces the one of the same second.
  const insert = (point) => {
    let index = points.length;
    while (index > 0 && points[index - 1].t >= point.t) index -= 1;
    const exists = points[index]?.t === point.t;
    points.splice(index, exists ? 1 : 0, point);
  };

  const dropOld = () => {
    const first = points.findIndex((point) => point.t >= now - SPAN_MS);
    if (first > 0) points = points.slice(first);
  };

  return {
    replace: (all) => {
      points = [...all].sort((a, b) => a.t - b.t);
      now = Math.max(now, points.at(-1)?.t ?? 0);
    },
    extend: (more) => {
      more.forEach(insert);
      now = Math.max(now, points.at(-1)?.t ?? 0);
    },
    add: (latest, time) => {
      latest.forEach(insert);
      now = time;
      dropOld();
    },
    now: () => now,
    // Points that do not change any more.
    finalPoints: () => {
      let end = points.length;
      while (end > 0 && points[end - 1].t > now - FINAL_AGE_MS) end -= 1;
      return points.slice(0, end);
    },
    isEmpty: () => !points.some((point) => point.allowed > 0 || point.refused > 0),
  };
};

// Counts by rule name: [checked, refused, shadow, next, diverged]. Points contain rates per second.
export const sumByRule = (points) => {
  const sums = new Map();
  for (const { rules, seconds = 1 } of points) {
    for (const [rule, rates] of Object.entries(rules ?? {})) {
      if (!sums.has(rule)) sums.set(rule, [0, 0, 0, 0, 0]);
      const sum = sums.get(rule);
      rates.forEach((value, index) => (sum[index] += value * seconds));
    }
  }
  return sums;
};
