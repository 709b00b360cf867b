// Durations as text: `30s`, `1h`, `250ms`, `1h30m`.

import { invalid } from './rules/check-task.ts';
import { taskLimits } from './task-limits.ts';

/** Milliseconds, or a text such as `30s`, `5m`, `1h30m`, `7d`. */
export type Duration = number | string;

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const whole = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/;
const part = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/g;

/**
 * The milliseconds of a duration; an invalid one throws `TASK_INVALID` with the field.
 *
 * @example
 * import { durationMs } from 'millrace/tasks';
 *
 * console.log(durationMs('timeout', '1h30m')); // 5400000
 */
export function durationMs(field: string, duration: unknown): number {
  const ms = typeof duration === 'string' ? parse(duration) : duration;
  const fits = typeof ms === 'number' && ms >= 0 && ms <= taskLimits.durationMsMax;
  if (fits) return Math.round(ms);
  throw invalid(field, 'must be a time such as 30s, 5m or 1h30m, at most 366d');
}

function parse(text: string): number {
  const compact = text.trim().replaceAll(' ', '');
  if (!whole.test(compact)) return Number.NaN;
  let sum = 0;
  for (const [, count, unit = ''] of compact.matchAll(part))
    sum += Number(count) * (unitMs[unit] ?? 0);
  return sum;
}
