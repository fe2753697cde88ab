// The last fifteen minutes, a point a second, oldest first.

export const SPAN_MS = 900_000;

// What the rules that are not told one by one come to together.
export const REST = "…";

// Figures of the newest seconds still grow: nodes tell them a moment later.
const SETTLED_MS = 2000;

export const createHistory = () => {
  let points = [];
  let now = 0;

  const put = (point) => {
    let at = points.length;
    while (at > 0 && points[at - 1].t >= point.t) at -= 1;
    const same = points[at]?.t === point.t;
    points.splice(at, same ? 1 : 0, point);
  };

  const forget = () => {
    const old = points.findIndex((point) => point.t >= now - SPAN_MS);
    if (old > 0) points = points.slice(old);
  };

  return {
    replace: (all) => {
      points = [...all].sort((one, other) => one.t - other.t);
      now = Math.max(now, points.at(-1)?.t ?? 0);
    },
    extend: (others) => {
      others.forEach(put);
      now = Math.max(now, points.at(-1)?.t ?? 0);
    },
    add: (latest, time) => {
      latest.forEach(put);
      now = time;
      forget();
    },
    now: () => now,
    // What is not going to change any more.
    settled: () => {
      let end = points.length;
      while (end > 0 && points[end - 1].t > now - SETTLED_MS) end -= 1;
      return points.slice(0, end);
    },
    isEmpty: () => !points.some((point) => point.allowed > 0 || point.refused > 0),
  };
};

// What each rule came to: [checked, refused, shadow, next, diverged] by its name.
export const sumByRule = (points) => {
  const sums = new Map();
  for (const point of points) {
    for (const [rule, figures] of Object.entries(point.rules ?? {})) {
      if (rule === REST) continue;
      const sum = sums.get(rule) ?? [0, 0, 0, 0, 0];
      sums.set(
        rule,
        sum.map((value, at) => value + (figures[at] ?? 0)),
      );
    }
  }
  return sums;
};
