// Quiet hours: when a customer wants no notification, by the wall clock of the customer's time zone.

import { firstInstantOf, lastInstantOf, wallTimeAt } from 'millrace/foundation';

export const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const;
export type Weekday = (typeof weekdays)[number];

/** From one time of the day to another; past midnight if the end is not later than the start. */
export interface QuietWindow {
  /** First quiet minute, such as `22:00`. */
  readonly from: string;
  /** First minute that is not quiet, such as `07:00`. */
  readonly to: string;
  /** The days on which the window starts. Default: all. */
  readonly days?: readonly Weekday[];
}

export interface QuietHours {
  /** IANA name of the time zone, such as `Europe/Berlin`. */
  readonly timeZone: string;
  readonly windows: readonly QuietWindow[];
}

const minuteMs = 60_000;
const dayMs = 86_400_000;
const weekMinutes = 7 * 1_440;
/** Adjacent windows span less than a week, because `isEndless` windows are rejected. */
const chainMax = 200;

/**
 * When the quiet time at this instant ends; undefined if the instant is in no window. A window starts when the
 * wall clock first shows its start, and ends when the clock last shows its end: an hour that occurs twice is quiet
 * both times, and a time in a gap is the clock change itself. Adjacent windows count as one.
 *
 * @example
 * import { quietUntil } from 'millrace/customers';
 *
 * const night = { timeZone: 'Europe/Berlin', windows: [{ from: '22:00', to: '07:00' }] };
 * const until = quietUntil(night, Date.parse('2026-03-29T00:30:00Z'));
 * console.log(new Date(until ?? 0).toISOString()); // 2026-03-29T05:00:00.000Z: summer time
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

/** The latest end of the windows that contain this instant. */
function windowEnd({ timeZone, windows }: QuietHours, atMs: number): number | undefined {
  const today = Math.floor(wallTimeAt(timeZone, atMs) / dayMs);
  let latest: number | undefined;
  for (const { from, to, days } of windows) {
    const [start, end] = [minuteOf(from), minuteOf(to)];
    const length = end > start ? end - start : end - start + 1_440;
    // The day before yesterday too: a zone can skip a whole day (Samoa, 2011).
    for (const day of [today - 2, today - 1, today]) {
      if (days !== undefined && !days.includes(weekdayOf(day))) continue;
      const startMs = day * dayMs + start * minuteMs;
      const endMs = lastInstantOf(timeZone, startMs + length * minuteMs);
      if (endMs <= atMs || endMs <= (latest ?? 0)) continue;
      if (firstInstantOf(timeZone, startMs) <= atMs) latest = endMs;
    }
  }
  return latest;
}

/** Whether the windows cover every minute of the week, so that no notification would ever be sent. */
export function isEndless(windows: readonly QuietWindow[]): boolean {
  const quiet = new Set<number>();
  for (const { from, to, days = weekdays } of windows) {
    const [start, end] = [minuteOf(from), minuteOf(to)];
    const length = end > start ? end - start : end - start + 1_440;
    for (const day of days) {
      const first = weekdays.indexOf(day) * 1_440 + start;
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
