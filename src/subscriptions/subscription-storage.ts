// The storage port of subscriptions: checkpoints, processed events, dead letters, waiting events and
// leases. SQL event stores implement it in their own database.

import { MillraceError } from '../foundation/error.ts';
import type { EventStore } from '../store/event-store.ts';
import type { EventFilter } from '../store/event-filter.ts';
import type { GenerationMarks } from './generations.ts';
import type { Position } from '../store/position.ts';
import type { Attempt, DeadLetter, DeadLetterFilter, NewDeadLetter } from './dead-letter.ts';
import type { ShardLease } from './rules/decide-shards.ts';

export interface SubscriptionCapabilities {
  /** Handlers can write in the transaction that marks the event as processed. */
  readonly transactions: boolean;
  /** The state survives a restart of the process. */
  readonly durable: boolean;
  /** Other processes see the state and can take over. */
  readonly crossProcess: boolean;
}

export interface ShardKey {
  readonly subscription: string;
  readonly shard: number;
}

/** Sent with every write of a shard's owner; the write fails with `LEASE_LOST` once another owner took over. */
export interface Fence extends ShardKey {
  readonly token: number;
}

export interface ShardProgress {
  /** Undefined before the first checkpoint. */
  readonly position: Position | undefined;
  /** Processed events above `position`, in any order. */
  readonly done: readonly Position[];
  /** Streams that have events in `waiting`. */
  readonly blocked: readonly string[];
}

export interface SubscriptionState {
  readonly subscription: string;
  readonly shards: number;
  readonly paused: boolean;
  /** The filter of the last start; undefined selects all events. */
  readonly filter: EventFilter | undefined;
  /** By shard; undefined before the shard's first checkpoint. */
  readonly positions: readonly (Position | undefined)[];
  /** The engine has lost the checkpoint: the subscription stops until it is reset. */
  readonly lost?: boolean | undefined;
}

export interface CheckpointStore {
  /** Registers the subscription. If it already exists, only its filter changes. */
  open(subscription: string, shards: number, filter?: EventFilter): Promise<SubscriptionState>;
  load(key: ShardKey): Promise<ShardProgress>;
  /** Never moves the checkpoint back. Removes the marks up to this position. */
  save(fence: Fence, position: Position): Promise<void>;
  /** Returns false if the subscription does not exist. */
  setPaused(subscription: string, paused: boolean): Promise<boolean>;
  /**
   * Moves all shards to a position. Every owner loses its lease. Above the position, waiting events are
   * removed, because they are read again, and dead letters are discarded.
   */
  reset(subscription: string, to: Position, reason: ResetReason): Promise<boolean>;
  get(subscription: string): Promise<SubscriptionState | undefined>;
  list(): Promise<readonly SubscriptionState[]>;
  /** Of an engine that may lose its data: marks by the name of the subscription, which disappear with its checkpoint. */
  readonly marks?: GenerationMarks<string> | undefined;
  /** Whether the engine has lost the checkpoint. Without it, the engine loses nothing. */
  readonly isLost?: ((subscription: string) => Promise<boolean>) | undefined;
}

export interface ResetReason {
  readonly by: string;
  readonly atMs: number;
}

/** Events that are marked as processed in one transaction. */
export type Settlement =
  | {
      readonly kind: 'delivered';
      readonly positions: readonly Position[];
      /** The checkpoint after these events are processed; a checkpoint never moves back. */
      readonly checkpoint?: Position | undefined;
    }
  /** An event from `waiting`; its dead letter, if any, becomes `replayed`. */
  | {
      readonly kind: 'drained';
      readonly stream: string;
      readonly position: Position;
      readonly eventId: string;
      readonly atMs: number;
    };

export type SettleResult =
  | 'settled'
  /** The event was settled before: this call changed nothing and committed no effect. */
  | 'duplicate';

/** A transaction of the store's database for the writes of a handler. */
export interface EffectTransaction<Transaction> {
  readonly transaction: Transaction;
  /** Effects, marks and checkpoint commit together, or not at all. */
  commit(settlement: Settlement): Promise<SettleResult>;
  /** `late`: the handler may still be running and must not reach the database any more. */
  rollback(why?: 'late'): Promise<void>;
}

export interface WaitingEvent {
  readonly position: Position;
  readonly eventId: string;
  readonly failures: number;
  readonly history: readonly Attempt[];
}

export interface ParkedStream {
  readonly stream: string;
  /** When its first event is retried; `queued`: these events only queue after it. */
  readonly due: number | 'queued';
  readonly events: readonly WaitingEvent[];
}

/** Events queued in order after a failed event of the same stream; other streams continue. */
export interface WaitingEvents {
  park(fence: Fence, streams: readonly ParkedStream[]): Promise<void>;
  /** Streams whose first event is due for a retry. */
  due(key: ShardKey, nowMs: number, limit: number): Promise<readonly string[]>;
  /** The first events of a stream, or the first ones after a position, in order. */
  next(
    key: ShardKey,
    stream: string,
    limit: number,
    after?: Position,
  ): Promise<readonly WaitingEvent[]>;
  /** Returns false while events of the stream wait. */
  unblock(fence: Fence, stream: string): Promise<boolean>;
  count(subscription: string): Promise<number>;
  countOf(key: ShardKey, stream: string): Promise<number>;
}

export interface AddedDeadLetter {
  readonly letter: DeadLetter;
  /** False if a replay of an existing dead letter failed. */
  readonly isNew: boolean;
}

export interface DeadLetterListPage {
  readonly limit?: number | undefined;
  /** The last id of the previous page. */
  readonly after?: string | undefined;
  /** True: the payload of each dead letter is null, and is not read where the database can leave it out. */
  readonly withoutPayloads?: boolean | undefined;
}

