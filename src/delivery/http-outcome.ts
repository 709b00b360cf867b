// What an HTTP answer means for the message: sent, again later, or never again. Pure.

import type { DeliveryOutcome, ReceiverAnswer } from './delivery-outcome.ts';

export const httpOutcomeLimits = {
  /** A longer Retry-After is cut to this. */
  retryAfterMsMax: 24 * 60 * 60_000,
} as const;

export interface HttpAnswer extends ReceiverAnswer {
  /** The header as it came. */
  readonly retryAfter?: string | undefined;
  readonly nowMs: number;
}

/** The three of the 400s that time mends. */
const mendedByTime: ReadonlySet<number> = new Set([408, 425, 429]);
/** The receiver, or who stands before it, has more than it can take. */
const overloaded: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const httpDate = /^[A-Z][a-z]{2,8}, \d{2}[ -][A-Z][a-z]{2}[ -]\d{2,4} \d{2}:\d{2}:\d{2} GMT$/;
const movedForGood: ReadonlySet<number> = new Set([301, 308]);

/**
 * 2xx is sent; 408, 425, 429 and 5xx come again, not before Retry-After; every other 4xx is dead at
 * once. Redirects are not followed: one for good is dead, a temporary one comes again.
 *
 * @example
 * import { outcomeOfAnswer } from 'millrace/delivery';
 *
 * const busy = { status: 429, body: '', retryAfter: '30', nowMs: Date.now() };
 * console.log(outcomeOfAnswer(busy)); // { kind: 'retry', afterMs: 30000, throttled: true, … }
 */
export function outcomeOfAnswer({ status, body, retryAfter, nowMs }: HttpAnswer): DeliveryOutcome {
  const answer: ReceiverAnswer = { status, body };
  if (status >= 200 && status < 300) return { kind: 'sent', answer };
  const error = body.trim() === '' ? `HTTP ${status}` : `HTTP ${status}: ${body.trim()}`;
  const isFinal =
    movedForGood.has(status) || (status >= 400 && status < 500 && !mendedByTime.has(status));
  if (isFinal) return { kind: 'dead', error, answer };
  const afterMs = parseRetryAfter(retryAfter, nowMs);
  return {
    kind: 'retry',
    error,
    answer,
    ...(afterMs === undefined ? {} : { afterMs }),
    ...(afterMs !== undefined && overloaded.has(status) ? { throttled: true } : {}),
  };
}

/**
 * Retry-After as milliseconds from now: seconds or an HTTP date, never negative, capped; undefined
 * when it is missing or neither.
 *
 * @example
 * import { parseRetryAfter } from 'millrace/delivery';
 *
 * console.log(parseRetryAfter('120', Date.now())); // 120000
 */
export function parseRetryAfter(
  header: string | null | undefined,
  nowMs: number,
  capMs: number = httpOutcomeLimits.retryAfterMsMax,
): number | undefined {
  const text = header?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(text)) return Math.min(capMs, Math.ceil(Number(text) * 1_000));
  // Date.parse takes almost anything.
  if (!httpDate.test(text)) return undefined;
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? undefined : Math.min(capMs, Math.max(0, atMs - nowMs));
}
