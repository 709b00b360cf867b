// From where on a reader wants what is kept.

import { parseGoDuration } from './go-duration.ts';
import { refused } from './ntfy-problems.ts';
import { isMessageId } from './topic-message.ts';

export type Since =
  | { readonly kind: 'none' }
  | { readonly kind: 'all' }
  /** The last one of each topic. */
  | { readonly kind: 'latest' }
  /** Behind this one; all, where it is not known. */
  | { readonly kind: 'id'; readonly id: string }
  /** Unix seconds; it included. */
  | { readonly kind: 'time'; readonly seconds: number };

export function parseSince(
  text: string,
  { isPoll, nowMs }: { readonly isPoll: boolean; readonly nowMs: number },
): Since {
  if (text === '') return { kind: isPoll ? 'all' : 'none' };
  if (text === 'all' || text === 'latest' || text === 'none') return { kind: text };
  if (isMessageId(text)) return { kind: 'id', id: text };
  if (/^[-+]?\d{1,18}$/.test(text)) {
    const seconds = Number(text);
    // 0 and 1 are how ntfy itself writes all and none.
    if (seconds === 0) return { kind: 'all' };
    return seconds === 1 ? { kind: 'none' } : { kind: 'time', seconds };
  }
  const spanMs = parseGoDuration(text);
  if (spanMs === undefined) throw refused('sinceInvalid');
  return { kind: 'time', seconds: Math.floor((nowMs - spanMs) / 1_000) };
}
