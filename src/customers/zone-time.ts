// Wall clocks of time zones, by Intl alone: the oldest Node that we support has no Temporal.

const dayMs = 86_400_000;
/** More than any offset: a look so far to each side sees what holds before and after a change. */
const aroundMs = 1.5 * dayMs;
/** Names are accepted in any case; whoever makes up thousands of spellings must not fill the memory. */
const formatsMax = 1_000;

const formats = new Map<string, Intl.DateTimeFormat>();

export function isTimeZone(name: string): boolean {
  try {
    formatOf(name);
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** What a wall clock shows at this moment, as if it were UTC. */
export function wallAt(timeZone: string, instantMs: number): number {
  return instantMs + offsetAt(timeZone, instantMs);
}

/** The first moment at which the wall clock shows this or later. In a gap: the moment of the change. */
export function firstAt(timeZone: string, wallMs: number): number {
  const { before, after, changeMs } = around(timeZone, wallMs);
  const early = wallMs - before;
  return early < changeMs ? early : Math.max(changeMs, wallMs - after);
}

/** The moment from which on the wall clock shows this or later for good: of two, the second one. */
export function finallyAt(timeZone: string, wallMs: number): number {
  const { before, after, changeMs } = around(timeZone, wallMs);
  const late = wallMs - after;
  return late >= changeMs ? late : Math.min(changeMs, wallMs - before);
}

interface Around {
  readonly before: number;
  readonly after: number;
  /** From then on it is `after`. */
  readonly changeMs: number;
}

/** Zones change days apart at the least: there is one change to be seen, or none. */
function around(timeZone: string, wallMs: number): Around {
  let [low, high] = [wallMs - aroundMs, wallMs + aroundMs];
  const [before, after] = [offsetAt(timeZone, low), offsetAt(timeZone, high)];
  if (before === after) return { before, after, changeMs: low };
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetAt(timeZone, middle) === before) low = middle;
    else high = middle;
  }
  return { before, after, changeMs: high };
}

function offsetAt(timeZone: string, instantMs: number): number {
  const parts: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
  for (const { type, value } of formatOf(timeZone).formatToParts(instantMs)) {
    parts[type] = Number(value);
  }
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  const wholeMs = Math.floor(instantMs / 1_000) * 1_000;
  return Date.UTC(year, month - 1, day, hour, minute, second) - wholeMs;
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone);
  if (known !== undefined) return known;
  const made = new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  if (formats.size >= formatsMax) formats.clear();
  formats.set(timeZone, made);
  return made;
}
