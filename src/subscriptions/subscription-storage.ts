// What subscriptions keep beside the events, as one port: how far they are, what was done, what
// failed, what waits, and who is the owner. The store's own database brings it where it has room.

import type { EventFilter } from '../store/event-filter.ts';
import type { Position } from '../store/position.ts';
import type { ShardLease } from './rules/decide-shards.ts';
import type { Attempt, DeadLetter, DeadLetterFilter, NewDeadLetter } from './dead-letter.ts';
import { MillraceError } from '../foundation/error.ts';

export interface SubscriptionCapabilities {
  /** Handlers can have their effect in the transaction that marks the event as done. */
  readonly transactions: boolean;
  /** Survives the end of the process. */
  readonly durable: boolean;
  /** Other processes see it, so that they can take over. */
  readonly crossProcess: boolean;
}

export interface ShardKey {
  readonly subscription: string;
  readonly shard: number;
}

/** Goes with every write of an owner. Once another one has taken over: `LEASE_LOST`. */
export interface Fence extends ShardKey {
  readonly token: number;
}

export interface ShardProgress {
  /** Undefined: the shard never had a checkpoint. */
  readonly position: Position | undefined;
  /** Done above it, in any order. */
  readonly done: readonly Position[];
  /** Aggregates whose events wait in `waiting`. */
  readonly blocked: readonly string[];
}

export interface SubscriptionState {
  readonly subscription: string;
  readonly shards: number;
  readonly paused: boolean;
  /** What it was last started with; undefined: all events. */
  readonly filter: EventFilter | undefined;
  /** By shard; undefined where there is none yet. */
  readonly positions: readonly (Position | undefined)[];
}

export interface CheckpointStore {
  /** Makes the subscription known; one that is known stays as it is, but for its filter. */
  open(subscription: string, shards: number, filter?: EventFilter): Promise<SubscriptionState>;
  load(key: ShardKey): Promise<ShardProgress>;
  /** Never moves back. Forgets what was done up to there. */
  save(fence: Fence, position: Position): Promise<void>;
  /** False: there is no such subscription. */
  setPaused(subscription: string, paused: boolean): Promise<boolean>;
  /**
   * Back (or forth) to a position, in all shards: whoever owns one has lost it, what waits above
   * the position is forgotten, as it will come again, and dead letters above it are discarded.
   */
  reset(subscription: string, to: Position, reason: ResetReason): Promise<boolean>;
  get(subscription: string): Promise<SubscriptionState | undefined>;
  list(): Promise<readonly SubscriptionState[]>;
}

export interface ResetReason {
  readonly by: string;
  readonly atMs: number;
}

/** What is done with, all at once. */
export type Settlement =
  | {
      readonly kind: 'delivered';
      readonly positions: readonly Position[];
      /** Everything up to here is done once these are: moves with them, and never back. */
      readonly checkpoint?: Position | undefined;
    }
  /** One that waited; a dead letter of it is replayed by this. */
  | {
      readonly kind: 'drained';
      readonly stream: string;
      readonly position: Position;
      readonly eventId: string;
      readonly atMs: number;
    };

export type SettleResult =
  | 'settled'
  /** It had been settled before: nothing was changed now, and no effect was kept. */
  | 'repeated';

/** A transaction of the store's database that a handler has its effects in. */
export interface EffectTransaction<Transaction> {
  readonly transaction: Transaction;
  /** Effects, marks and checkpoint commit together, or not at all. */
  commit(settlement: Settlement): Promise<SettleResult>;
  /** `late`: the handler may still be at work, and must not reach the database any more. */
  rollback(why?: 'late'): Promise<void>;
}

export interface WaitingEvent {
  readonly position: Position;
  readonly eventId: string;
  readonly failures: number;
  readonly history: readonly Attempt[];
}

export interface HeldStream {
  readonly stream: string;
  /** When its first event is to be tried again; `behind`: these only queue up. */
  readonly due: number | 'behind';
  readonly events: readonly WaitingEvent[];
}

/** Events of aggregates that wait for one of their own, in order, without holding up the others. */
export interface WaitingEvents {
  hold(fence: Fence, streams: readonly HeldStream[]): Promise<void>;
  /** Aggregates whose first event may be tried. */
  due(key: ShardKey, nowMs: number, limit: number): Promise<readonly string[]>;
  /** In order. */
  next(key: ShardKey, stream: string, limit: number): Promise<readonly WaitingEvent[]>;
  /** False while events of it wait. */
  unblock(fence: Fence, stream: string): Promise<boolean>;
  count(subscription: string): Promise<number>;
}

export interface AddedDeadLetter {
  readonly letter: DeadLetter;
  /** False: a replay of it failed. */
  readonly isNew: boolean;
}

