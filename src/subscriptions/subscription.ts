// What a subscription is: a name, the events it wants, and what is to be done with them.

import { parseSubscriptionName } from '../contracts/subscription-name.ts';
import { eventFlowBackoff, type BackoffPolicy } from '../foundation/backoff.ts';
import { MillraceError } from '../foundation/error.ts';
import { compileFilter, type EventFilter } from '../store/event-filter.ts';
import type { Position } from '../store/position.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { subscriptionLimits as limits } from './subscription-limits.ts';

export interface BatchContext<Transaction> {
  readonly subscription: string;
  /** From 1. */
  readonly attempt: number;
  /** Grows with every owner of the shard: for receivers that refuse whoever was taken over from. */
  readonly token: number;
  /** Fires on the timeout, and when this process must stop. */
  readonly signal: AbortSignal;
  /**
   * The store database's own transaction, from the first call on. What is done in it commits
   * together with the mark that the event is done, or not at all.
   */
  readonly transaction: () => Promise<Transaction>;
  /** The same in every attempt and every replay: for receivers that honour it. */
  readonly idempotencyKeyOf: (event: RecordedEvent) => string;
  /** What events and commands carry that follow from this one. */
  readonly causedBy: (event: RecordedEvent) => Caused;
}

/** Fits the context of an envelope, and a command's request. */
export interface Caused {
  readonly correlationId: string;
  readonly causationId: string;
  /** The trace goes on: that of this attempt, or of the event where nobody listens. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface HandlerContext<Transaction> extends BatchContext<Transaction> {
  readonly idempotencyKey: string;
  readonly caused: Caused;
  /**
   * Before an effect outside of the database: false when it has been had already. It is confirmed
   * when the handler succeeds. While somebody else may still be at it, this throws, and the event
   * comes again later.
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
  /** `sub:<service>:<name>:v<n>`: what the checkpoint is kept under. */
  readonly name: string;
  readonly filter?: EventFilter | undefined;
  /** Where a new one begins. Default: `start`. */
  readonly from?: 'start' | 'end' | Position | undefined;
  readonly handler?: Handler<Transaction> | undefined;
  /** Several events at once, those of one aggregate in order; if it fails, one by one. */
  readonly batchHandler?: BatchHandler<Transaction> | undefined;
  readonly batchSize?: number | undefined;
  /** How many handlers run at once in each shard. Default: 8. */
  readonly lanes?: number | undefined;
  /** Default: 1, 2, 4, 8, 16 s, then the dead letter. */
  readonly retry?: BackoffPolicy | undefined;
  /** Default: 30 s. */
  readonly timeoutMs?: number | undefined;
  /**
   * After a dead letter, the aggregate's later events go on (`continue`, the default), or wait in
   * order until it was replayed or discarded (`park`).
   */
  readonly onDeadLetter?: 'continue' | 'park' | undefined;
  /** How long a claimed effect is remembered. Default: 7 days. */
  readonly claimTtlMs?: number | undefined;
  /** How many processes can share the work. It stays what it was at the first start. Default: 1. */
  readonly shards?: number | undefined;
  /** Events given out and not done yet, per shard. Default: 2,000. */
  readonly inFlightMax?: number | undefined;
}

/** As the runner takes it: checked, with its defaults. */
export interface Subscription<Transaction = unknown> {
  readonly name: string;
  readonly service: string;
  readonly filter: EventFilter | undefined;
  readonly from: 'start' | 'end' | Position;
  readonly handler: Handler<Transaction> | undefined;
  readonly batchHandler: BatchHandler<Transaction> | undefined;
  /** 1 where there is no batch handler. */
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
  const refuse = (reason: string): never => {
    throw new MillraceError('SUBSCRIPTION_INVALID', `${name}: ${reason}`, { details: { name } });
  };
  if ((handler === undefined) === (batchHandler === undefined)) {
    refuse('it needs either a handler or a batchHandler');
  }
  // A filter that is no filter is told here, not when the first page is read.
  compileFilter(filter);
  const whole = (field: string, value: number, max: number): number =>
    Number.isInteger(value) && value >= 1 && value <= max
      ? value
      : refuse(`${field} must be a whole number from 1 to ${max}`);
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
        : whole('batchSize', definition.batchSize ?? limits.batchSizeDefault, limits.batchSizeMax),
    lanes: whole('lanes', definition.lanes ?? limits.lanesDefault, limits.lanesMax),
    retry: definition.retry ?? eventFlowBackoff,
    timeoutMs: whole('timeoutMs', definition.timeoutMs ?? limits.timeoutMsDefault, 86_400_000),
    onDeadLetter: definition.onDeadLetter ?? 'continue',
    claimTtlMs: whole(
      'claimTtlMs',
      definition.claimTtlMs ?? limits.claimTtlMs,
      Number.MAX_SAFE_INTEGER,
    ),
    shards: whole('shards', definition.shards ?? 1, limits.shardsMax),
    inFlightMax: whole('inFlightMax', definition.inFlightMax ?? limits.inFlightDefault, 100_000),
  };
}
