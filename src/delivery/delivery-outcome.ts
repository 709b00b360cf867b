// What became of an attempt. Plain values: the ledger writes them down, and imports nothing of this.

import { errorText as textOfError } from '../foundation/error-text.ts';
import { outcomeOf as wordOf } from '../subscriptions/handler-outcome.ts';

/** The beginning of what an HTTP receiver answered. */
export interface ReceiverAnswer {
  readonly status: number;
  readonly body: string;
}

export interface Sent {
  readonly kind: 'sent';
  /** What the receiver calls it: a message id, a stream position. */
  readonly receipt?: string;
  /** Nothing was to be done, and this is why. */
  readonly skipped?: string;
  readonly answer?: ReceiverAnswer;
}

export interface Retry {
  readonly kind: 'retry';
  readonly error: string;
  /** Not before this; the ledger's own backoff may be longer. */
  readonly afterMs?: number;
  /** False: it was not even tried (a rate limit, an open breaker), and does not count as an attempt. */
  readonly attempted?: boolean;
  /** The receiver asked for a pause, which is meant for everything that goes there. */
  readonly throttled?: boolean;
  /** It may have arrived all the same: the request was out, and no answer came. */
  readonly ambiguous?: boolean;
  readonly answer?: ReceiverAnswer;
}

export interface Dead {
  readonly kind: 'dead';
  readonly error: string;
  readonly answer?: ReceiverAnswer;
}

export type DeliveryOutcome = Sent | Retry | Dead;

export const errorTextLimits = { charsMax: 5_000 } as const;

/**
 * What a thrown error means: `Terminal` ends it, `RetryAfter` and `Snooze` name a time, an error that
 * says of itself that it is not retryable ends it, and anything else is tried again.
 *
 * @example
 * import { outcomeOfError } from 'millrace/delivery';
 * import { Terminal } from 'millrace/subscriptions';
 *
 * console.log(outcomeOfError(new Terminal('no such account')).kind); // dead
 */
export function outcomeOfError(error: unknown): Retry | Dead {
  const text = errorText(error);
  const word = wordOf(error);
  if (word.kind === 'terminal') return { kind: 'dead', error: text };
  if (word.kind === 'retry-after') return { kind: 'retry', error: text, afterMs: word.ms };
  if (word.kind === 'snooze') {
    return { kind: 'retry', error: text, afterMs: word.ms, attempted: false };
  }
  const isFinal =
    error instanceof Error &&
    error.name === 'MillraceError' &&
    'retryable' in error &&
    error.retryable === false &&
    !('code' in error && endsWithProcess.has(error.code));
  return { kind: isFinal ? 'dead' : 'retry', error: text };
}

/** Not the message's fault: another process, or the same one after its restart, can send it. */
const endsWithProcess: ReadonlySet<unknown> = new Set([
  'ABORTED',
  'STORE_CLOSED',
  'LIFECYCLE_STOPPED',
  'DRIVER_MISSING',
]);

/**
 * An error as text that any database keeps: causes included, no control characters, no longer than
 * the ledger's column.
 *
 * @example
 * import { errorText } from 'millrace/delivery';
 *
 * console.log(errorText(new Error('fetch failed', { cause: new Error('ECONNREFUSED') }))); // fetch failed: ECONNREFUSED
 */
export function errorText(error: unknown): string {
  return textOfError(error, errorTextLimits.charsMax);
}