export interface DeadLetterStore {
  /**
   * Stores the dead letter and marks its event as processed. An existing dead letter becomes pending
   * again, with the attempts added. If `parked`, the event and the later events of its stream wait.
   */
  add(fence: Fence, letter: NewDeadLetter): Promise<AddedDeadLetter>;
  get(id: string): Promise<DeadLetter | undefined>;
  /** Oldest first. */
  list(filter: DeadLetterFilter, page?: DeadLetterListPage): Promise<readonly DeadLetter[]>;
  count(filter: DeadLetterFilter): Promise<number>;
  /** Requests a replay of the pending dead letters that match. Returns their number. */
  replay(
    filter: DeadLetterFilter,
    request: { readonly by: string; readonly atMs: number },
  ): Promise<number>;
  /** Discards the pending dead letters that match; events parked after them continue. Returns their number. */
  discard(
    filter: DeadLetterFilter,
    request: { readonly by: string; readonly reason: string; readonly atMs: number },
  ): Promise<number>;
  /** Returns false if the dead letter does not exist. */
  note(id: string, notes: string): Promise<boolean>;
}

export interface ClaimKey {
  readonly eventId: string;
  readonly handler: string;
}

export type Claim =
  | { readonly kind: 'claimed'; readonly token: number }
  | { readonly kind: 'done' }
  /** Another process has the claim; it may have died since. */
  | { readonly kind: 'busy'; readonly retryInMs: number };

/** Claims for effects outside the database, and the events whose effect is confirmed. */
export interface ProcessedEvents {
  claim(
    key: ClaimKey,
    options: { readonly leaseMs: number; readonly ttlMs: number },
  ): Promise<Claim>;
  /** Returns false if another process took over the claim. */
  confirm(key: ClaimKey, token: number): Promise<boolean>;
  release(key: ClaimKey, token: number): Promise<boolean>;
  /** Removes up to `limit` expired claims. Returns their number. */
  sweep(limit: number): Promise<number>;
}

export type AcquiredLease =
  | { readonly kind: 'acquired'; readonly token: number }
  | { readonly kind: 'held'; readonly retryInMs: number };

/** Leases expire by the clock of the lease store, because the clocks of the processes may differ. */
export interface LeaseStore {
  /** `above`: the new token must be higher than this one and than every stored token. */
  acquire(
    key: ShardKey,
    owner: string,
    ttlMs: number,
    options?: { readonly above?: number | undefined },
  ): Promise<AcquiredLease>;
  /** Returns false if the lease is lost or released. */
  renew(fence: Fence, ttlMs: number): Promise<boolean>;
  /** Frees the lease immediately; its token is never used again. */
  release(fence: Fence): Promise<void>;
  list(subscription: string): Promise<readonly ShardLease[]>;
  /** Registers this process as alive and returns all live processes. */
  announce(subscription: string, worker: string, ttlMs: number): Promise<readonly string[]>;
  leave(subscription: string, worker: string): Promise<void>;
  /** The live processes, without registering this one. */
  workers(subscription: string): Promise<readonly LiveWorker[]>;
}

interface LiveWorker {
  readonly worker: string;
  /** How long it counts as alive without another `announce`. */
  readonly remainingMs: number;
}

/** The fence tokens in force, for leases of another server (`withLeases`). The storage's own leases set them. */
export interface FenceTokens {
  /** The highest token so far; 0 before the first. */
  current(key: ShardKey): Promise<number>;
  /** Rejects lower tokens from now on. Returns false if an equal or higher token is in force. */
  raise(fence: Fence): Promise<boolean>;
}

/**
 * The complete storage. `Transaction` is the type that handlers receive for their writes.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import type { SubscriptionStorage } from 'millrace/subscriptions';
 *
 * const storage: SubscriptionStorage = openMemory().subscriptions;
 * console.log(storage.capabilities.durable); // false
 */
export interface SubscriptionStorage<Transaction = unknown> {
  /** Identifies the database: an outbox with the same value commits together with the checkpoints. */
  readonly database?: string | undefined;
  readonly capabilities: SubscriptionCapabilities;
  readonly checkpoints: CheckpointStore;
  readonly processed: ProcessedEvents;
  readonly deadLetters: DeadLetterStore;
  readonly waiting: WaitingEvents;
  readonly leases: LeaseStore;
  readonly tokens: FenceTokens;
  /** Marks events as processed, without writes of a handler. */
  settle(fence: Fence, settlement: Settlement): Promise<SettleResult>;
  /** Requires the capability `transactions`. */
  begin(fence: Fence): Promise<EffectTransaction<Transaction>>;
}

/** What a subscription reads and stores; the handle of an engine with subscriptions has these roles. */
export interface SubscriptionRoles<Transaction = unknown> {
  readonly store: EventStore;
  readonly subscriptions: SubscriptionStorage<Transaction>;
  /** Leases in Redis or NATS; the same in all processes. Default: the leases of the storage. */
  readonly leases?: LeaseStore | undefined;
}

/** The error of every write with an outdated fence token. */
export function leaseLost({ subscription, shard, token }: Fence): MillraceError {
  return new MillraceError('LEASE_LOST', `shard ${shard} of ${subscription} has another owner`, {
    details: { subscription, shard, token },
  });
}

/** The error of a subscription whose checkpoint is lost. */
export function checkpointLost(subscription: string): MillraceError {
  return new MillraceError(
    'CHECKPOINT_LOST',
    `the checkpoint of ${subscription} is lost: reset the subscription to the position from which it continues`,
    { details: { subscription } },
  );
}
