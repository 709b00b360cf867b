// What runs a subscription in this process: takes its share of the shards, keeps their leases, gives
// them up when it stops or when others come, and stands by otherwise.

import { randomUUID } from 'node:crypto';
import { systemClock, type Clock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { createIds, type IdSource } from '../foundation/ids.ts';
import { createLifecycle, withLifecycle, type Lifecycle } from '../foundation/lifecycle.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import type { EventStore } from '../store/event-store.ts';
import { nextTurn } from '../store/next-turn.ts';
import type { Position } from '../store/position.ts';
import { slept } from './run/deadline.ts';
import type { DeadLetter } from './dead-letter.ts';
import { decideShards } from './rules/decide-shards.ts';
import { createOwnedShards } from './run/owned-shards.ts';
import type { RunnerTuning, ShardStatus } from './run/shard-runner.ts';
import { createProgressWaiters } from './run/progress-waiters.ts';
import { safeObserver } from './safe-observer.ts';
import type { Subscription } from './subscription.ts';
import { subscriptionAdmin, type SubscriptionLag } from './subscription-admin.ts';
import { subscriptionLimits as limits } from './subscription-limits.ts';
import type { LeaseStore, SubscriptionHost, SubscriptionStorage } from './subscription-storage.ts';
import { withLeases } from './with-leases.ts';

type TuningOptions = { readonly [Name in keyof RunnerTuning]?: RunnerTuning[Name] | undefined };

export interface SubscriptionOptions<Transaction = unknown> extends TuningOptions {
  /** Default: the store's own. */
  readonly storage?: SubscriptionStorage<Transaction> | undefined;
  /** Kept elsewhere, in Redis or NATS. Default: in the storage. The same in all processes. */
  readonly leases?: LeaseStore | undefined;
  readonly clock?: Clock | undefined;
  readonly ids?: IdSource | undefined;
  readonly observer?: Observer | undefined;
  /** Of this process, new at every start. */
  readonly worker?: string | undefined;
  /** After which others take over from a process that died. Default: 10 s. */
  readonly leaseMs?: number | undefined;
  /**
   * Told of every new dead letter, after it was kept; not of a replay that failed. A process that
   * dies in between tells nobody: `dead_letter_queue_size` does.
   */
  readonly onAlert?: ((letter: DeadLetter) => void | Promise<void>) | undefined;
}

export interface SubscriptionStatus {
  readonly name: string;
  readonly worker: string;
  readonly paused: boolean;
  /** Those that this process owns. */
  readonly shards: readonly ShardStatus[];
}

export interface SubscriptionRunner extends Lifecycle {
  readonly status: SubscriptionStatus;
  /** Everything that the store holds now is done, in whatever process. */
  whenCaughtUp(signal?: AbortSignal): Promise<void>;
  /** Everything up to this position is done: for those who want to read what they wrote. */
  waitFor(position: Position, signal?: AbortSignal): Promise<void>;
  lag(): Promise<SubscriptionLag>;
  /** In all processes; until it is resumed. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Begins again behind this position, by default from the start. */
  reset(to?: Position): Promise<void>;
  /** Looks at once for replays and leases, instead of a moment later. */
  look(): void;
}

/** How long a shard rests that ended by a defect. */
const restMs = 1_000;

/**
 * Runs a subscription in this process: from its checkpoint, then live, until it is stopped.
 *
 * @example
 * import { memoryEventStore } from 'millrace/adapters/memory';
 * import { startSubscription, subscription } from 'millrace/subscriptions';
 *
 * await using store = memoryEventStore();
 * const log = subscription({ name: 'sub:demo:log:v1', handler: ({ type }) => console.log(type) });
 * await using runner = await startSubscription(store, log);
 * await runner.whenCaughtUp();
 */
export async function startSubscription<Transaction>(
  store: EventStore & Partial<SubscriptionHost<Transaction>>,
  subscription: Subscription<Transaction>,
  options: SubscriptionOptions<Transaction> = {},
): Promise<SubscriptionRunner> {
  const runner = createSubscriptionRunner(store, subscription, options);
  await runner.start();
  return runner;
}

/**
 * Prepares a runner; `start` starts it. `startSubscription` does both.
 *
 * @example
 * import { memoryEventStore } from 'millrace/adapters/memory';
 * import { createSubscriptionRunner, subscription } from 'millrace/subscriptions';
 *
 * const store = memoryEventStore();
 * const log = subscription({ name: 'sub:demo:log:v1', handler: ({ type }) => console.log(type) });
 * await using runner = createSubscriptionRunner(store, log);
 * await runner.start();
 */
export function createSubscriptionRunner<Transaction>(
  store: EventStore & Partial<SubscriptionHost<Transaction>>,
  subscription: Subscription<Transaction>,
  options: SubscriptionOptions<Transaction> = {},
): SubscriptionRunner {
  const { name, shards } = subscription;
  const storage = storageOf(store, options);
  const {
    clock = systemClock,
    ids = createIds(),
    worker = randomUUID(),
    leaseMs = limits.leaseMs,
  } = options;
  const observer = safeObserver(options.observer ?? silentObserver);
  const admin = subscriptionAdmin(store, { storage, clock });
  const pollMs = options.pollMs ?? limits.pollMs;
  const heartbeatMs = Math.max(1, Math.floor(leaseMs / 3));
  const waiters = createProgressWaiters(clock, pollMs);
  let paused = false;
  let isStopping = false;
  let isLooking = false;
  /** How often anything has moved on here. */
  let steps = 0;
  let sweepAtMs = 0;
  let napping = new AbortController();
  let managing: { readonly done: Promise<void>; readonly end: AbortController } | undefined;

  const owned = createOwnedShards({
    store,
    storage,
    subscription,
    clock,
    ids,
    observer,
    worker,
    leaseMs,
    tuning: {
      checkpointEvery: options.checkpointEvery ?? limits.checkpointEvery,
      checkpointMs: options.checkpointMs ?? limits.checkpointMs,
      pollMs,
      drainMs: options.drainMs ?? limits.drainMs,
      windowMax: options.windowMax ?? limits.windowMax,
      pageSize: options.pageSize ?? limits.pageSize,
    },
    restMs,
    onDeadLetter({ letter, isNew }) {
      observer.log?.error(
        {
          handler: letter.handler,
          eventId: letter.eventId,
          eventType: letter.eventType,
          stream: letter.stream,
          tenant: letter.tenant,
          correlationId: letter.correlationId,
          attempt: letter.attempts,
          deadLetter: letter.id,
        },
        isNew ? 'event is a dead letter' : 'replay of a dead letter failed',
      );
      if (isNew) void alert(letter);
      void tellSize();
    },
    onProgress() {
      steps += 1;
      if (waiters.size > 0 && !isLooking) void lookSoon();
    },
    onEnded: () => wake(),
  });

  async function alert(letter: DeadLetter): Promise<void> {
    try {
      await options.onAlert?.(letter);
    } catch (err) {
      observer.log?.error({ sub: name, deadLetter: letter.id, err }, 'alert hook failed');
    }
  }

  /** Once for all that is done in a turn of the event loop. */
  async function lookSoon(): Promise<void> {
    isLooking = true;
    await nextTurn();
    isLooking = false;
    waiters.tell(reachedHere());
  }

  /** How far all of it is, where no other process has a part of it. */
  function reachedHere(): Position | undefined {
    const positions = owned.positions();
    if (positions.size < shards) return undefined;
    return [...positions.values()].reduce((least, each) =>
      least === undefined || (each !== undefined && least < each) ? least : each,
    );
  }

  function wake(): void {
    napping.abort();
  }

  /** Ends early when somebody else has paused or resumed it: noticed as soon as replays are. */
  async function nap(ms: number, end: AbortSignal): Promise<void> {
    napping = new AbortController();
    const signal = AbortSignal.any([end, napping.signal]);
    const endMs = clock.now() + ms;
    while (await slept(clock, Math.min(pollMs, endMs - clock.now()), signal)) {
      if (clock.now() >= endMs || (await isSwitched())) return;
    }
  }

  async function isSwitched(): Promise<boolean> {
    try {
      return ((await storage.checkpoints.get(name))?.paused ?? false) !== paused;
    } catch (err) {
      // It is told where the leases are kept, once.
      observer.log?.debug({ sub: name, err }, 'subscription could not be looked up');
      return false;
    }
  }

  async function manage(end: AbortSignal): Promise<void> {
    let isAway = false;
    while (!end.aborted) {
      let waitMs = heartbeatMs;
      try {
        waitMs = await tend();
        isAway = false;
      } catch (err) {
        // Once, however long it takes.
        if (!isAway) observer.log?.warn({ sub: name, err }, 'subscription cannot reach its leases');
        isAway = true;
      }
      await nap(waitMs, end);
    }
  }

  /** Returns how long nothing is to be done. */
  async function tend(): Promise<number> {
    // First of all: whatever else takes long must not cost a lease.
    await owned.renew();
    const state = await storage.checkpoints.get(name);
    paused = state?.paused ?? false;
    if (isStopping) return heartbeatMs;
    if (paused) {
      // Handlers may take their time to finish: until then the leases are kept.
      if (owned.shards.length > 0) void owned.giveUp(owned.shards).then(wake, wake);
      else await storage.leases.leave(name, worker);
      return heartbeatMs;
    }
    const workers = await storage.leases.announce(name, worker, leaseMs);
    const leases = await storage.leases.list(name);
    const decision = decideShards({ shards, self: worker, workers, leases });
    void owned.giveUp(decision.release).then(wake, wake);
    for (const shard of decision.acquire) {
      if (isStopping) break;
      await owned.acquire(shard);
    }
    await tellLag();
    await sweep();
    const others = leases.filter(({ owner, remainingMs }) => owner !== worker && remainingMs > 0);
    return Math.min(heartbeatMs, ...others.map(({ remainingMs }) => remainingMs + 1));
  }

  /** One process at a time, a bounded part at a time. */
  async function sweep(): Promise<void> {
    if (clock.now() < sweepAtMs || !owned.shards.includes(0)) return;
    const removed = await storage.processed.sweep(limits.sweepMax);
    sweepAtMs = clock.now() + (removed === limits.sweepMax ? 0 : limits.sweepMs);
  }

  async function tellLag(): Promise<void> {
    if (observer.gauge === undefined || !owned.shards.includes(0)) return;
    const { seconds } = await admin.lag(name);
    observer.gauge?.('projection_lag_seconds', seconds, { sub: name });
    await tellSize();
  }

  async function tellSize(): Promise<void> {
    if (observer.gauge === undefined) return;
    try {
      const size = await storage.deadLetters.count({ handler: name, status: 'pending' });
      observer.gauge('dead_letter_queue_size', size, { handler: name });
    } catch (err) {
      observer.log?.debug({ sub: name, err }, 'dead letters could not be counted');
    }
  }

  async function start(): Promise<void> {
    isStopping = false;
    const state = await storage.checkpoints.open(name, shards, subscription.filter);
    if (state.shards !== shards) {
      throw new MillraceError(
        'SUBSCRIPTION_INVALID',
        `${name} was started with ${state.shards} shards and cannot have ${shards} now: give it a new version`,
        { details: { name, shards, stored: state.shards } },
      );
    }
    const end = new AbortController();
    managing = { end, done: manage(end.signal) };
  }

  async function stop(): Promise<void> {
    isStopping = true;
    // The leases are kept until the last handler has finished.
    await owned.giveUp(owned.shards);
    managing?.end.abort();
    await managing?.done;
    managing = undefined;
    // One that was acquired while the first ones were given up.
    await owned.giveUp(owned.shards);
    try {
      await storage.leases.leave(name, worker);
    } catch (error) {
      if (!hasCode(error, 'STORE_UNAVAILABLE') && !hasCode(error, 'STORE_CLOSED')) throw error;
    }
  }

  async function waitFor(target: Position, signal?: AbortSignal): Promise<void> {
    const isThere = async (): Promise<boolean> => {
      const here = reachedHere();
      if (here !== undefined) return here >= target;
      const local = owned.positions();
      const isFar = (position: Position | undefined): boolean =>
        position !== undefined && position >= target;
      const missing = Array.from({ length: shards }, (_, shard) => shard).filter(
        (shard) => !isFar(local.get(shard)),
      );
      if (missing.length === 0) return true;
      // Of those that others own, only what they wrote down is known.
      if (missing.some((shard) => local.has(shard))) return false;
      const state = await storage.checkpoints.get(name);
      return missing.every((shard) => isFar(state?.positions[shard]));
    };
    for (;;) {
      const looked = steps;
      if (await isThere()) return;
      // What was done during the look has woken nobody: only the next poll would, a second later.
      if (steps === looked) await waiters.wait(target, signal);
      signal?.throwIfAborted();
    }
  }

  return withLifecycle<Omit<SubscriptionRunner, keyof Lifecycle>>(
    createLifecycle({ start, stop }),
    {
      get status() {
        return { name, worker, paused, shards: owned.statuses() };
      },
      async whenCaughtUp(signal) {
        const last = await admin.lastPosition(undefined, subscription.filter);
        await waitFor(last, signal);
      },
      async waitFor(position, signal) {
        const here = reachedHere();
        if (here !== undefined && here >= position) return;
        const last = await admin.lastPosition(position, subscription.filter);
        await waitFor(last, signal);
      },
      lag: () => admin.lag(name),
      async pause() {
        await admin.pause(name);
        wake();
      },
      async resume() {
        await admin.resume(name);
        wake();
      },
      async reset(to) {
        await admin.reset(name, { evenIfRunning: true, to });
        wake();
      },
      look() {
        owned.look();
        wake();
      },
    },
  );
}

function storageOf<Transaction>(
  store: Partial<SubscriptionHost<Transaction>>,
  options: SubscriptionOptions<Transaction>,
): SubscriptionStorage<Transaction> {
  const storage = options.storage ?? store.subscriptions;
  if (storage !== undefined) {
    return options.leases === undefined ? storage : withLeases(storage, options.leases);
  }
  throw new MillraceError(
    'NOT_SUPPORTED',
    "this store has no room for checkpoints: pass another engine's storage",
  );
}
