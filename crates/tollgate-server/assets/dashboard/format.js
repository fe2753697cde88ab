// Formats of numbers, times and limits.

const integer = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const oneDecimal = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (number) => integer.format(number);

// Rate per second: exact if small, compact if large.
export const rate = (number) => {
  if (number === null || number === undefined) return "–";
  if (number > 0 && number < 0.1) return "<0.1";
  if (number < 100) return oneDecimal.format(number);
  return number < 100_000 ? integer.format(number) : compact.format(number);
};

export const axis = (number) => (number >= 1000 ? compact.format(number) : oneDecimal.format(number));

export const latency = (micros) => {
  if (micros === null || micros === undefined) return "–";
  if (micros < 1000) return `${integer.format(micros)} µs`;
  if (micros < 1_000_000) return `${oneDecimal.format(micros / 1000)} ms`;
  return `${oneDecimal.format(micros / 1_000_000)} s`;
};

export const percent = (part, whole) => {
  if (!(whole > 0)) return "0 %";
  const value = (100 * part) / whole;
  if (value > 0 && value < 0.1) return "<0.1 %";
  return `${value < 10 ? oneDecimal.format(value) : integer.format(value)} %`;
};

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1000],
];

// Waiting time, rounded up so that a retry is never too early.
export const duration = (ms) => {
  if (ms < 1000) return `${Math.ceil(ms)} ms`;
  if (ms < 10_000) return `${Math.ceil(ms / 100) / 10} s`;
  const seconds = Math.ceil(ms / 1000) * 1000;
  const index = UNITS.findIndex(([, size]) => seconds >= size);
  const [unit, size] = UNITS[index];
  const [nextUnit, nextSize] = UNITS[index + 1] ?? [null, 0];
  const rest = nextUnit ? Math.floor((seconds % size) / nextSize) : 0;
  return `${Math.floor(seconds / size)} ${unit}${rest > 0 ? ` ${rest} ${nextUnit}` : ""}`;
};

// The unit after an amount; empty for requests.
export const unitSuffix = (unit) => (unit && unit !== "requests" ? ` ${unit}` : "");

// Usage of a limit. For a token bucket this is the amount left, which is what decides: after a change of the limit the
// used share stays used, so a used amount would not be the number of requests of the client.
export const usageText = ({ algorithm, unit, used, remaining, capacity }) => {
  if (capacity === 0) return "blocked";
  const whole = `${count(capacity)}${unitSuffix(unit)}`;
  if (algorithm === "token_bucket") return `${count(remaining)} of ${whole} left`;
  return `${count(used)} of ${whole} used`;
};

// Age, rounded down to its largest unit: 59 s ago, 2 min ago.
export const ago = (ms) => {
  if (ms < 1500) return "just now";
  const [unit, size] = UNITS.find(([, unitSize]) => ms >= unitSize) ?? ["s", 1000];
  return `${Math.floor(ms / size)} ${unit} ago`;
};

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

// Time of day; with the date if it is not today.
export const moment = (time) => {
  const date = new Date(time);
  return date.toDateString() === new Date().toDateString() ? clockTime.format(date) : dayTime.format(date);
};

// Time since a moment, rounded down: 59 s, 2 min 5 s.
export const elapsed = (ms) => duration(Math.max(1000, Math.floor(ms / 1000) * 1000));

// Limit in the notation of policies: 10/min, 100/250ms, 90000 tokens/min; a concurrency limit: 5 concurrent; a limit of 0:
// blocked.
export const limitText = ({ limit, window_ms: window, unit: counted }) => {
  if (limit === 0) return "blocked";
  if (window === null || window === undefined) return `${limit} concurrent`;
  const units = [["w", 604_800_000], ...UNITS, ["ms", 1]];
  const [unit, size] = units.find(([, unitSize]) => window % unitSize === 0);
  return `${limit}${unitSuffix(counted)}/${window === size ? "" : window / size}${unit}`;
};