export interface DeadLetterStore {
  /**
   * Keeps the letter and marks its event as done. One that is there already is opened again, with
   * its attempts added. `parked`: the event and those behind it wait.
   */
  add(fence: Fence, letter: NewDeadLetter): Promise<AddedDeadLetter>;
  get(id: string): Promise<DeadLetter | undefined>;
  /** Oldest first; `after` is the id of the last one of the page before. */
  list(
    filter: DeadLetterFilter,
    page?: { readonly limit?: number | undefined; readonly after?: string | undefined },
  ): Promise<readonly DeadLetter[]>;
  count(filter: DeadLetterFilter): Promise<number>;
  /** Of pending ones: lets the owner try them again. Returns how many. */
  replay(
    filter: DeadLetterFilter,
    request: { readonly by: string; readonly atMs: number },
  ): Promise<number>;
  /** Of pending ones: gives them up; what waits behind them goes on. Returns how many. */
  discard(
    filter: DeadLetterFilter,
    request: { readonly by: string; readonly reason: string; readonly atMs: number },
  ): Promise<number>;
  /** False: there is no such letter. */
  note(id: string, notes: string): Promise<boolean>;
}

export interface ClaimKey {
  readonly eventId: string;
  readonly handler: string;
}

export type Claim =
  | { readonly kind: 'claimed'; readonly token: number }
  | { readonly kind: 'done' }
  /** Somebody else is at it, or was when it died. */
  | { readonly kind: 'busy'; readonly retryInMs: number };

/** Who may have an effect outside of the database, and for which events it has been had. */
export interface ProcessedEvents {
  claim(
    key: ClaimKey,
    options: { readonly leaseMs: number; readonly ttlMs: number },
  ): Promise<Claim>;
  /** False: the claim had passed to somebody else. */
  confirm(key: ClaimKey, token: number): Promise<boolean>;
  release(key: ClaimKey, token: number): Promise<boolean>;
  /** Removes up to so many that have outlived their time, by an index. Returns how many. */
  sweep(limit: number): Promise<number>;
}

export type AcquiredLease =
  | { readonly kind: 'acquired'; readonly token: number }
  | { readonly kind: 'held'; readonly retryInMs: number };

/** By the clock of whoever keeps them: those of the processes may differ. */
export interface LeaseStore {
  /** `above`: the token is to be higher than this one, too, whatever the store remembers. */
  acquire(
    key: ShardKey,
    owner: string,
    ttlMs: number,
    options?: { readonly above?: number | undefined },
  ): Promise<AcquiredLease>;
  /** False: lost, or released. */
  renew(fence: Fence, ttlMs: number): Promise<boolean>;
  /** Free for others at once; the token is not used again. */
  release(fence: Fence): Promise<void>;
  list(subscription: string): Promise<readonly ShardLease[]>;
  /** Says that this process is there, and returns all that are. */
  announce(subscription: string, worker: string, ttlMs: number): Promise<readonly string[]>;
  leave(subscription: string, worker: string): Promise<void>;
}

/**
 * Which token is in force: for leases that are kept elsewhere (`withLeases`). The storage's own
 * leases put theirs in force themselves.
 */
export interface FenceTokens {
  /** The highest that ever was; 0 where there was none. */
  current(key: ShardKey): Promise<number>;
  /** From now on lower ones write nothing. False: one as high is in force, and stays. */
  raise(fence: Fence): Promise<boolean>;
}

/**
 * All of it. `Transaction` is what a handler gets for its effects.
 *
 * @example
 * import { memorySubscriptionStorage, type SubscriptionStorage } from 'millrace/subscriptions';
 *
 * const storage: SubscriptionStorage = memorySubscriptionStorage();
 * console.log(storage.capabilities.durable); // false
 */
export interface SubscriptionStorage<Transaction = unknown> {
  readonly capabilities: SubscriptionCapabilities;
  readonly checkpoints: CheckpointStore;
  readonly processed: ProcessedEvents;
  readonly deadLetters: DeadLetterStore;
  readonly waiting: WaitingEvents;
  readonly leases: LeaseStore;
  readonly tokens: FenceTokens;
  /** Without effects in the database. */
  settle(fence: Fence, settlement: Settlement): Promise<SettleResult>;
  /** With `transactions`. */
  begin(fence: Fence): Promise<EffectTransaction<Transaction>>;
}

/** An event store whose database has room for it. */
export interface SubscriptionHost<Transaction = unknown> {
  readonly subscriptions: SubscriptionStorage<Transaction>;
}

/** What an owner hears that was taken over from, whatever it wanted to write. */
export function leaseLost({ subscription, shard, token }: Fence): MillraceError {
  return new MillraceError('LEASE_LOST', `shard ${shard} of ${subscription} has another owner`, {
    details: { subscription, shard, token },
  });
}
