// Durations of Go (`1h30m`), and the longer units that ntfy accepts for a delay (`2 days`).

const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};

/** Longer than any duration that a person writes. */
const charsMax = 100;

/** Returns milliseconds; undefined if Go cannot parse the text, or if it is too long. */
export function parseGoDuration(text: string): number | undefined {
  if (text.length > charsMax) return undefined;
  const [, sign = '', rest = ''] = /^([-+]?)(.*)$/s.exec(text) ?? [];
  if (rest === '0') return 0;
  if (!/^(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/.test(rest)) return undefined;
  let total = 0;
  for (const [, number = '', unit = ''] of rest.matchAll(
    /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g,
  )) {
    total += Number(number) * (unitMs[unit] ?? 0);
  }
  // Go counts nanoseconds in 63 bits.
  if (total > 9_223_372_036_854) return undefined;
  return sign === '-' ? -total : total;
}

/** A duration of Go, or a number and a unit, which may be days. */
export function parseLongDuration(text: string): number | undefined {
  if (text.length > charsMax) return undefined;
  const short = parseGoDuration(text);
  if (short !== undefined) return short;
  const [, number, word = ''] =
    /^(\d+)\s*(d|days?|h|hours?|m|mins?|minutes?|s|secs?|seconds?)$/i.exec(text) ?? [];
  if (number === undefined || number.length > 15) return undefined;
  // Upper-case units match the pattern but have no value, as in ntfy.
  const unit = word.slice(0, 1);
  if (unit === 'd') return Number(number) * 86_400_000;
  const ms = unitMs[unit];
  return ms === undefined ? undefined : Number(number) * ms;
}
