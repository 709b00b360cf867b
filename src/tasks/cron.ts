// When a cron expression fires, in a time zone: croner calculates the ticks.

import { Cron } from 'croner';
import { MillraceError } from '../foundation/error.ts';
import { isTimeZone } from '../foundation/time-zone.ts';

export interface CronSchedule {
  /** The first tick after this time; undefined if there is none, as for February 30. */
  next(afterMs: number): number | undefined;
}

/** The part of croner's grammar that standard cron supports: no `L`, `W`, `#` or `?`. */
const fieldGrammar = /^(?:(?:\*|(?:\d+|[a-z]{3})(?:-(?:\d+|[a-z]{3}))?)(?:\/\d+)?(?:,(?!$)|$))+$/;
/** The last value of minute, hour, day of the month, month and day of the week. */
const fieldMax = [59, 23, 31, 12, 7] as const;

/**
 * Parses five fields: minute, hour, day of the month, month, day of the week (0 and 7 are Sunday), with lists,
 * ranges, steps and names of months and days. If both day fields are restricted, one match suffices.
 *
 * When clocks go forward, a skipped time fires right after the gap. When they go back, a repeated time fires once.
 * An hour or a minute with `*`, a range or a step is an interval: it skips the gap and fires in both repeated hours.
 *
 * @example
 * import { parseCron } from 'millrace/tasks';
 *
 * const mornings = parseCron('30 7 * * mon-fri', 'Europe/Berlin');
 * console.log(new Date(mornings.next(Date.UTC(2026, 1, 14)) ?? 0).toISOString()); // 2026-02-16T06:30:00.000Z
 */
export function parseCron(expression: string, timeZone = 'UTC'): CronSchedule {
  if (!isTimeZone(timeZone)) {
    const message = `unknown time zone '${timeZone}'; use a name such as Europe/Berlin`;
    throw new MillraceError('TASK_INVALID', message, { details: { field: 'timeZone' } });
  }
  const fields = expression.trim().toLowerCase().split(/\s+/);
  if (fields.length !== 5) throw invalid(expression, 'it must have five fields');
  const wrong = fields.find((each) => !fieldGrammar.test(each));
  if (wrong !== undefined) throw invalid(expression, `unexpected '${wrong}'`);
  // cron reads `5/2` as `5-7/2`; croner does not.
  const [minutes = '', hours = '', days = '', months = '', weekdays = ''] = fields.map((each, at) =>
    each.replaceAll(/(^|,)(\w+)\//g, `$1$2-${fieldMax[at]}/`),
  );
  const options = {
    timezone: timeZone,
    // `*/2` counts as unrestricted, as in every cron.
    domAndDow: days.startsWith('*') || weekdays.startsWith('*'),
  };
  // One schedule per listed time: croner takes only a single time for a fixed one, which no clock change skips.
  const times = hours.includes('*')
    ? [`${minutes} ${hours}`]
    : hours.split(',').flatMap((hour) => minutes.split(',').map((minute) => `${minute} ${hour}`));
  let schedules: readonly Cron[];
  try {
    schedules = times.map((time) => new Cron(`${time} ${days} ${months} ${weekdays}`, options));
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message.replace('CronPattern: ', '') : 'invalid';
    throw invalid(expression, problem, cause);
  }
  return {
    next(afterMs) {
      const after = new Date(afterMs);
      const found = schedules.flatMap((schedule) => schedule.nextRun(after)?.getTime() ?? []);
      return found.length === 0 ? undefined : Math.min(...found);
    },
  };
}

function invalid(expression: string, problem: string, cause?: unknown): MillraceError {
  return new MillraceError('TASK_INVALID', `cron '${expression.slice(0, 100)}': ${problem}`, {
    details: { field: 'cron' },
    cause,
  });
}
