// The definition of a subscription: its name, the events that it selects, and their handler.

import { parseSubscriptionName } from '../contracts/subscription-name.ts';
import { eventFlowBackoff, type BackoffPolicy } from '../foundation/backoff.ts';
import { MillraceError } from '../foundation/error.ts';
import { compileFilter, type EventFilter } from '../store/event-filter.ts';
import { parsePosition, type Position } from '../store/position.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { subscriptionLimits as limits } from './subscription-limits.ts';

export interface BatchContext<Transaction> {
  readonly subscription: string;
  /** Number of this attempt, from 1. */
  readonly attempt: number;
  /** Fence token of the shard's owner; it grows with each owner, so receivers can reject an older one. */
  readonly token: number;
  /** Fires on the timeout, and when this process must stop. */
  readonly signal: AbortSignal;
  /**
   * A transaction of the store's database, opened by the first call. The writes commit together with
   * the mark that the event is processed, or not at all.
   */
  readonly transaction: () => Promise<Transaction>;
  /** Does not change between attempts and replays, so receivers can deduplicate by this key. */
  readonly idempotencyKeyOf: (event: RecordedEvent) => string;
  /** Correlation, causation and trace for the events and commands that this event causes. */
  readonly causedBy: (event: RecordedEvent) => Caused;
}

/** Has the shape of an envelope's context and of a command request. */
export interface Caused {
  readonly correlationId: string;
  readonly causationId: string;
  /** Continues the trace of this attempt, or of the event when tracing is off. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface HandlerContext<Transaction> extends BatchContext<Transaction> {
  readonly idempotencyKey: string;
  readonly caused: Caused;
  /**
   * Call before an effect outside the database. Returns false if the effect already happened. The claim
   * is confirmed when the handler succeeds. While another process may still hold the claim, this call
   * throws and the event is retried later.
   */
  readonly claim: () => Promise<boolean>;
}

export type Handler<Transaction> = (
  event: RecordedEvent,
  context: HandlerContext<Transaction>,
) => void | Promise<void>;

export type BatchHandler<Transaction> = (
  events: readonly RecordedEvent[],
  context: BatchContext<Transaction>,
) => void | Promise<void>;

export interface SubscriptionDefinition<Transaction = unknown> {
  /** `sub:<service>:<name>:v<n>`: the key of the checkpoint. */
  readonly name: string;
  readonly filter?: EventFilter | undefined;
  /** Where a new subscription starts reading. Default: `start`. */
  readonly from?: 'start' | 'end' | Position | undefined;
  readonly handler?: Handler<Transaction> | undefined;
  /** Receives several events at once, in order per aggregate. A failed batch is retried event by event. */
  readonly batchHandler?: BatchHandler<Transaction> | undefined;
  readonly batchSize?: number | undefined;
  /** How many handlers run at once in each shard. Default: 8. */
  readonly lanes?: number | undefined;
  /** Default: 1, 2, 4, 8, 16 s, then the dead letter. */
  readonly retry?: BackoffPolicy | undefined;
  /** Time limit of one handler call. Default: 30 s. */
  readonly timeoutMs?: number | undefined;
  /**
   * Later events of the aggregate after a dead letter. `continue` (default) processes them; `park` parks
   * them in order until the dead letter is replayed or discarded.
   */
  readonly onDeadLetter?: 'continue' | 'park' | undefined;
  /** How long a claimed effect is remembered. Default: 7 days. */
  readonly claimTtlMs?: number | undefined;
  /** How many processes can share the work. Fixed at the first start. Default: 1. */
  readonly shards?: number | undefined;
  /** Maximum number of events in processing, per shard. Default: 2,000. */
  readonly inFlightMax?: number | undefined;
}

/** A validated definition with its defaults. */
export interface Subscription<Transaction = unknown> {
  readonly name: string;
  readonly service: string;
  readonly filter: EventFilter | undefined;
  readonly from: 'start' | 'end' | Position;
  readonly handler: Handler<Transaction> | undefined;
  readonly batchHandler: BatchHandler<Transaction> | undefined;
  /** 1 without a batch handler. */
  readonly batchSize: number;
  readonly lanes: number;
  readonly retry: BackoffPolicy;
  readonly timeoutMs: number;
  readonly onDeadLetter: 'continue' | 'park';
  readonly claimTtlMs: number;
  readonly shards: number;
  readonly inFlightMax: number;
}

/**
 * Defines a subscription; `startSubscription` runs it.
 *
 * @example
 * import { subscription } from 'millrace/subscriptions';
 *
 * const greetings = subscription({
 *   name: 'sub:notify:greetings:v1',
 *   filter: { types: ['account.opened.v1'] },
 *   handler: async (event, { idempotencyKey, signal }) => {
 *     await fetch('https://mail.example/send', {
 *       method: 'POST',
 *       headers: { 'idempotency-key': idempotencyKey },
 *       body: JSON.stringify(event.payload),
 *       signal,
 *     });
 *   },
 * });
 */
export function subscription<Transaction = unknown>(
  definition: SubscriptionDefinition<Transaction>,
): Subscription<Transaction> {
  const { name, filter, from = 'start', handler, batchHandler } = definition;
  const { service } = parseSubscriptionName(name);
  const fail = (reason: string): never => {
    throw new MillraceError('SUBSCRIPTION_INVALID', `${name}: ${reason}`, { details: { name } });
  };
  if ((handler === undefined) === (batchHandler === undefined)) {
    fail('set either handler or batchHandler');
  }
  // Report an invalid filter here, not when the first page is read.
  compileFilter(filter);
  // The start becomes the first checkpoint, so an invalid one would be stored.
  if (from !== 'start' && from !== 'end') parsePosition(from);
  const wholeNumber = (field: string, value: number, max: number): number =>
    Number.isInteger(value) && value >= 1 && value <= max
      ? value
      : fail(`${field} must be an integer from 1 to ${max}`);
  return {
    name,
    service,
    filter,
    from,
    handler,
    batchHandler,
    batchSize:
      batchHandler === undefined
        ? 1
        : wholeNumber(
            'batchSize',
            definition.batchSize ?? limits.batchSizeDefault,
            limits.batchSizeMax,
          ),
    lanes: wholeNumber('lanes', definition.lanes ?? limits.lanesDefault, limits.lanesMax),
    retry: definition.retry ?? eventFlowBackoff,
    timeoutMs: wholeNumber(
      'timeoutMs',
      definition.timeoutMs ?? limits.timeoutMsDefault,
      86_400_000,
    ),
    onDeadLetter: definition.onDeadLetter ?? 'continue',
    claimTtlMs: wholeNumber(
      'claimTtlMs',
      definition.claimTtlMs ?? limits.claimTtlMs,
      Number.MAX_SAFE_INTEGER,
    ),
    shards: wholeNumber('shards', definition.shards ?? 1, limits.shardsMax),
    inFlightMax: wholeNumber(
      'inFlightMax',
      definition.inFlightMax ?? limits.inFlightDefault,
      100_000,
    ),
  };
}
