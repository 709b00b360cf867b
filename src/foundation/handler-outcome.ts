// Errors by which a handler chooses its outcome. Every other error follows the retry policy.

interface OutcomeOptions {
  readonly cause?: unknown;
}

/**
 * The event is dead-lettered without a retry, because no retry can succeed.
 *
 * @example
 * import { Terminal } from 'millrace/subscriptions';
 *
 * const requireAmount = (payload: { amount?: number }) => {
 *   if (payload.amount === undefined) throw new Terminal('the payment has no amount');
 * };
 */
export class Terminal extends Error {
  override readonly name = 'Terminal';

  constructor(reason: string, options: OutcomeOptions = {}) {
    super(reason, options);
  }
}

/**
 * The attempt failed, and the receiver named the time of the next one; counts as an attempt.
 *
 * @example
 * import { RetryAfter } from 'millrace/subscriptions';
 *
 * const onTooManyRequests = (seconds: number) => {
 *   throw new RetryAfter(seconds * 1_000, 'the gateway is busy');
 * };
 */
export class RetryAfter extends Error {
  override readonly name = 'RetryAfter';
  readonly ms: number;

  constructor(ms: number, reason = `try again in ${ms} ms`, options: OutcomeOptions = {}) {
    super(reason, options);
    this.ms = ms;
  }
}

/**
 * Postpones the event. Nothing failed, so it does not count as an attempt.
 *
 * @example
 * import { Snooze } from 'millrace/subscriptions';
 *
 * const waitForOpening = (isOpen: boolean) => {
 *   if (!isOpen) throw new Snooze(60_000, 'the bank is closed');
 * };
 */
export class Snooze extends Error {
  override readonly name = 'Snooze';
  readonly ms: number;

  constructor(ms: number, reason = `again in ${ms} ms`, options: OutcomeOptions = {}) {
    super(reason, options);
    this.ms = ms;
  }
}

export type HandlerOutcome =
  | { readonly kind: 'terminal' }
  | { readonly kind: 'retry-after'; readonly ms: number }
  | { readonly kind: 'snooze'; readonly ms: number }
  | { readonly kind: 'failed' };

/** Compares names, not classes, because two copies of the package in one process have two classes. */
export function outcomeOf(error: unknown): HandlerOutcome {
  if (!(error instanceof Error)) return { kind: 'failed' };
  if (error.name === 'Terminal') return { kind: 'terminal' };
  const ms = 'ms' in error && typeof error.ms === 'number' && error.ms >= 0 ? error.ms : undefined;
  if (ms === undefined) return { kind: 'failed' };
  if (error.name === 'RetryAfter') return { kind: 'retry-after', ms };
  return error.name === 'Snooze' ? { kind: 'snooze', ms } : { kind: 'failed' };
}
