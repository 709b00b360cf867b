// Durations in options, YAML and on the command line: one grammar and one parser.

/** Milliseconds, or a string with units: `250ms`, `30s`, `1h30m`, `7d`, `2w`. */
export type Duration = number | string;

/** For error texts. */
export const durationShape = 'a duration such as 30s, 5m, 1h30m or 7d';

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};
const parts = /(\d+(?:\.\d+)?)(ms|s|m|h|d|w)/g;
/** Longer than any duration that a person writes. */
const charsMax = 100;
const whole = new RegExp(`^(?:${parts.source})+$`);

/**
 * The milliseconds of a duration, an integer; undefined: invalid. A string without a unit is invalid, because it could mean
 * seconds or milliseconds.
 *
 * @example
 * import { parseDuration } from 'millrace/foundation';
 *
 * console.log(parseDuration('1h30m'), parseDuration('90')); // 5400000 undefined
 */
export function parseDuration(duration: unknown): number | undefined {
  const rawMs = typeof duration === 'string' ? sum(duration) : duration;
  const ms = typeof rawMs === 'number' ? Math.round(rawMs) : Number.NaN;
  return Number.isSafeInteger(ms) && ms >= 0 ? ms : undefined;
}

function sum(text: string): number {
  if (text.length > charsMax) return Number.NaN;
  const compact = text.replaceAll(' ', '');
  if (!whole.test(compact)) return Number.NaN;
  return [...compact.matchAll(parts)].reduce(
    (ms, [, count, unit = '']) => ms + Number(count) * (unitMs[unit] ?? 0),
    0,
  );
}
