// The dates of `#due`: ISO 8601, a date or a date-time with or without a zone; only dates that exist.

const shape =
  /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d(?::\d\d)?)?)?$/;

/** Unix time for sorting; without a zone, UTC. Undefined: not a valid date. */
export function dueMs(text: string): number | undefined {
  const found = shape.exec(text);
  if (found === null) return undefined;
  const [, year, month, day, hours = '0', minutes = '0', seconds = '0', fraction = ''] = found;
  const [y, m, d] = [Number(year), Number(month), Number(day)];
  const [h, min, s] = [Number(hours), Number(minutes), Number(seconds)];
  if (m < 1 || m > 12 || d < 1 || d > daysIn(y, m) || h > 23 || min > 59 || s > 59) {
    return undefined;
  }
  const offsetMs = offsetOf(found[8]);
  if (offsetMs === undefined) return undefined;
  // `Date.UTC` maps years below 100 to the 20th century; `setUTCFullYear` does not.
  const date = new Date(0);
  date.setUTCFullYear(y, m - 1, d);
  date.setUTCHours(h, min, s, Number(fraction.slice(0, 3).padEnd(3, '0')));
  return date.getTime() - offsetMs;
}

/** Like `dueMs`, but the last millisecond of the day for a date without a time. */
export function dueEndMs(text: string): number | undefined {
  const ms = dueMs(text);
  return ms !== undefined && !text.includes('T') ? ms + dayMs - 1 : ms;
}

const dayMs = 86_400_000;

function daysIn(year: number, month: number): number {
  if (month === 2) return isLeap(year) ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

function isLeap(year: number): boolean {
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
}

function offsetOf(zone: string | undefined): number | undefined {
  if (zone === undefined || zone === 'Z') return 0;
  const [hours = 0, minutes = 0] = zone.slice(1).split(':').map(Number);
  if (hours > 23 || minutes > 59) return undefined;
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}
