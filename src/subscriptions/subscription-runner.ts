// Runs a subscription in this process: acquires its share of the shards, renews their leases, and
// releases them when it stops or when other processes need a share.

import { randomUUID } from 'node:crypto';
import { systemClock, type Clock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { createIds, type IdSource } from '../foundation/ids.ts';
import { createLifecycle, withLifecycle, type Lifecycle } from '../foundation/lifecycle.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import { nextTurn } from '../foundation/async/next-turn.ts';
import type { Position } from '../store/position.ts';
import type { ResolveTenant } from '../store/stream-owners.ts';
import type { DeadLetter } from './dead-letter.ts';
import { decideShards } from './rules/decide-shards.ts';
import { slept } from '../foundation/async/slept.ts';
import type { FailingShard, FailingShards } from './run/failing-shards.ts';
import { createOwnedShards } from './run/owned-shards.ts';
import { createProgressWaiters } from './run/progress-waiters.ts';
import type { RunnerTuning, ShardStatus } from './run/shard-runner.ts';
import { safeObserver } from '../foundation/safe-observer.ts';
import { subscriptionAdmin, type SubscriptionLag } from './subscription-admin.ts';
import { subscriptionLimits as limits } from './subscription-limits.ts';
import type { SubscriptionRoles } from './subscription-storage.ts';
import type { Subscription } from './subscription.ts';
import { storageOf } from './with-leases.ts';

type TuningOptions = { readonly [Name in keyof RunnerTuning]?: RunnerTuning[Name] | undefined };

export interface SubscriptionOptions extends TuningOptions {
  readonly clock?: Clock | undefined;
  readonly ids?: IdSource | undefined;
  readonly observer?: Observer | undefined;
  /** Id of this process, new at every start. */
  readonly worker?: string | undefined;
  /** Time after which other processes take over from a dead one. Default: 10 s. */
  readonly leaseMs?: number | undefined;
  /** The tenant of each event, before its handler runs. Default: as the event was read. */
  readonly resolveTenant?: ResolveTenant | undefined;
  /**
   * Called for every new dead letter after it is stored, but not for a failed replay. A process that
   * dies before the call skips it; the metric `dead_letter_queue_size` still counts the dead letter.
   */
  readonly onAlert?: ((letter: DeadLetter) => void | Promise<void>) | undefined;
  /** Lists the failing shards of all subscriptions of a process. */
  readonly failing?: FailingShards | undefined;
}

export interface SubscriptionStatus {
  readonly name: string;
  readonly worker: string;
  readonly paused: boolean;
  /** The shards that this process owns. */
  readonly shards: readonly ShardStatus[];
  /** The shards that end again and again in this process. */
  readonly failing: readonly FailingShard[];
}

export interface SubscriptionRunner extends Lifecycle {
  readonly status: SubscriptionStatus;
  /** Resolves when all events now in the store are processed, by any process. */
  whenCaughtUp(signal?: AbortSignal): Promise<void>;
  /** Resolves when all events up to this position are processed, for reading your own writes. */
  waitFor(position: Position, signal?: AbortSignal): Promise<void>;
  lag(): Promise<SubscriptionLag>;
  /** Pauses the subscription in all processes. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Restarts after this position; default: from the start. */
  reset(to?: Position): Promise<void>;
  /** Checks for requested replays and free leases now instead of at the next interval. */
  poll(): void;
}

/** Restart delay of a shard that failed. */
const restartDelayMs = 1_000;

/**
 * Runs a subscription in this process: from its checkpoint, then live, until it stops.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { startSubscription, subscription } from 'millrace/subscriptions';
 *
 * await using db = openMemory();
 * const log = subscription({ name: 'sub:demo:log:v1', handler: ({ type }) => console.log(type) });
 * await using runner = await startSubscription(db, log);
 * await runner.whenCaughtUp();
 */
export async function startSubscription<Transaction>(
  roles: SubscriptionRoles<Transaction>,
  subscription: Subscription<Transaction>,
  options: SubscriptionOptions = {},
): Promise<SubscriptionRunner> {
  const runner = createSubscriptionRunner(roles, subscription, options);
  await runner.start();
  return runner;
}

/**
 * Creates a runner without starting it. `startSubscription` creates and starts one.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { createSubscriptionRunner, subscription } from 'millrace/subscriptions';
 *
 * await using db = openMemory();
 * const log = subscription({ name: 'sub:demo:log:v1', handler: ({ type }) => console.log(type) });
 * await using runner = createSubscriptionRunner(db, log);
 * await runner.start();
 */
export function createSubscriptionRunner<Transaction>(
  roles: SubscriptionRoles<Transaction>,
  subscription: Subscription<Transaction>,
  options: SubscriptionOptions = {},
): SubscriptionRunner {
  const { name, shards } = subscription;
  const { store } = roles;
  const storage = storageOf(roles);
  const {
    clock = systemClock,
    ids = createIds(),
    worker = randomUUID(),
    leaseMs = limits.leaseMs,
  } = options;
  const observer = safeObserver(options.observer ?? silentObserver);
  const admin = subscriptionAdmin(roles, { clock });
  const pollMs = options.pollMs ?? limits.pollMs;
  const heartbeatMs = Math.max(1, Math.floor(leaseMs / 3));
  const waiters = createProgressWaiters(clock, pollMs);
  let paused = false;
  let isNotifying = false;
  /** Number of progress reports of this process's shards. */
  let steps = 0;
  let sweepAtMs = 0;
  let sleeping = new AbortController();
  let stopReports: (() => void) | undefined;
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
    resolveTenant: options.resolveTenant,
    tuning: {
      checkpointEvery: options.checkpointEvery ?? limits.checkpointEvery,
      checkpointMs: options.checkpointMs ?? limits.checkpointMs,
      pollMs,
      drainMs: options.drainMs ?? limits.drainMs,
      windowMax: options.windowMax ?? limits.windowMax,
      pageSize: options.pageSize ?? limits.pageSize,
    },
    restartDelayMs,
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
        isNew ? 'event dead-lettered' : 'dead letter replay failed',
      );
      if (isNew) void alert(letter);
      void reportDeadLetters();
    },
    onProgress() {
      steps += 1;
      if (waiters.size > 0 && !isNotifying) void notifyWaiters();
    },
    onEnded: () => wake(),
  });

  async function alert(letter: DeadLetter): Promise<void> {
    try {
      await options.onAlert?.(letter);
    } catch (err) {
      observer.log?.error({ sub: name, deadLetter: letter.id, err }, 'onAlert hook failed');
    }
  }

  /** Notifies once for all progress of one turn of the event loop. */
  async function notifyWaiters(): Promise<void> {
    isNotifying = true;
    await nextTurn();
    isNotifying = false;
    waiters.notify(localPosition());
  }

  /** The position of the whole subscription; undefined unless this process owns all shards. */
  function localPosition(): Position | undefined {
    const positions = owned.positions();
    if (positions.size < shards) return undefined;
    return [...positions.values()].reduce((least, each) =>
      least === undefined || (each !== undefined && least < each) ? least : each,
    );
  }

  function wake(): void {
    sleeping.abort();
  }

  /** Ends early when another process pauses or resumes the subscription. */
  async function sleepUntilChange(ms: number, end: AbortSignal): Promise<void> {
    sleeping = new AbortController();
    const signal = AbortSignal.any([end, sleeping.signal]);
    const endMs = clock.now() + ms;
    while (await slept(clock, Math.min(pollMs, endMs - clock.now()), signal)) {
      if (clock.now() >= endMs || (await isPauseChanged())) return;
    }
  }

  async function isPauseChanged(): Promise<boolean> {
    try {
      return ((await storage.checkpoints.get(name))?.paused ?? false) !== paused;
    } catch (err) {
      // `manage` reports an unavailable database once.
      observer.log?.debug({ sub: name, err }, 'could not read the subscription state');
      return false;
    }
  }

  async function manage(end: AbortSignal): Promise<void> {
    let isUnavailable = false;
    while (!end.aborted) {
      let waitMs = heartbeatMs;
      try {
        waitMs = await balanceShards(end);
        isUnavailable = false;
      } catch (err) {
        // Log once per outage.
        if (!isUnavailable) observer.log?.warn({ sub: name, err }, 'leases unavailable');
        isUnavailable = true;
      }
      await sleepUntilChange(waitMs, end);
    }
  }

  /** Returns the time until the next check. */
  async function balanceShards(end: AbortSignal): Promise<number> {
    const state = await storage.checkpoints.get(name);
    paused = state?.paused ?? false;
    if (paused) {
      // Keep the leases until the running handlers finish.
      if (owned.shards.length > 0) void owned.release(owned.shards).then(wake, wake);
      else await storage.leases.leave(name, worker);
      return heartbeatMs;
    }
    const workers = await storage.leases.announce(name, worker, leaseMs);
    const leases = await storage.leases.list(name);
    const decision = decideShards({ shards, self: worker, workers, leases });
    void owned.release(decision.release).then(wake, wake);
    for (const shard of decision.acquire) {
      if (end.aborted) break;
      await owned.acquire(shard);
    }
    await reportLag();
    await sweep();
    const others = leases.filter(({ owner, remainingMs }) => owner !== worker && remainingMs > 0);
    return Math.min(heartbeatMs, ...others.map(({ remainingMs }) => remainingMs + 1));
  }

  /** Only the owner of shard 0 sweeps, one bounded batch at a time. */
  async function sweep(): Promise<void> {
    if (clock.now() < sweepAtMs || !owned.shards.includes(0)) return;
    const removed = await storage.processed.sweep(limits.sweepMax);
    sweepAtMs = clock.now() + (removed === limits.sweepMax ? 0 : limits.sweepMs);
  }

  async function reportLag(): Promise<void> {
    if (observer.gauge === undefined || !owned.shards.includes(0)) return;
    const { seconds } = await admin.lag(name);
    observer.gauge?.('projection_lag_seconds', seconds, { sub: name });
    await reportDeadLetters();
  }

  async function reportDeadLetters(): Promise<void> {
    if (observer.gauge === undefined) return;
    try {
      const size = await storage.deadLetters.count({ handler: name, status: 'pending' });
      observer.gauge('dead_letter_queue_size', size, { handler: name });
    } catch (err) {
      observer.log?.debug({ sub: name, err }, 'could not count the dead letters');
    }
  }

  async function start(): Promise<void> {
    const state = await storage.checkpoints.open(name, shards, subscription.filter);
    if (state.shards !== shards) {
      throw new MillraceError(
        'SUBSCRIPTION_INVALID',
        `${name} has ${state.shards} shards and cannot change to ${shards}: start a new version`,
        { details: { name, shards, stored: state.shards } },
      );
    }
    const end = new AbortController();
    stopReports = options.failing?.add(() => owned.failing());
    managing = { end, done: manage(end.signal) };
  }

  async function stop(): Promise<void> {
    stopReports?.();
    managing?.end.abort();
    await owned.release(owned.shards);
    await managing?.done;
    managing = undefined;
    // A shard may have been acquired while the first ones were released.
    await owned.release(owned.shards);
    try {
      await storage.leases.leave(name, worker);
    } catch (error) {
      if (!hasCode(error, 'STORE_UNAVAILABLE') && !hasCode(error, 'STORE_CLOSED')) throw error;
    }
  }

  async function waitFor(target: Position, signal?: AbortSignal): Promise<void> {
    const isReached = async (): Promise<boolean> => {
      const reached = localPosition();
      if (reached !== undefined) return reached >= target;
      const local = owned.positions();
      const isPast = (position: Position | undefined): boolean =>
        position !== undefined && position >= target;
      const missing = Array.from({ length: shards }, (_, shard) => shard).filter(
        (shard) => !isPast(local.get(shard)),
      );
      if (missing.length === 0) return true;
      // For shards of other processes, only the stored checkpoint is known.
      if (missing.some((shard) => local.has(shard))) return false;
      const state = await storage.checkpoints.get(name);
      return missing.every((shard) => isPast(state?.positions[shard]));
    };
    for (;;) {
      const stepsBefore = steps;
      if (await isReached()) return;
      // Progress during the check has notified no waiter, so check again instead of waiting.
      if (steps === stepsBefore) await waiters.wait(target, signal);
      signal?.throwIfAborted();
    }
  }

  return withLifecycle<Omit<SubscriptionRunner, keyof Lifecycle>>(
    createLifecycle({ start, stop }),
    {
      get status() {
        return { name, worker, paused, shards: owned.statuses(), failing: owned.failing() };
      },
      async whenCaughtUp(signal) {
        const last = await admin.lastPosition(undefined, subscription.filter);
        await waitFor(last, signal);
      },
      async waitFor(position, signal) {
        const reached = localPosition();
        if (reached !== undefined && reached >= position) return;
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
        // The shards of this process notice at once that the reset took their leases.
        await owned.renew();
        wake();
      },
      poll() {
        owned.poll();
        wake();
      },
    },
  );
}
