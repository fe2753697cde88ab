// Numbers, times and limits as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (number) => whole.format(number);

// So many a second: exact while small, short when large.
export const rate = (number) => {
  if (number === null || number === undefined) return "–";
  if (number > 0 && number < 0.1) return "<0.1";
  if (number < 100) return tenth.format(number);
  return number < 100_000 ? whole.format(number) : short.format(number);
};

export const axis = (number) => (number >= 1000 ? short.format(number) : tenth.format(number));

export const latency = (micros) => {
  if (micros === null || micros === undefined) return "–";
  if (micros < 1000) return `${whole.format(micros)} µs`;
  if (micros < 1_000_000) return `${tenth.format(micros / 1000)} ms`;
  return `${tenth.format(micros / 1_000_000)} s`;
};

export const percent = (part, of) => {
  if (!(of > 0)) return "0 %";
  const share = (100 * part) / of;
  if (share > 0 && share < 0.1) return "<0.1 %";
  return `${share < 10 ? tenth.format(share) : whole.format(share)} %`;
};

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1000],
];

// A time that has to pass, rounded up so that nobody comes too early.
export const duration = (ms) => {
  if (ms < 1000) return `${Math.ceil(ms)} ms`;
  if (ms < 10_000) return `${Math.ceil(ms / 100) / 10} s`;
  const seconds = Math.ceil(ms / 1000) * 1000;
  const first = UNITS.findIndex(([, size]) => seconds >= size);
  const [unit, size] = UNITS[first];
  const [below, step] = UNITS[first + 1] ?? [null, 0];
  const rest = below ? Math.floor((seconds % size) / step) : 0;
  return `${Math.floor(seconds / size)} ${unit}${rest > 0 ? ` ${rest} ${below}` : ""}`;
};

export const ago = (ms) => (ms < 1500 ? "just now" : `${duration(Math.floor(ms / 1000) * 1000)} ago`);

const clockTime = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const minuteTime = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const dayTime = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});

export const clock = (time) => clockTime.format(time);
export const minute = (time) => minuteTime.format(time);

// Today by its hour, other days with their date.
export const moment = (time) => {
  const at = new Date(time);
  return at.toDateString() === new Date().toDateString() ? clockTime.format(at) : dayTime.format(at);
};

// A limit as a policy writes it: 10/min, 100/250ms, 5 concurrent.
export const limitOf = ({ limit, window_ms: window }) => {
  if (window === null || window === undefined) return limit === 0 ? "0" : `${limit} concurrent`;
  const units = [["w", 604_800_000], ...UNITS, ["ms", 1]];
  const [unit, size] = units.find(([, each]) => window % each === 0);
  return `${limit}/${window === size ? "" : window / size}${unit}`;
};
