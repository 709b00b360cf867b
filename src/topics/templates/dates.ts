// Template functions for times and durations.

import { isTimeZone, localTimeZone } from '../../foundation/time-zone.ts';
import { formatGoDuration, formatGoTime, parseGoTime } from './go-time.ts';
import { parseGoDuration } from './go-duration.ts';
import { failed, text, time, type TemplateFunctions } from './arguments.ts';
import { TemplateTime, type TemplateValue } from './values.ts';

/** Go's zero time: January 1 of the year 1. */
const zeroMs = -62_135_596_800_000;

const isoDate = '2006-01-02';

export const dateFunctions: TemplateFunctions = {
  now: () => new TemplateTime(Date.now()),
  date: (layout, value) => inZone(text(layout), value, 'Local'),
  dateInZone: (layout, value, zone) => inZone(text(layout), value, text(zone)),
  htmlDate: (value) => inZone(isoDate, value, 'Local'),
  htmlDateInZone: (value, zone) => inZone(isoDate, value, text(zone)),
  dateModify: (by, value) => moved(time(value), parseGoDuration(text(by)) ?? 0),
  mustDateModify(by, value) {
    const ms = parseGoDuration(text(by)) ?? failed(`time: invalid duration "${text(by)}"`);
    return moved(time(value), ms);
  },
  toDate: (layout, value) => new TemplateTime(parseGoTime(text(layout), text(value)) ?? zeroMs),
  mustToDate: (layout, value) =>
    new TemplateTime(
      parseGoTime(text(layout), text(value)) ??
        failed(`parsing time "${text(value)}" as "${text(layout)}": cannot parse`),
    ),
  ago: (value) => formatGoDuration((Date.now() - momentOf(value)) / 1_000),
  duration: (value) => formatGoDuration(secondsOf(value)),
  durationRound: (value) => roundedDuration(durationMs(value)),
  unixEpoch: (value) => String(Math.floor(time(value).ms / 1_000)),
};

function moved({ ms }: TemplateTime, byMs: number): TemplateTime {
  const result = new TemplateTime(ms + byMs);
  return isReal(result.ms) ? result : failed('the time is out of range');
}

const isReal = (ms: number): boolean => Math.abs(ms) <= 8_640_000_000_000_000;

/** A time or Unix seconds; any other value is the current time, as in Sprig. */
function momentOf(value: TemplateValue): number {
  if (value instanceof TemplateTime) return value.ms;
  return typeof value === 'bigint' ? Number(value) * 1_000 : Date.now();
}

function inZone(layout: string, value: TemplateValue, zone: string): string {
  const ms = momentOf(value);
  if (!isReal(ms)) return failed('the time is out of range');
  // Like Sprig: an unknown zone is UTC.
  const known = zone === 'Local' ? localTimeZone() : isTimeZone(zone) ? zone : 'UTC';
  return formatGoTime(ms, layout, known);
}

function secondsOf(value: TemplateValue): number {
  if (typeof value === 'bigint') return Number(value);
  return typeof value === 'string' && /^[-+]?\d{1,18}$/.test(value) ? Number(value) : 0;
}

function durationMs(value: TemplateValue): number {
  if (value instanceof TemplateTime) return Date.now() - value.ms;
  // Go stores durations as nanoseconds.
  if (typeof value === 'bigint') return Number(value) / 1_000_000;
  return typeof value === 'string' ? (parseGoDuration(value) ?? 0) : 0;
}

const units = [
  ['y', 365 * 86_400_000],
  ['mo', 30 * 86_400_000],
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

function roundedDuration(ms: number): string {
  const size = Math.abs(ms);
  const [unit, unitMs] = units.find(([, each]) => size > each) ?? ['s', Infinity];
  return `${Math.floor(size / unitMs)}${unit}`;
}
