// Numbers, times and durations as text.

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const whole = new Intl.NumberFormat('en');

export function countText(value: number): string {
  return value < 10_000 ? whole.format(value) : compact.format(value);
}

export function rateText(perSecond: number): string {
  if (perSecond === 0) return '0';
  if (perSecond < 1) return perSecond < 0.1 ? '< 0.1' : perSecond.toFixed(1);
  return perSecond < 10 ? perSecond.toFixed(1) : countText(Math.round(perSecond));
}

export function durationText(ms: number): string {
  if (ms < 1) return '< 1 ms';
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1_000;
  if (seconds < 60) return `${seconds < 10 ? Number(seconds.toFixed(1)) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min${rest(Math.floor(seconds % 60), 's')}`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h${rest(minutes % 60, 'min')}`;
  return `${Math.floor(hours / 24)} d${rest(hours % 24, 'h')}`;
}

function rest(value: number, unit: string): string {
  return value === 0 ? '' : ` ${value} ${unit}`;
}

const pad = (value: number, width = 2): string => String(value).padStart(width, '0');

/** The local time of day with milliseconds; with the date if that is not today. */
export function timeText(iso: string, now = new Date()): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  const time = `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}.${pad(at.getMilliseconds(), 3)}`;
  if (at.toDateString() === now.toDateString()) return time;
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ${time.slice(0, 8)}`;
}

/** The time in UTC and the offset of this computer, for the tooltip. */
export function utcText(iso: string): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  const minutes = -at.getTimezoneOffset();
  const sign = minutes < 0 ? '−' : '+';
  const offset = `${sign}${pad(Math.floor(Math.abs(minutes) / 60))}:${pad(Math.abs(minutes) % 60)}`;
  return `${at.toISOString()} (shown as UTC${offset})`;
}

const units = [
  { unitMs: 86_400_000, name: 'd' },
  { unitMs: 3_600_000, name: 'h' },
  { unitMs: 60_000, name: 'min' },
] as const;

/** `3 s ago`. */
export function agoText(iso: string, nowMs: number): string {
  const ms = nowMs - Date.parse(iso);
  if (ms < 1_000) return 'now';
  const unit = units.find(({ unitMs }) => ms >= unitMs) ?? { unitMs: 1_000, name: 's' };
  return `${Math.floor(ms / unit.unitMs)} ${unit.name} ago`;
}
