// Maps an HTTP response to the outcome of the message: sent, retry or dead. Pure.

import type { DeliveryOutcome, ReceiverResponse } from './delivery-outcome.ts';

export const httpOutcomeLimits = {
  /** A longer Retry-After is reduced to this. */
  retryAfterMsMax: 24 * 60 * 60_000,
} as const;

export interface HttpResponse extends ReceiverResponse {
  /** The raw header. */
  readonly retryAfter?: string | undefined;
  readonly nowMs: number;
}

/** The 4xx statuses that are temporary. */
const retryableStatuses: ReadonlySet<number> = new Set([408, 425, 429]);
/** The receiver or its proxy is overloaded. */
const overloaded: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const httpDate = /^[A-Z][a-z]{2,8}, \d{2}[ -][A-Z][a-z]{2}[ -]\d{2,4} \d{2}:\d{2}:\d{2} GMT$/;
const permanentRedirects: ReadonlySet<number> = new Set([301, 308]);

/**
 * 2xx is sent; 408, 425, 429 and 5xx are retried, not before Retry-After; any other 4xx is dead. Redirects are not
 * followed: a permanent one is dead, a temporary one is retried.
 *
 * @example
 * import { outcomeOfResponse } from 'millrace/delivery';
 *
 * const busy = { status: 429, body: '', retryAfter: '30', nowMs: Date.now() };
 * console.log(outcomeOfResponse(busy)); // { kind: 'retry', afterMs: 30000, throttled: true, … }
 */
export function outcomeOfResponse({
  status,
  body,
  retryAfter,
  nowMs,
}: HttpResponse): DeliveryOutcome {
  const answer: ReceiverResponse = { status, body };
  if (status >= 200 && status < 300) return { kind: 'sent', answer };
  const error = body.trim() === '' ? `HTTP ${status}` : `HTTP ${status}: ${body.trim()}`;
  const isFinal =
    permanentRedirects.has(status) ||
    (status >= 400 && status < 500 && !retryableStatuses.has(status));
  if (isFinal) return { kind: 'dead', error, answer };
  const afterMs = parseRetryAfter(retryAfter, nowMs);
  const throttled = afterMs !== undefined && overloaded.has(status);
  return { kind: 'retry', error, answer, afterMs, throttled };
}

/**
 * Retry-After as milliseconds from now: seconds or an HTTP date, never negative, capped; undefined if it is missing
 * or invalid.
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
  // Date.parse accepts almost anything.
  if (!httpDate.test(text)) return undefined;
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? undefined : Math.min(capMs, Math.max(0, atMs - nowMs));
}
