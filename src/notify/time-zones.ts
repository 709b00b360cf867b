// A moment on the clocks of a time zone.

export interface TimeFields {
  readonly year: number;
  /** From 1 on. */
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  /** From Sunday, 0. */
  readonly weekday: number;
  readonly dayOfYear: number;
}

const formats = new Map<string, Intl.DateTimeFormat>();
const formatsMax = 600;

export function localZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** UTC for names that nobody knows. */
export function knownZone(name: string): string {
  if (name === 'Local') return localZone();
  if (name === '' || name === 'UTC') return 'UTC';
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    return 'UTC';
  }
}

function formatOf(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (format === undefined) {
    if (formats.size >= formatsMax) formats.clear();
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
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
    formats.set(zone, format);
  }
  return format;
}

/** What the clocks there show, as if it were UTC. */
function shownMs(ms: number, zone: string): number {
  if (zone === 'UTC') return ms;
  const parts = Object.fromEntries(
    formatOf(zone)
      .formatToParts(ms)
      .map(({ type, value }) => [type, value]),
  );
  const number = (name: string): number => Number(parts[name]);
  const year = parts['era'] === 'BC' ? 1 - number('year') : number('year');
  const date = new Date(
    Date.UTC(2_000, 0, 1, number('hour'), number('minute'), number('second')) +
      (((ms % 1_000) + 1_000) % 1_000),
  );
  date.setUTCFullYear(year, number('month') - 1, number('day'));
  return date.getTime();
}

export function offsetSecondsIn(ms: number, zone: string): number {
  return Math.round((shownMs(ms, zone) - ms) / 1_000);
}

export function fieldsIn(ms: number, zone: string): TimeFields {
  const date = new Date(shownMs(ms, zone));
  const newYear = new Date(date);
  newYear.setUTCMonth(0, 1);
  return {
    year: date.getUTCFullYear(),
    month: date.getUTCMonth() + 1,
    day: date.getUTCDate(),
    hour: date.getUTCHours(),
    minute: date.getUTCMinutes(),
    second: date.getUTCSeconds(),
    weekday: date.getUTCDay(),
    dayOfYear: Math.floor((date.getTime() - newYear.getTime()) / 86_400_000) + 1,
  };
}

/** Its letters, such as CET; where it has none, its offset. */
export function zoneName(ms: number, zone: string): string {
  if (zone === 'UTC') return 'UTC';
  for (const locale of ['en-GB', 'en-US', 'en-AU']) {
    const parts = new Intl.DateTimeFormat(locale, {
      timeZone: zone,
      timeZoneName: 'short',
    }).formatToParts(ms);
    const name = parts.find(({ type }) => type === 'timeZoneName')?.value ?? '';
    if (/^[A-Z]{3,5}$/.test(name)) return name;
  }
  const seconds = offsetSecondsIn(ms, zone);
  const hours = Math.floor(Math.abs(seconds) / 3_600);
  const minutes = Math.floor(Math.abs(seconds) / 60) % 60;
  const digits = [hours, ...(minutes === 0 ? [] : [minutes])];
  return `${seconds < 0 ? '-' : '+'}${digits.map((each) => String(each).padStart(2, '0')).join('')}`;
}
