// When a cron expression fires, in a time zone; pure.

import { MillraceError } from '../foundation/error.ts';

/** Which minutes match. */
export interface CronSchedule {
  /** The first tick after this time; undefined: none within five years. */
  next(afterMs: number): number | undefined;
}

interface Wall {
  readonly minute: number;
  readonly hour: number;
  readonly day: number;
  readonly month: number;
  readonly weekday: number;
}

const minuteMs = 60_000;
const dayMs = 86_400_000;
const monthNames = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
const dayNames = 'sun mon tue wed thu fri sat'.split(' ');

/**
 * Five fields: minute, hour, day of the month, month, day of the week (0 and 7 are Sunday); lists, ranges,
 * steps and names of months and days. Of days both fields say something: either one suffices, as in every
 * cron. A time that does not exist when clocks go forward fires right behind the gap; one that comes twice
 * fires once, unless the hour is `*`.
 *
 * @example
 * import { parseCron } from 'millrace/tasks';
 *
 * const mornings = parseCron('30 7 * * mon-fri', 'Europe/Berlin');
 * console.log(new Date(mornings.next(Date.UTC(2026, 1, 14)) ?? 0).toISOString()); // 2026-02-16T06:30:00.000Z
 */
export function parseCron(expression: string, timeZone = 'UTC'): CronSchedule {
  const parts = expression.trim().toLowerCase().split(/\s+/);
  const [minutes = '', hours = '', days = '', months = '', weekdays = ''] = parts;
  if (parts.length !== 5) throw bad(expression, 'must have five fields');
  const field = (text: string, min: number, max: number, names: readonly string[] = []) =>
    parseField(text, { min, max, names, expression });
  const minute = field(minutes, 0, 59);
  const hour = field(hours, 0, 23);
  const day = field(days, 1, 31);
  const month = field(months, 1, 12, monthNames);
  const weekday = field(weekdays, 0, 7, dayNames);
  if (weekday.has(7)) weekday.add(0);
  const isEveryDay = days.startsWith('*');
  const isEveryWeekday = weekdays.startsWith('*');
  const isEveryHour = hours.startsWith('*');
  const wallOf = wallClock(timeZone);

  function isOnDay(wall: Wall): boolean {
    if (!month.has(wall.month)) return false;
    const [byDay, byWeekday] = [day.has(wall.day), weekday.has(wall.weekday)];
    if (isEveryDay || isEveryWeekday) return byDay && byWeekday;
    return byDay || byWeekday;
  }
  const matches = (wall: Wall): boolean =>
    isOnDay(wall) && hour.has(wall.hour) && minute.has(wall.minute);

  /** Local times between the two that never were: those of them that match fire now. */
  function isBehindGap(fromMs: number, toMs: number): boolean {
    const from = wallOf(fromMs);
    const skipped = sinceMidnight(wallOf(toMs)) - sinceMidnight(from) - (toMs - fromMs) / minuteMs;
    if (skipped <= 0 || skipped > 180) return false;
    const last = sinceMidnight(wallOf(toMs));
    for (let at = last - skipped; at < last; at += 1) {
      if (matches({ ...from, hour: Math.floor(at / 60), minute: at % 60 })) return true;
    }
    return false;
  }

  /** The same local time was there an hour before. */
  function isSecond(ms: number, wall: Wall): boolean {
    const before = wallOf(ms - 60 * minuteMs);
    return before.hour === wall.hour && before.minute === wall.minute;
  }

  return {
    next(afterMs) {
      const endMs = afterMs + 5 * 366 * dayMs;
      let ms = Math.floor(afterMs / minuteMs) * minuteMs + minuteMs;
      let beforeMs = ms - minuteMs;
      while (ms < endMs) {
        const wall = wallOf(ms);
        if (matches(wall) && (isEveryHour || !isSecond(ms, wall))) return ms;
        if (isBehindGap(beforeMs, ms)) return ms;
        beforeMs = ms;
        // To the next day, hour or minute that could match; an hour at most, so that no gap is passed unseen.
        const leftInHour = 60 - wall.minute;
        const isFar = !isOnDay(wall) && wall.hour < 22;
        if (isFar) ms += (22 - wall.hour) * 60 * minuteMs - wall.minute * minuteMs;
        else if (!isOnDay(wall) || !hour.has(wall.hour)) ms += leftInHour * minuteMs;
        else ms += minuteMs;
      }
      return undefined;
    },
  };
}

const sinceMidnight = ({ hour, minute }: Wall): number => hour * 60 + minute;

function parseField(
  text: string,
  {
    min,
    max,
    names,
    expression,
  }: {
    readonly min: number;
    readonly max: number;
    readonly names: readonly string[];
    readonly expression: string;
  },
): Set<number> {
  const numberOf = (part: string): number => {
    const named = names.indexOf(part);
    const value = named >= 0 ? named + (min === 1 ? 1 : 0) : /^\d+$/.test(part) ? Number(part) : -1;
    if (value >= min && value <= max) return value;
    throw bad(expression, `has '${part}' where a number from ${min} to ${max} belongs`);
  };
  const found = new Set<number>();
  for (const part of text.split(',')) {
    const [range = '', step] = part.split('/', 2);
    const by = step === undefined ? 1 : /^[1-9]\d*$/.test(step) ? Number(step) : 0;
    if (by === 0) throw bad(expression, `has a step that is no number: '${part}'`);
    const [from = '', to] = range === '*' ? [String(min), String(max)] : range.split('-', 2);
    const first = numberOf(from);
    const last = to === undefined ? (step === undefined ? first : max) : numberOf(to);
    if (last < first) throw bad(expression, `has a range that goes backwards: '${part}'`);
    for (let value = first; value <= last; value += by) found.add(value);
  }
  return found;
}

function wallClock(timeZone: string): (ms: number) => Wall {
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
    });
  } catch (cause) {
    const message = `'${timeZone}' is no time zone; use a name such as Europe/Berlin`;
    throw new MillraceError('TASK_INVALID', message, { details: { field: 'timeZone' }, cause });
  }
  return (ms) => {
    const parts: Record<string, number> = {};
    for (const { type, value } of format.formatToParts(ms)) parts[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0 } = parts;
    const weekday = new Date(Date.UTC(year, month - 1, day)).getUTCDay();
    return { minute, hour, day, month, weekday };
  };
}

function bad(expression: string, problem: string): MillraceError {
  return new MillraceError('TASK_INVALID', `cron '${expression.slice(0, 100)}' ${problem}`, {
    details: { field: 'cron' },
  });
}
