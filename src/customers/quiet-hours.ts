// Quiet hours: when a customer wants to be left alone, by the clock on the customer's wall, whatever that clock
// does twice a year.

import { finallyAt, firstAt, wallAt } from './zone-time.ts';

export const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const;
export type Weekday = (typeof weekdays)[number];

/** From a time of the day to another, over midnight where the end is not later than the begin. */
export interface QuietWindow {
  /** `22:00`. */
  readonly from: string;
  /** `07:00`: from then on it is over. */
  readonly to: string;
  /** On which it begins. Default: on all. */
  readonly days?: readonly Weekday[];
}

export interface QuietHours {
  /** IANA: `Europe/Berlin`. */
  readonly timeZone: string;
  readonly windows: readonly QuietWindow[];
}

const minuteMs = 60_000;
const dayMs = 86_400_000;
const weekMinutes = 7 * 1_440;
/** A chain of windows without a gap is shorter than a week: `isEndless` ones are refused. */
const chainMax = 200;

/**
 * When the quiet time that this moment is in will be over; undefined: it is in none. A window begins when the
 * wall clock first shows its begin, and ends when it shows its end for good: an hour that comes twice stays
 * quiet both times, and a time that is left out is the moment of the change. Windows that touch are one.
 *
 * @example
 * import { quietUntil } from 'millrace/customers';
 *
 * const night = { timeZone: 'Europe/Berlin', windows: [{ from: '22:00', to: '07:00' }] };
 * const until = quietUntil(night, Date.parse('2026-03-29T00:30:00Z'));
 * console.log(new Date(until ?? 0).toISOString()); // 2026-03-29T05:00:00.000Z: it is summer time by then
 */
export function quietUntil(hours: QuietHours, atMs: number): number | undefined {
  let untilMs = atMs;
  for (let links = 0; links < chainMax; links += 1) {
    const endMs = windowEnd(hours, untilMs);
    if (endMs === undefined) break;
    untilMs = endMs;
  }
  return untilMs === atMs ? undefined : untilMs;
}

/** The latest end of the windows that hold this moment. */
function windowEnd({ timeZone, windows }: QuietHours, atMs: number): number | undefined {
  const today = Math.floor(wallAt(timeZone, atMs) / dayMs);
  let latest: number | undefined;
  for (const { from, to, days } of windows) {
    const [begin, end] = [minuteOf(from), minuteOf(to)];
    const length = end > begin ? end - begin : end - begin + 1_440;
    // The day before yesterday, for whom a whole day was left out (Samoa, 2011).
    for (const day of [today - 2, today - 1, today]) {
      if (days !== undefined && !days.includes(weekdayOf(day))) continue;
      const beginMs = day * dayMs + begin * minuteMs;
      const endMs = finallyAt(timeZone, beginMs + length * minuteMs);
      if (endMs <= atMs || endMs <= (latest ?? 0)) continue;
      if (firstAt(timeZone, beginMs) <= atMs) latest = endMs;
    }
  }
  return latest;
}

/** Nobody would ever be told anything: windows that leave no minute of the week. */
export function isEndless(windows: readonly QuietWindow[]): boolean {
  const quiet = new Set<number>();
  for (const { from, to, days = weekdays } of windows) {
    const [begin, end] = [minuteOf(from), minuteOf(to)];
    const length = end > begin ? end - begin : end - begin + 1_440;
    for (const day of days) {
      const first = weekdays.indexOf(day) * 1_440 + begin;
      for (let minute = 0; minute < length; minute += 1) quiet.add((first + minute) % weekMinutes);
    }
  }
  return quiet.size === weekMinutes;
}

function minuteOf(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3, 5));
}

/** The first day of 1970 was a Thursday. */
function weekdayOf(day: number): Weekday {
  return weekdays[(((day + 4) % 7) + 7) % 7] ?? 'sun';
}
