// Formats and parses times with Go layouts, which are the reference time January 2, 2006, 15:04:05 as it would be
// written. Pure.

import { RE2JS } from 're2js';
import { localTimeZone, wallTimeAt } from '../../foundation/time-zone.ts';

const months =
  'January February March April May June July August September October November December'.split(
    ' ',
  );
const days = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ');

const elements =
  /January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST|002|0[1-6]|15|1|2006|_2006|__2|_2|2|3|4|5|PM|pm|[-Z]070000|[-Z]07:00:00|[-Z]0700|[-Z]07:00|[-Z]07|[.,]0+(?!\d)|[.,]9+(?!\d)/g;

/** Of a layout and of a time that are parsed. */
const charsMax = 256;

const two = (value: number): string => String(value).padStart(2, '0');

export function formatGoTime(ms: number, layout: string, zone: string): string {
  const wall = new Date(wallTimeAt(zone, ms));
  const seconds = Math.round((wall.getTime() - ms) / 1_000);
  // Found once: a layout may have many of them.
  let name: string | undefined;
  return layout.replaceAll(elements, (element) => {
    const format = formats[element];
    if (format !== undefined) return format(wall);
    if (element === 'MST') return (name ??= zoneName(ms, zone, seconds));
    return /^[.,]/.test(element) ? fraction(element, ms) : offset(element, seconds);
  });
}

const monthOf = (wall: Date): string => months[wall.getUTCMonth()] ?? '';
const weekdayOf = (wall: Date): string => days[wall.getUTCDay()] ?? '';
const yearOf = (wall: Date): string => String(wall.getUTCFullYear()).padStart(4, '0');
const hour12 = (wall: Date): number => wall.getUTCHours() % 12 || 12;
const dayOfYear = (wall: Date): number =>
  Math.floor((wall.getTime() - new Date(wall).setUTCMonth(0, 1)) / 86_400_000) + 1;

/** The UTC fields of `wall` are those of the wall clock. */
const formats: Readonly<Record<string, (wall: Date) => string>> = {
  January: monthOf,
  Jan: (wall) => monthOf(wall).slice(0, 3),
  '1': (wall) => String(wall.getUTCMonth() + 1),
  '01': (wall) => two(wall.getUTCMonth() + 1),
  Monday: weekdayOf,
  Mon: (wall) => weekdayOf(wall).slice(0, 3),
  '2': (wall) => String(wall.getUTCDate()),
  _2: (wall) => String(wall.getUTCDate()).padStart(2),
  '02': (wall) => two(wall.getUTCDate()),
  __2: (wall) => String(dayOfYear(wall)).padStart(3),
  '002': (wall) => String(dayOfYear(wall)).padStart(3, '0'),
  '15': (wall) => two(wall.getUTCHours()),
  '3': (wall) => String(hour12(wall)),
  '03': (wall) => two(hour12(wall)),
  '4': (wall) => String(wall.getUTCMinutes()),
  '04': (wall) => two(wall.getUTCMinutes()),
  '5': (wall) => String(wall.getUTCSeconds()),
  '05': (wall) => two(wall.getUTCSeconds()),
  '2006': yearOf,
  _2006: (wall) => `_${yearOf(wall)}`,
  '06': (wall) => two(wall.getUTCFullYear() % 100),
  PM: (wall) => (wall.getUTCHours() < 12 ? 'AM' : 'PM'),
  pm: (wall) => (wall.getUTCHours() < 12 ? 'am' : 'pm'),
};

function fraction(element: string, ms: number): string {
  const digits = String(((ms % 1_000) + 1_000) % 1_000).padStart(3, '0');
  const shown = digits.padEnd(9, '0').slice(0, element.length - 1);
  if (element[1] === '0') return `${element[0]}${shown}`;
  const short = shown.replace(/0+$/, '');
  return short === '' ? '' : `${element[0]}${short}`;
}

function offset(element: string, seconds: number): string {
  if (element.startsWith('Z') && seconds === 0) return 'Z';
  const size = Math.abs(seconds);
  const parts = [Math.floor(size / 3_600), Math.floor(size / 60) % 60, size % 60].map(two);
  const digits = element.replaceAll(/\D/g, '').length / 2;
  const by = element.includes(':') ? ':' : '';
  return `${seconds < 0 ? '-' : '+'}${parts.slice(0, digits).join(by)}`;
}

function offsetSeconds(ms: number, zone: string): number {
  return Math.round((wallTimeAt(zone, ms) - ms) / 1_000);
}

/** The abbreviation of a zone, such as CET; its offset if it has none. */
function zoneName(ms: number, zone: string, seconds: number): string {
  if (zone === 'UTC') return 'UTC';
  for (const locale of ['en-GB', 'en-US', 'en-AU']) {
    const format = new Intl.DateTimeFormat(locale, { timeZone: zone, timeZoneName: 'short' });
    const name = format.formatToParts(ms).find(({ type }) => type === 'timeZoneName')?.value ?? '';
    if (/^[A-Z]{3,5}$/.test(name)) return name;
  }
  const minutes = Math.floor(Math.abs(seconds) / 60) % 60;
  return offset(minutes === 0 ? '-07' : '-0700', seconds);
}

