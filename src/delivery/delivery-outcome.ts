// The outcome of an attempt: plain values, so that the ledger needs nothing of this folder.

import { errorFacts, type ErrorFacts } from '../foundation/failure-cause.ts';
import { errorText as textOfError } from '../foundation/error-text.ts';
import { outcomeOf as wordOf } from '../foundation/handler-outcome.ts';

/** The start of an HTTP response, or the status and text of another protocol. Logs and spans never have the text. */
export interface ReceiverResponse {
  readonly status: number;
  readonly body: string;
}

/** What was sent, as far as it may be stored. */
export interface SentRequest {
  /** Values that may be secrets are masked. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface Sent {
  readonly kind: 'sent';
  /** The receiver's id: a message id, a stream position. */
  readonly receipt?: string | undefined;
  /** Why nothing was sent. */
  readonly skipped?: string | undefined;
  readonly answer?: ReceiverResponse | undefined;
  readonly request?: SentRequest | undefined;
}

export interface Retry {
  readonly kind: 'retry';
  readonly error: string;
  /** The earliest retry; the backoff of the ledger may be longer. */
  readonly afterMs?: number | undefined;
  /** False: not attempted (rate limit, open breaker), so it does not count as an attempt. */
  readonly attempted?: boolean | undefined;
  /** The receiver requested a pause for all messages to it. */
  readonly throttled?: boolean | undefined;
  /** The message may have arrived: the request was sent, and no response came. */
  readonly ambiguous?: boolean | undefined;
  readonly answer?: ReceiverResponse | undefined;
  readonly request?: SentRequest | undefined;
  /** Name, code and stack of a thrown error. */
  readonly facts?: ErrorFacts | undefined;
}

export interface Dead {
  readonly kind: 'dead';
  readonly error: string;
  readonly answer?: ReceiverResponse | undefined;
  readonly request?: SentRequest | undefined;
  readonly facts?: ErrorFacts | undefined;
}

export type DeliveryOutcome = Sent | Retry | Dead;

/** The failure without the text of a receiver, which may quote the message. */
export function shownFailure({ answer, facts }: Retry | Dead): string {
  if (answer !== undefined) return `status ${answer.status}`;
  return facts?.code ?? facts?.name ?? 'DELIVERY_FAILED';
}

export const errorTextLimits = { charsMax: 5_000 } as const;

/**
 * The outcome of a thrown error: `Terminal` is dead, `RetryAfter` and `Snooze` set the time of the retry, a
 * non-retryable MillraceError is dead, and any other error is retried.
 *
 * @example
 * import { outcomeOfError } from 'millrace/delivery';
 * import { Terminal } from 'millrace/subscriptions';
 *
 * console.log(outcomeOfError(new Terminal('no such account')).kind); // dead
 */
export function outcomeOfError(error: unknown): Retry | Dead {
  const text = errorText(error);
  const facts = errorFacts(error);
  const word = wordOf(error);
  if (word.kind === 'terminal') return { kind: 'dead', error: text, facts };
  if (word.kind === 'retry-after') return { kind: 'retry', error: text, facts, afterMs: word.ms };
  if (word.kind === 'snooze') {
    return { kind: 'retry', error: text, facts, afterMs: word.ms, attempted: false };
  }
  const isFinal =
    error instanceof Error &&
    error.name === 'MillraceError' &&
    'retryable' in error &&
    error.retryable === false &&
    !('code' in error && endsWithProcess.has(error.code));
  return { kind: isFinal ? 'dead' : 'retry', error: text, facts };
}

/** Not the fault of the message: another process, or this one after a restart, can send it. */
const endsWithProcess: ReadonlySet<unknown> = new Set([
  'ABORTED',
  'STORE_CLOSED',
  'LIFECYCLE_STOPPED',
  'DRIVER_MISSING',
]);

/**
 * An error as text that any database accepts: with its causes, without control characters, truncated to the column
 * of the ledger.
 *
 * @example
 * import { errorText } from 'millrace/delivery';
 *
 * console.log(errorText(new Error('fetch failed', { cause: new Error('ECONNREFUSED') }))); // fetch failed: ECONNREFUSED
 */
export function errorText(error: unknown): string {
  return textOfError(error, errorTextLimits.charsMax);
}
