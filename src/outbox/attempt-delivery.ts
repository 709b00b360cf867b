// One delivery attempt, from the claimed message to the outcome that the ledger stores. The dispatcher and the
// queue worker share this code. For messages of the outbox, `deliverMessage` runs the only timer of an attempt:
// `createDelivery` passes the time limit of the destination to `limit` instead of starting its own timer.

import { idempotencyKeyOf } from '../contracts/idempotency-key.ts';
import type { CallDeadlines } from '../foundation/async/call-deadlines.ts';
import type { Clock } from '../foundation/clock.ts';
import { errorText } from '../foundation/error-text.ts';
import { MillraceError } from '../foundation/error.ts';
import { errorFacts } from '../foundation/failure-cause.ts';
import type { Observer } from '../foundation/observer.ts';
import { isForgotten } from '../store/erasure.ts';
import { nextTurn } from '../foundation/async/next-turn.ts';
import type { Cancel } from '../loops/claim-loop.ts';
import type { ClaimRenewal } from '../loops/renew-claims.ts';
import { outcomeOf } from '../foundation/handler-outcome.ts';
import {
  decideDelivery,
  isPoisonous,
  withAttempt,
  type DeliveryResult,
  type RetrySchedule,
} from './decide-delivery.ts';
import { logOutbox } from './observe-outbox.ts';
import type { OutboxOutcome } from './outbox-ledger.ts';
import { outboxLimits } from './outbox-limits.ts';
import type { ClaimedMessage, OutboxClaim } from './outbox-message.ts';

export interface DeliverContext {
  /** Identical for every attempt; the receiver detects duplicates by this key. */
  readonly idempotencyKey: string;
  /** The number of this attempt, starting at 1. */
  readonly attempt: number;
  /** Fires when the time limit expires (reason: `HANDLER_TIMEOUT`) and when the process must stop. */
  readonly signal: AbortSignal;
  /** Shortens the time limit of this attempt: the attempt ends `timeoutMs` from now. The limit cannot be extended. */
  readonly limit?: ((timeoutMs: number) => void) | undefined;
  readonly tenantId: string | undefined;
  readonly correlationId: string | undefined;
}

/**
 * Sends one message. Returning means that it was sent. A thrown error is retried, unless it is `Terminal`,
 * `RetryAfter` or `Snooze` of `millrace/subscriptions`.
 */
export type Deliver = (
  message: ClaimedMessage,
  context: DeliverContext,
) => Promise<DeliveryResult | void>;

export interface AttemptContext {
  readonly deliver: Deliver;
  readonly schedule: RetrySchedule | undefined;
  readonly clock: Clock;
  readonly observer: Observer;
  /** The time limit of an attempt, unless `deliver` shortens it. */
  readonly timeoutMs: number;
  /** Shared by all attempts of the process; all of them expire when the process must stop. */
  readonly deadlines: CallDeadlines;
  readonly source: string;
  readonly operation: 'OUTBOX_DIRECT_SEND' | 'OUTBOX_DELIVER';
}

/** `onCancel` gets the function that ends the attempt: without an outcome, so the message can be sent again. */
export function attemptDelivery(
  message: ClaimedMessage,
  context: AttemptContext,
  onCancel: (cancel: Cancel) => void,
): Promise<OutboxOutcome> {
  const { schedule, clock, observer, source, operation } = context;
  const startMs = clock.now();
  const claim = { id: message.id, token: message.token };
  if (isPoisonous(message)) {
    const error = `started ${message.starts} times without an outcome: sending it probably kills the process`;
    return Promise.resolve({ kind: 'dead', claim, error });
  }
  if (message.unreadable !== undefined) {
    return Promise.resolve({ kind: 'dead', claim, error: message.unreadable });
  }
  if (isForgotten(message.payload)) {
    const error = 'the payload was erased with its person';
    return Promise.resolve({ kind: 'dead', claim, error });
  }
  const { integrationType, eventType, correlationId } = message;
  const what = { source, operation, phase: 'START' } as const;
  logOutbox(observer, what, message, { outboxId: message.id, integrationType });
  const decide = (result: DeliveryResult): OutboxOutcome => {
    const nowMs = clock.now();
    const attributes = { integrationType, eventType, outcome: result.kind, correlationId };
    observer.record?.('outbox_delivery_duration_ms', nowMs - startMs, attributes);
    const outcome = decideDelivery(message, result, { nowMs, schedule });
    return withAttempt(outcome, message, { result, startMs, nowMs });
  };
  return deliverMessage(message, context, {
    decide,
    onCancel: (cancel) =>
      onCancel((reason) => {
        cancel(reason);
        if (reason.code === 'LEASE_LOST') reportStale(message, context);
      }),
  });
}

