// Wall clocks of IANA time zones, implemented with Intl, because the oldest supported Node has no Temporal. A wall time is a
// number of milliseconds, as if the wall clock showed UTC.

const dayMs = 86_400_000;
/** Longer than any offset from UTC, so both sides of a clock change near a wall time are seen. */
const searchMs = 1.5 * dayMs;
/** Names are accepted in any case: a bound keeps many spellings from filling the memory. */
const formatsMax = 1_000;

const formats = new Map<string, Intl.DateTimeFormat>();

/**
 * Whether the name is a known IANA time zone.
 *
 * @example
 * import { isTimeZone } from 'millrace/foundation';
 *
 * console.log(isTimeZone('Europe/Berlin')); // true
 */
export function isTimeZone(name: string): boolean {
  try {
    formatOf(name);
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** The zone of this process, as the environment sets it. */
export function localTimeZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/**
 * The wall-clock time at an instant.
 *
 * @example
 * import { wallTimeAt } from 'millrace/foundation';
 *
 * const wallMs = wallTimeAt('Europe/Berlin', Date.parse('2026-01-10T10:00:00Z')); // 11:00
 */
export function wallTimeAt(timeZone: string, instantMs: number): number {
  if (timeZone === 'UTC') return instantMs;
  const parts: Partial<Record<Intl.DateTimeFormatPartTypes, string>> = {};
  for (const { type, value } of formatOf(timeZone).formatToParts(instantMs)) parts[type] = value;
  const { era, year, month, day, hour, minute, second } = parts;
  const millisecond = ((instantMs % 1_000) + 1_000) % 1_000;
  const wall = new Date(0);
  wall.setUTCHours(Number(hour), Number(minute), Number(second), millisecond);
  // Not Date.UTC: it takes the years 0 to 99 for 1900 to 1999.
  wall.setUTCFullYear(
    era === 'BC' ? 1 - Number(year) : Number(year),
    Number(month) - 1,
    Number(day),
  );
  return wall.getTime();
}

/**
 * The first instant at which the wall clock shows this time or a later one. In a gap: the clock change.
 *
 * @example
 * import { firstInstantOf } from 'millrace/foundation';
 *
 * const instantMs = firstInstantOf('Europe/Berlin', Date.parse('2026-10-25T02:30:00Z')); // 00:30 UTC
 */
export function firstInstantOf(timeZone: string, wallMs: number): number {
  const { before, after, changeMs } = offsetsAround(timeZone, wallMs);
  const early = wallMs - before;
  return early < changeMs ? early : Math.max(changeMs, wallMs - after);
}

/**
 * The instant after which the wall clock never shows an earlier time. If a time occurs twice: the second instant.
 *
 * @example
 * import { lastInstantOf } from 'millrace/foundation';
 *
 * const instantMs = lastInstantOf('Europe/Berlin', Date.parse('2026-10-25T02:30:00Z')); // 01:30 UTC
 */
export function lastInstantOf(timeZone: string, wallMs: number): number {
  const { before, after, changeMs } = offsetsAround(timeZone, wallMs);
  const late = wallMs - after;
  return late >= changeMs ? late : Math.min(changeMs, wallMs - before);
}

interface Offsets {
  readonly before: number;
  readonly after: number;
  /** The first instant with the offset `after`. */
  readonly changeMs: number;
}

/** Clock changes of a zone are days apart, so the range holds at most one. */
function offsetsAround(timeZone: string, wallMs: number): Offsets {
  const offsetAt = (instantMs: number): number => wallTimeAt(timeZone, instantMs) - instantMs;
  let [low, high] = [wallMs - searchMs, wallMs + searchMs];
  const [before, after] = [offsetAt(low), offsetAt(high)];
  if (before === after) return { before, after, changeMs: low };
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetAt(middle) === before) low = middle;
    else high = middle;
  }
  return { before, after, changeMs: high };
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const cached = formats.get(timeZone);
  if (cached !== undefined) return cached;
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    era: 'short',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  if (formats.size >= formatsMax) formats.clear();
  formats.set(timeZone, format);
  return format;
}
