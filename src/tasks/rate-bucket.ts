// A rate as one number: when the bucket would be full again. Engines keep it by type, or by tenant.

/**
 * How many of `wanted` may go now, and what is kept of it. The bucket holds `count`, and fills evenly
 * within `perMs`. Scripts of other languages do the same sum.
 *
 * @example
 * import { takeTokens } from 'millrace/tasks';
 *
 * const first = takeTokens({ fullAtMs: 0, nowMs: 1_000, wanted: 5, count: 3, perMs: 60_000 });
 * console.log(first.taken, first.freeAtMs); // 3 21000
 */
export function takeTokens(ask: {
  readonly fullAtMs: number;
  readonly nowMs: number;
  readonly wanted: number;
  readonly count: number;
  readonly perMs: number;
}): {
  readonly taken: number;
  readonly fullAtMs: number;
  /** When there is one more, if fewer were taken than wanted; else `nowMs`. */
  readonly freeAtMs: number;
} {
  const { nowMs, wanted, count, perMs } = ask;
  const eachMs = perMs / count;
  const beganMs = Math.max(ask.fullAtMs, nowMs);
  // A little more than exact: sums of fractions must not keep back the last one.
  const room = Math.floor((nowMs + perMs - beganMs) / eachMs + 1e-6);
  const taken = Math.max(0, Math.min(wanted, room));
  const fullAtMs = taken === 0 ? ask.fullAtMs : beganMs + taken * eachMs;
  const freeAtMs = taken < wanted ? Math.ceil(fullAtMs + eachMs - perMs) : nowMs;
  return { taken, fullAtMs, freeAtMs: Math.max(freeAtMs, nowMs) };
}