/** `attemptDelivery` with renewals of the lease. Undefined: another process has the claim. */
export async function attemptWithinLease(
  message: ClaimedMessage,
  context: AttemptContext,
  {
    renewal,
    leasedAtMs,
  }: { readonly renewal: ClaimRenewal<OutboxClaim>; readonly leasedAtMs: number },
): Promise<OutboxOutcome | undefined> {
  let cancel: Cancel | undefined;
  let isLost = false;
  const lease = renewal.hold(message, leasedAtMs, () => {
    isLost = true;
    cancel?.(new MillraceError('LEASE_LOST', 'another process may have claimed the message'));
  });
  const outcome = await attemptDelivery(message, context, (given) => (cancel = given));
  lease.end();
  return isLost ? undefined : outcome;
}

function reportStale(message: ClaimedMessage, { observer, source }: AttemptContext): void {
  const { id: outboxId, integrationType, eventType } = message;
  observer.count?.('outbox_stale_total', { integrationType, eventType });
  const what = { source, operation: 'OUTBOX_DELIVER', phase: 'STALE' } as const;
  logOutbox(observer, what, message, { outboxId, integrationType });
}

/**
 * Calls `deliver` within the time limit. When the limit expires, the signal fires. A `deliver` that obeys the
 * signal can still report its result in the same turn of the event loop; any other is not awaited.
 * Returns the value of `decide` for the result. Uses one promise per message: more would double the cost.
 */
function deliverMessage<T>(
  message: ClaimedMessage,
  { deliver, timeoutMs, deadlines, clock }: AttemptContext,
  {
    decide,
    onCancel,
  }: {
    readonly decide: (result: DeliveryResult) => T;
    readonly onCancel: (cancel: (reason: Error) => void) => void;
  },
): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancelled = new AbortController();
    const endMs = clock.now() + timeoutMs;
    let limitMs = timeoutMs;
    let hasEnded = false;
    const end = (result: DeliveryResult): void => {
      if (hasEnded) return;
      hasEnded = true;
      try {
        resolve(decide(result));
      } catch (error) {
        reject(error);
      }
    };
    const cancel = (reason: Error): void => {
      // Another process sends the message, so this does not count as an attempt.
      end({ kind: 'retry', error: 'stopped', attempted: false });
      cancelled.abort(reason);
    };
    const expire = (why: 'late' | 'stopped'): void => {
      if (why === 'stopped') return cancel(new Error('stopped'));
      const error = `no response within ${limitMs} ms`;
      cancelled.abort(new MillraceError('HANDLER_TIMEOUT', error));
      void nextTurn().then(() => end({ kind: 'retry', error }));
    };
    let endLimit = deadlines.begin(timeoutMs, expire);
    if (hasEnded) return;
    onCancel((reason) => {
      endLimit();
      cancel(reason);
    });
    const limit = (ms: number): void => {
      if (hasEnded || cancelled.signal.aborted || clock.now() + ms >= endMs) return;
      endLimit();
      limitMs = ms;
      endLimit = deadlines.begin(ms, expire);
    };
    const settle = (result: DeliveryResult): void => {
      endLimit();
      end(result);
    };
    callDeliver(message, deliver, { signal: cancelled.signal, limit }).then(
      (result) => settle(result ?? sent),
      (error: unknown) => settle(resultOfError(error)),
    );
  });
}

const sent: DeliveryResult = { kind: 'sent' };

/** A function of the user may throw before it returns a promise. */
function callDeliver(
  message: ClaimedMessage,
  deliver: Deliver,
  { signal, limit }: Pick<DeliverContext, 'signal' | 'limit'>,
): Promise<DeliveryResult | void> {
  const { attempts, tenantId, correlationId } = message;
  const idempotencyKey = idempotencyKeyOf(message);
  const attempt = attempts + 1;
  const context = { idempotencyKey, attempt, signal, limit, tenantId, correlationId };
  try {
    return Promise.resolve(deliver(message, context));
  } catch (error) {
    return Promise.reject(error);
  }
}

function resultOfError(error: unknown): DeliveryResult {
  const text = errorText(error, outboxLimits.lastErrorMax);
  const facts = errorFacts(error);
  const outcome = outcomeOf(error);
  if (outcome.kind === 'terminal') return { kind: 'dead', error: text, facts };
  if (outcome.kind === 'failed') return { kind: 'retry', error: text, facts };
  const attempted = outcome.kind === 'retry-after';
  return { kind: 'retry', error: text, facts, afterMs: outcome.ms, attempted };
}
