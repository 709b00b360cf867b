// Claims items and runs them with bounded concurrency until it is stopped: the loop of the outbox dispatcher, the bus
// consumer, the task workers and queues on SQLite. `next-claim-step.ts` decides, this file performs.

import { backoffMs, type BackoffPolicy } from '../foundation/backoff.ts';
import type { Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { nextTurn } from '../foundation/async/next-turn.ts';
import { slept } from '../foundation/async/slept.ts';
import {
  firstClaimState,
  nextClaimStep,
  type ClaimEvent,
  type ClaimLoad,
  type ClaimRules,
  type ClaimState,
} from './next-claim-step.ts';
import { renewClaims, type ClaimLease } from './renew-claims.ts';

export interface ClaimedItems<Item> {
  readonly items: readonly Item[];
  /** Taken before the leases began: they end no earlier than `leaseMs` later. */
  readonly leasedAtMs: number;
}

export interface EndedItem<Item, Outcome> {
  readonly item: Item;
  readonly outcome: Outcome;
}

/** Ends a running item, because its lease is lost (`LEASE_LOST`) or the loop must stop (`ABORTED`). */
export type Cancel = (reason: MillraceError) => void;

export interface ClaimLoopOptions<Item, Outcome> extends ClaimRules {
  readonly clock: Clock;
  /** Items that run at the same time. */
  readonly concurrency: number;
  readonly leaseMs: number;
  /** How long a stop waits for running items before it cancels them. Undefined: until they end. */
  readonly drainMs?: number | undefined;
  /** The size of the item's payload. */
  readonly bytesOf: (item: Item) => number;
  /** May wait for items until the signal fires. */
  readonly claim: (limit: number, signal: AbortSignal) => Promise<ClaimedItems<Item>>;
  /** Runs an item and never rejects. After `cancel` it ends soon; the outcome of a lost item is discarded. */
  readonly run: (item: Item, onCancel: (cancel: Cancel) => void) => Promise<Outcome>;
  /** The outcome of a claimed item that is not run, because the loop stops. */
  readonly release: (item: Item) => Outcome;
  /** Stores outcomes, in the order in which the items ended. If it rejects, it is called with them again. */
  readonly settle: (ended: readonly EndedItem<Item, Outcome>[]) => Promise<void>;
  /** Renews leases; returns whether each claim is still valid. Undefined: leases are not renewed here. */
  readonly renew?: ((items: readonly Item[]) => Promise<readonly boolean[]>) | undefined;
  /** After a claim without items: resolves when another one may find some. Undefined: `claim` waits itself. */
  readonly wake?: ((signal: AbortSignal) => Promise<void>) | undefined;
  /** Once per outage, however many calls fail; `error` is that of the first one. */
  readonly onLost: (error: unknown) => void;
  readonly onRestored: () => void;
}

export interface ClaimLoop {
  readonly load: ClaimLoad;
  /** Resolves when the loop was stopped, all items have ended, and their outcomes are stored or could not be stored. */
  readonly done: Promise<void>;
  /** The result of `room` may have changed for a reason that the loop cannot see. */
  recheck(): void;
}

const outageBackoff: BackoffPolicy = {
  initialMs: 100,
  factor: 2,
  capMs: 5_000,
  jitterMs: 100,
  attemptsMax: Number.MAX_SAFE_INTEGER,
};

interface Held<Item> {
  readonly item: Item;
  readonly bytes: number;
  lease: ClaimLease | undefined;
  isLost: boolean;
  cancel: Cancel | undefined;
}

export function claimLoop<Item, Outcome>(
  options: ClaimLoopOptions<Item, Outcome>,
  stopping: AbortSignal,
): ClaimLoop {
  const { clock, concurrency, leaseMs, drainMs } = options;
  const over = new AbortController();
  const finished = Promise.withResolvers<void>();
  const renewal = renewClaims({ clock, leaseMs, renew: options.renew, signal: over.signal });
  let state: ClaimState = firstClaimState;
  let waiting: Held<Item>[] = [];
  let waitingBytes = 0;
  const running = new Set<Held<Item>>();
  let ended: EndedItem<Item, Outcome>[] = [];
  /** Outcomes that the running call stores. */
  let settling = 0;

  function loadNow(): ClaimLoad {
    const unsettled = ended.length + settling;
    return { waiting: waiting.length, waitingBytes, running: running.size, unsettled };
  }

  function on(event: ClaimEvent, error?: unknown): void {
    if (state.phase === 'over') return;
    if (stopping.aborted) releaseWaiting();
    else startWaiting();
    const step = nextClaimStep(state, event, { load: loadNow(), rules: options });
    state = step.state;
    if (step.report === 'lost') options.onLost(error);
    if (step.report === 'restored') options.onRestored();
    if (step.claim > 0) void claim(step.claim);
    if (step.settle) void settle();
    if (step.sleep) void sleep();
    if (step.backOff) void backOff();
    if (state.phase === 'over') {
      over.abort();
      finished.resolve();
    }
  }

  async function claim(limit: number): Promise<void> {
    const { epoch } = state;
    let event: ClaimEvent;
    let failure: unknown;
    try {
      const { items, leasedAtMs } = await options.claim(limit, stopping);
      const bytes = items.reduce((sum, item) => sum + hold(item, leasedAtMs), 0);
      event = { kind: 'claimed', epoch, count: items.length, bytes };
    } catch (error) {
      failure = error;
      // A stop ends the wait of a claim with an error.
      event = stopping.aborted ? { kind: 'woken' } : { kind: 'failed', call: 'claim', epoch };
    }
    on(event, failure);
  }

  /** Queues a claimed item; returns its size. */
  function hold(item: Item, leasedAtMs: number): number {
    const bytes = options.bytesOf(item);
    const held: Held<Item> = { item, bytes, lease: undefined, isLost: false, cancel: undefined };
    held.lease = renewal.hold(item, leasedAtMs, () => lose(held));
    waiting.push(held);
    waitingBytes += bytes;
    return bytes;
  }

  function lose(held: Held<Item>): void {
    held.isLost = true;
    if (running.has(held)) {
      held.cancel?.(new MillraceError('LEASE_LOST', 'another process may have claimed the item'));
      return;
    }
    waiting = waiting.filter((each) => each !== held);
    waitingBytes -= held.bytes;
    on({ kind: 'changed' });
  }

  function startWaiting(): void {
    while (running.size < concurrency) {
      const next = waiting.shift();
      if (next === undefined) return;
      waitingBytes -= next.bytes;
      // The process was suspended: another one may have the item.
      if (next.lease?.isCurrent() !== true) next.lease?.end();
      else void run(next);
    }
  }

  function releaseWaiting(): void {
    const items = waiting;
    waiting = [];
    waitingBytes = 0;
    for (const { item, lease } of items) {
      lease?.end();
      ended.push({ item, outcome: options.release(item) });
    }
  }

  async function run(held: Held<Item>): Promise<void> {
    const { item } = held;
    running.add(held);
    try {
      const outcome = await options.run(item, (cancel) => void (held.cancel = cancel));
      if (!held.isLost) ended.push({ item, outcome });
    } catch (error) {
      finished.reject(error);
    }
    held.lease?.end();
    running.delete(held);
    on({ kind: 'changed' });
  }

  async function settle(): Promise<void> {
    const { epoch } = state;
    // Outcomes of the same turn of the event loop are stored together.
    await nextTurn();
    const batch = ended;
    ended = [];
    settling = batch.length;
    let event: ClaimEvent = { kind: 'settled', epoch };
    let failure: unknown;
    try {
      await options.settle(batch);
    } catch (error) {
      failure = error;
      ended = [...batch, ...ended];
      event = { kind: 'failed', call: 'settle', epoch };
    }
    settling = 0;
    on(event, failure);
  }

  async function sleep(): Promise<void> {
    const { epoch } = state;
    let event: ClaimEvent = { kind: 'woken' };
    let failure: unknown;
    try {
      await options.wake?.(stopping);
    } catch (error) {
      failure = error;
      if (!stopping.aborted) event = { kind: 'failed', call: 'claim', epoch };
    }
    on(event, failure);
  }

  async function backOff(): Promise<void> {
    const waitMs = backoffMs(outageBackoff, state.failures);
    // The last call of a stopped loop does not wait for this.
    await slept(clock, waitMs, over.signal);
    on({ kind: 'backed-off' });
  }

  function stop(): void {
    on({ kind: 'stop' });
    if (drainMs === undefined || state.phase === 'over') return;
    void cancelAfter(drainMs);
  }

  async function cancelAfter(ms: number): Promise<void> {
    if (!(await slept(clock, ms, over.signal))) return;
    const reason = new MillraceError('ABORTED', 'the process is stopping');
    for (const held of running) held.cancel?.(reason);
  }

  if (!stopping.aborted) stopping.addEventListener('abort', stop, { once: true });
  // In a microtask: the functions of the caller may use the loop that is returned.
  queueMicrotask(() => (stopping.aborted ? stop() : on({ kind: 'changed' })));

  return {
    get load() {
      return loadNow();
    },
    done: finished.promise.finally(() => stopping.removeEventListener('abort', stop)),
    recheck: () => on({ kind: 'changed' }),
  };
}
