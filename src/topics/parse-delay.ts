// When a scheduled message is delivered: a Unix time, a duration, or a time in English (`tomorrow, 3:30pm`,
// `tuesday 9am`). Times in English are in the time zone of the machine, as in ntfy.

import { parseLongDuration } from './templates/go-duration.ts';
import { ntfyError } from './ntfy-problems.ts';

export interface DelayLimits {
  readonly delayMsMin: number;
  readonly delayMsMax: number;
}

/** Longer than any time that a person writes. */
const charsMax = 100;

/** Returns Unix seconds. */
export function parseDelay(text: string, nowMs: number, limits: DelayLimits): number {
  const atMs = text.length > charsMax ? undefined : futureTime(text.trim(), nowMs);
  if (atMs === undefined || !Number.isFinite(atMs)) throw ntfyError('delayUnreadable');
  const at = Math.floor(atMs / 1_000);
  if (at < Math.floor((nowMs + limits.delayMsMin) / 1_000)) throw ntfyError('delayTooSmall');
  if (at > Math.floor((nowMs + limits.delayMsMax) / 1_000)) throw ntfyError('delayTooLarge');
  return at;
}

function futureTime(text: string, nowMs: number): number | undefined {
  if (/^[-+]?\d{1,18}$/.test(text)) {
    const seconds = Number(text);
    if (seconds >= Math.floor(nowMs / 1_000)) return seconds * 1_000;
  }
  const spanMs = parseLongDuration(text);
  return spanMs === undefined ? parseNaturalTime(text, nowMs) : nowMs + spanMs;
}

interface TimeOfDay {
  readonly hour: number;
  readonly minute: number;
}

const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const partsOfDay: Readonly<Record<string, number>> = {
  morning: 8,
  noon: 12,
  afternoon: 15,
  evening: 18,
};
const numberWords = 'zero one two three four five six seven eight nine ten eleven twelve'.split(
  ' ',
);
const spans: Readonly<Record<string, number>> = {
  sec: 1_000,
  min: 60_000,
  hou: 3_600_000,
  day: 86_400_000,
  wee: 7 * 86_400_000,
};

/** A time in the future: a time of today that has passed means tomorrow. Undefined: the text contains no time. */
export function parseNaturalTime(text: string, nowMs: number): number | undefined {
  const words = text.toLowerCase();
  const first = resolve(words, nowMs);
  if (first === undefined || first > nowMs) return first;
  const next = resolve(`tomorrow, ${words}`, nowMs);
  return next !== undefined && next > nowMs ? next : undefined;
}

function resolve(text: string, nowMs: number): number | undefined {
  const shiftDays = daysOf(text, nowMs);
  const time = timeOf(text);
  const plusMs = spanOf(text);
  if (shiftDays === undefined && time === undefined && plusMs === undefined) return undefined;
  const at = new Date(nowMs + (plusMs ?? 0));
  if (shiftDays !== undefined) at.setDate(at.getDate() + shiftDays);
  if (time !== undefined) at.setHours(time.hour, time.minute, 0, 0);
  return at.getTime();
}

/** The number of days between today and the named day. */
function daysOf(text: string, nowMs: number): number | undefined {
  const [, casual] = /(?:^|\W)(today|tonight|tomorrow|tmr|now)(?:\W|$)/.exec(text) ?? [];
  if (casual !== undefined) return casual === 'tomorrow' || casual === 'tmr' ? 1 : 0;
  const [, which = '', name] =
    /(?:^|\W)(?:on\s+)?(?:(last|past|this|next)\s+)?(sunday|sun|monday|mon|tuesday|tues|tue|wednesday|wed|thursday|thurs|thur|thu|friday|fri|saturday|sat)(?:\W|$)/.exec(
      text,
    ) ?? [];
  if (name === undefined) return undefined;
  const wanted = weekdays.indexOf(name.slice(0, 3));
  const today = new Date(nowMs).getDay();
  if (which === 'last' || which === 'past') return -((today - wanted + 7) % 7 || 7);
  return (wanted - today + 7) % 7 || 7;
}

function timeOf(text: string): TimeOfDay | undefined {
  const [, hours, minutes, half] =
    /(?:^|\W)(\d{1,2})(?::|：)(\d{2})\s*(a\.?m?\.?|p\.?m?\.?)?(?:\W|$)/.exec(text) ?? [];
  if (hours !== undefined && minutes !== undefined)
    return clockTime(Number(hours), Number(minutes), half);
  const [, hour, which] = /(?:^|\W)(\d{1,2})\s*(a\.m\.|p\.m\.|am|pm|a|p)(?:\W|$)/.exec(text) ?? [];
  if (hour !== undefined) return clockTime(Number(hour), 0, which);
  if (/(?:^|\W)tonight(?:\W|$)/.test(text)) return { hour: 23, minute: 0 };
  const [, part] = /(?:^|\W)(morning|afternoon|evening|noon)(?:\W|$)/.exec(text) ?? [];
  return part === undefined ? undefined : { hour: partsOfDay[part] ?? 0, minute: 0 };
}

function clockTime(hour: number, minute: number, half: string | undefined): TimeOfDay | undefined {
  if (minute > 59) return undefined;
  if (half === undefined) return hour > 23 ? undefined : { hour, minute };
  if (hour > 12) return undefined;
  return { hour: (hour % 12) + (half.startsWith('p') ? 12 : 0), minute };
}

function spanOf(text: string): number | undefined {
  const [, half, number = '', unit] =
    /(?:^|\W)(?:within|in)\s+(?:(half)\s+an?\s+|(\d+|an?(?:\s+few)?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\s*)(sec(?:onds?)?|min(?:ute)?s?|hours?|days?|weeks?)(?:\W|$)/.exec(
      text,
    ) ?? [];
  if (unit === undefined) return undefined;
  const span = spans[unit.slice(0, 3)] ?? 0;
  return (half === undefined ? countOf(number) : 0.5) * span;
}

function countOf(number: string): number {
  if (/^\d+$/.test(number)) return Number(number);
  if (number.endsWith('few')) return 3;
  return number === 'a' || number === 'an' ? 1 : numberWords.indexOf(number);
}
