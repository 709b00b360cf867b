// When a message is to be delivered that is not to be delivered now.

import { parseLongDuration } from './go-duration.ts';
import { parseNaturalTime } from './natural-time.ts';
import { refused } from './ntfy-problems.ts';

export interface DelayLimits {
  readonly delayMsMin: number;
  readonly delayMsMax: number;
}

/** Unix seconds. */
export function parseDelay(text: string, nowMs: number, limits: DelayLimits): number {
  const atMs = futureTime(text.trim(), nowMs);
  if (atMs === undefined || !Number.isFinite(atMs)) throw refused('delayUnreadable');
  const at = Math.floor(atMs / 1_000);
  if (at < Math.floor((nowMs + limits.delayMsMin) / 1_000)) throw refused('delayTooSmall');
  if (at > Math.floor((nowMs + limits.delayMsMax) / 1_000)) throw refused('delayTooLarge');
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