/** Milliseconds; undefined if the value does not match the layout. */
export function parseGoTime(layout: string, value: string): number | undefined {
  if (layout.length > charsMax || value.length > charsMax) return undefined;
  const found: Record<string, string> = {};
  const names: string[] = [];
  let pattern = '';
  let last = 0;
  for (const match of layout.matchAll(elements)) {
    pattern += quoted(layout.slice(last, match.index)) + readable(match[0]);
    names.push(match[0]);
    last = match.index + match[0].length;
  }
  pattern = `^${pattern}${quoted(layout.slice(last))}$`;
  // Publishers choose the layout: RE2 matches in linear time where a JavaScript RegExp could backtrack.
  const read = RE2JS.compile(pattern, RE2JS.CASE_INSENSITIVE).matcher(value);
  if (!read.find()) return undefined;
  names.forEach((name, at) => (found[name] = read.group(at + 1) ?? ''));
  return timeOf(found);
}

function quoted(literal: string): string {
  return literal.replaceAll(/[!-/:-@[-^`{-~]/g, String.raw`\$&`).replaceAll(/\s/g, String.raw`\s+`);
}

function readable(element: string): string {
  if (element === 'January') return `(${months.join('|')})`;
  if (element === 'Jan') return `(${months.map((name) => name.slice(0, 3)).join('|')})`;
  if (element === 'Monday') return `(${days.join('|')})`;
  if (element === 'Mon') return `(${days.map((name) => name.slice(0, 3)).join('|')})`;
  if (element === 'MST') return '([A-Z]{3,5}|[-+][0-9]{2})';
  if (element === '2006') return '([0-9]{4})';
  if (element === '_2006') return '_([0-9]{4})';
  if (/^pm$/i.test(element)) return '(AM|PM)';
  if (element.startsWith('Z')) return '(Z|[-+][0-9:]{2,8})';
  if (element.startsWith('-')) return '([-+][0-9:]{2,8})';
  if (/^[.,]/.test(element)) return element[1] === '9' ? '([.,][0-9]+)?' : '([.,][0-9]+)';
  if (['__2', '002'].includes(element)) return ' *([0-9]{1,3})';
  const isFixed = /^0|^15$/.test(element);
  // As in Go, a fraction may follow the seconds even if the layout has none.
  const seconds = element === '05' || element === '5' ? '(?:[.,][0-9]+)?' : '';
  return `${element === '_2' ? ' *' : ''}([0-9]${isFixed ? '{2}' : '{1,2}'})${seconds}`;
}

function timeOf(found: Readonly<Record<string, string>>): number | undefined {
  const first = (...names: readonly string[]): string | undefined =>
    names.map((name) => found[name]).find((value) => value !== undefined && value !== '');
  const number = (otherwise: number, ...names: readonly string[]): number =>
    Number(first(...names) ?? otherwise);
  const short = first('06');
  const year =
    short === undefined
      ? number(0, '2006', '_2006')
      : Number(short) + (Number(short) >= 69 ? 1_900 : 2_000);
  const named = first('January', 'Jan')?.slice(0, 3).toLowerCase();
  const month =
    named === undefined
      ? number(1, '01', '1')
      : months.findIndex((name) => name.slice(0, 3).toLowerCase() === named) + 1;
  const day = number(1, '02', '2', '_2');
  const half = first('PM', 'pm')?.toLowerCase();
  const given = number(0, '15', '03', '3');
  const hour = half === undefined ? given : (given % 12) + (half === 'pm' ? 12 : 0);
  const minute = number(0, '04', '4');
  const second = number(0, '05', '5');
  const dot = Object.keys(found).find((name) => /^[.,]/.test(name));
  const fractionMs = Math.floor(Number(`0.${(found[dot ?? ''] ?? '').slice(1) || '0'}`) * 1_000);
  const ms = Date.UTC(2_000, month - 1, day, hour, minute, second, fractionMs);
  const whole = new Date(ms);
  whole.setUTCFullYear(year, month - 1, day);
  const isReal =
    whole.getUTCMonth() === month - 1 &&
    whole.getUTCDate() === day &&
    hour < 24 &&
    minute < 60 &&
    second < 60;
  if (!isReal) return undefined;
  const zone = Object.keys(found).find((name) => /^[-Z]0/.test(name));
  if (zone !== undefined) return whole.getTime() - offsetOf(found[zone] ?? '') * 1_000;
  if (found['MST'] === 'UTC' || found['MST'] === 'GMT') return whole.getTime();
  return whole.getTime() - offsetSeconds(whole.getTime(), localTimeZone()) * 1_000;
}

function offsetOf(text: string): number {
  if (/^z$/i.test(text)) return 0;
  const [hours = 0, minutes = 0, seconds = 0] = (text.slice(1).match(/\d{2}/g) ?? []).map(Number);
  return (text.startsWith('-') ? -1 : 1) * (hours * 3_600 + minutes * 60 + seconds);
}

/** A duration of whole seconds in Go's notation. */
export function formatGoDuration(seconds: number): string {
  const size = Math.abs(Math.round(seconds));
  const [hours, minutes, rest] = [Math.floor(size / 3_600), Math.floor(size / 60) % 60, size % 60];
  const sign = seconds < 0 && size > 0 ? '-' : '';
  if (hours > 0) return `${sign}${hours}h${minutes}m${rest}s`;
  return minutes > 0 ? `${sign}${minutes}m${rest}s` : `${sign}${rest}s`;
}
