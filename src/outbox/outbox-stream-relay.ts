// From the lanes of stream mode to the outside: owns its share of them, sends the batches of each in order,
// and settles them in the round trip that fetches the next.

import { randomUUID } from 'node:crypto';
import { systemClock, type Clock } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';
import type { Lifecycle } from '../foundation/lifecycle.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import { nextTurn } from '../store/next-turn.ts';
import { createWaiters } from '../store/waiters.ts';
import { safeObserver } from '../subscriptions/safe-observer.ts';
import { checkNumbers, checkTypes } from './check-outbox.ts';
import { decideBatch, sendable, type BatchDecision } from './decide-batch.ts';
import { killsItsProcess, type DeliveryResult, type RetrySchedule } from './decide-delivery.ts';
import { attemptBatch, type DeliverBatch } from './deliver-batch.ts';
import { observeRelay } from './observe-relay.ts';
import { outboxLimits as limits } from './outbox-limits.ts';
import type { OutboxLedger } from './outbox-ledger.ts';
import type { ClaimedMessage } from './outbox-message.ts';
import type { LaneBatch, LaneMessage } from './outbox-streams.ts';
import { createRelayLanes, type RelayLane } from './relay-lanes.ts';
import { runUntilStopped } from './run-until-stopped.ts';

export interface OutboxStreamRelayOptions {
  readonly ledger: OutboxLedger;
  /** Those that were declared with `ledger.streams.declare`. */
  readonly integrationTypes: readonly string[];
  readonly deliverBatch: DeliverBatch;
  /** Batches that are sent at once, each of another lane. Default: 16. */
  readonly concurrency?: number;
  /** Default: 500. */
  readonly batchSize?: number;
  /** Payloads and headers of a batch; a message that is larger goes alone. Default: 1 MiB. */
  readonly batchBytes?: number;
  /** After which others take over the lanes of a process that died. Default: 60 s. */
  readonly leaseMs?: number;
  /** No batch takes longer. Default: half of the lease. */
  readonly timeoutMs?: number;
  /** When it is stopped, what is being sent may take so long, and is cut off then. Default: 10 s. */
  readonly drainMs?: number;
  /** The backstop of notifications. Default: 1 s. */
  readonly tickIntervalMs?: number;
  /** Default: min(60 s · 2^(n−1), 15 min) + 0..10 s. */
  readonly schedule?: RetrySchedule;
  /** New at every start. */
  readonly workerId?: string;
  readonly clock?: Clock;
  readonly observer?: Observer;
  /** After a message was written down as dead: for a topic of dead letters. A failure is logged. */
  readonly onDead?: (message: ClaimedMessage, error: string) => void | Promise<void>;
}

export interface OutboxStreamRelay extends Lifecycle {
  /** Lanes that it owns right now. */
  readonly lanes: number;
  /** Messages that are being sent right now. */
  readonly inFlight: number;
}

const outageMs = { first: 100, max: 5_000 };

/** One exchange brings about so many full batches at most. */
const exchangeBatches = 4;

/** While somebody has enqueued and not committed, nobody tells of the commit. */
const heldBackPollMs = 10;

const quickMs = 5;

/**
 * Sends the messages of destinations in stream mode, until it is stopped. Several relays share the lanes.
 *
 * @example
 * import { postgresOutboxLedger } from 'millrace/adapters/postgres';
 * import { createOutboxStreamRelay } from 'millrace/outbox';
 *
 * await using ledger = await postgresOutboxLedger('postgres://localhost/shop');
 * await ledger.streams.declare('kafka:payments');
 * await using relay = createOutboxStreamRelay({
 *   ledger,
 *   integrationTypes: ['kafka:payments'],
 *   deliverBatch: async (messages, { idempotencyKeys, signal }) => {
 *     const body = JSON.stringify(messages.map(({ payload }, at) => [idempotencyKeys[at], payload]));
 *     await fetch('https://broker.example/payments', { method: 'POST', body, signal });
 *   },
 * });
 * await relay.start();
 */
export function createOutboxStreamRelay(options: OutboxStreamRelayOptions): OutboxStreamRelay {
  const { ledger, integrationTypes, deliverBatch, schedule, onDead, clock = systemClock } = options;
  const concurrency = options.concurrency ?? limits.streamLanesDefault;
  const batchSize = options.batchSize ?? limits.streamBatchDefault;
  const bytesMax = options.batchBytes ?? limits.streamBatchBytesDefault;
  const leaseMs = options.leaseMs ?? limits.leaseMsDefault;
  const timeoutMs = options.timeoutMs ?? Math.floor(leaseMs / 2);
  const drainMs = options.drainMs ?? limits.drainMsDefault;
  const tickIntervalMs = options.tickIntervalMs ?? limits.tickIntervalMsDefault;
  const name = options.workerId ?? `stream-${process.pid}-${randomUUID().slice(0, 8)}`;
  const tell = observeRelay(safeObserver(options.observer ?? silentObserver), onDead);
  checkNumbers({ concurrency, batchSize, bytesMax, leaseMs, timeoutMs, drainMs, tickIntervalMs });
  checkTypes(integrationTypes);

  const lanes = createRelayLanes();
  let starts = 0;

  async function run(stopping: AbortSignal): Promise<void> {
    starts += 1;
    // Owners are told apart by their names: one that starts again is another one.
    const workerId = starts === 1 ? name : `${name}-${starts}`;
    const cutOff = new AbortController();
    const changed = createWaiters();
    const sending = new Set<Promise<void>>();
    const waiting: { readonly lane: RelayLane; readonly batch: LaneBatch }[] = [];
    let beatAtMs = Number.NEGATIVE_INFINITY;
    let waitMs = outageMs.first;
    /** How many messages a lane had, the last time that some were asked. */
    let perLane = batchSize;
    /** There is more than one exchange brings: the next is asked for while this one's is being sent. */
    let isBehind = false;
    let beside: Promise<void> | undefined;

    async function beat(): Promise<void> {
      const askedAtMs = clock.now();
      const giveBack = lanes.takeSurplus();
      const owned = await ledger.streams.acquire({
        workerId,
        integrationTypes,
        leaseMs,
        giveBack,
      });
      lanes.own(owned, askedAtMs);
      beatAtMs = askedAtMs;
    }

    function startSome(): void {
      while (sending.size < concurrency && !stopping.aborted) {
        const next = waiting.shift();
        if (next === undefined) return;
        const sent = send(next.lane, next.batch).finally(() => {
          sending.delete(sent);
          startSome();
          changed.wakeAll();
        });
        sending.add(sent);
      }
    }

    async function send(lane: RelayLane, batch: LaneBatch): Promise<void> {
      const { integrationType } = batch.claim;
      const items = sendable(batch.items);
      const results = new Map<LaneMessage, DeliveryResult>();
      const [first] = items;
      if (first !== undefined && killsItsProcess(first.message)) {
        const error = `started ${first.message.starts} times without an end: it seems to end its process`;
        // Alone: the others of the batch come back with the next one.
        const only = { ...batch, items: batch.items.slice(0, batch.items.indexOf(first) + 1) };
        const dead = new Map<LaneMessage, DeliveryResult>([[first, { kind: 'dead', error }]]);
        const context = { nowMs: clock.now(), failures: lane.failures, schedule };
        return lanes.finish(lane, only, decideBatch(only, dead, context));
      }
      // A send that could outlive its lease would meet the next owner's.
      if (clock.now() + timeoutMs > lane.leasedAtMs + leaseMs) {
        return lanes.finish(lane, batch, undecided(lane, batch));
      }
      if (items.length > 0) {
        const startMs = clock.now();
        tell.start(batch, items.length);
        const attempt = {
          deliverBatch,
          integrationType,
          clock,
          timeoutMs,
          stopping: cutOff.signal,
        };
        const messages = items.map(({ message }) => message);
        const answers = await attemptBatch(messages, attempt);
        for (const [at, item] of items.entries()) {
          const answer = answers[at];
          if (answer !== undefined) results.set(item, answer);
        }
        tell.end(batch, clock.now() - startMs);
      }
      const context = { nowMs: clock.now(), failures: lane.failures, schedule };
      lanes.finish(lane, batch, decideBatch(batch, results, context));
    }

    /** Settles what is done, and asks all lanes that are free for more. */
    async function exchange(mayFetch: boolean): Promise<number> {
      const finished = lanes.takeFinished();
      const askedAtMs = clock.now();
      const continued = finished.filter(({ decision }) => decision.holdMs === 0);
      const all = mayFetch ? [...lanes.free(askedAtMs), ...continued.map(({ lane }) => lane)] : [];
      // All lanes, when they have little; of many full ones a few: they are sent while others are read.
      const free = all.slice(0, Math.ceil((exchangeBatches * batchSize) / perLane));
      if (finished.length === 0 && free.length === 0) {
        isBehind = false;
        return tickIntervalMs;
      }
      lanes.ask(free);
      const asked = free.map((lane) => ({
        claim: lane.claim,
        // After a failure of everything, a single one finds out whether the destination is back.
        limit: lane.failures > 0 ? 1 : batchSize,
      }));
      try {
        const answer = await ledger.streams.exchange(
          finished.map(({ decision }) => decision.outcome),
          { lanes: asked, bytesMax, leaseMs },
        );
        for (const [at, each] of finished.entries()) {
          const isSettled = answer.settled[at] === 'settled';
          tell.settled(each.batch, each.decision.outcome, isSettled);
          lanes.settle(each, isSettled, clock.now());
        }
        let count = 0;
        for (const batch of answer.batches) {
          count += batch.items.length;
          const lane = lanes.giveOut(batch, askedAtMs);
          if (lane !== undefined) waiting.push({ lane, batch });
        }
        if (free.length > 0) perLane = count / free.length;
        isBehind = free.length < all.length || count >= batchSize;
        startSome();
        tell.exchanged(answer.batches, clock.now() - askedAtMs);
        const dueInMs = (answer.nextDueAt?.getTime() ?? Number.POSITIVE_INFINITY) - clock.now();
        return Math.min(answer.isHeldBack ? heldBackPollMs : tickIntervalMs, dueInMs);
      } catch (error) {
        lanes.putBack(finished);
        throw error;
      } finally {
        lanes.answered(free);
      }
    }

    /** A second hand, for as long as one is not enough. */
    async function exchangeBeside(): Promise<void> {
      try {
        while (isBehind && !stopping.aborted && (lanes.finished > 0 || hasFree())) {
          await exchange(true);
          // What was just given out is sent, and what is sent quickly is settled together.
          await nextTurn();
        }
      } catch (error) {
        isBehind = false;
        tell.failed(error);
      }
    }

    const hasFree = (): boolean => lanes.free(clock.now()).length > 0;

    async function pump(): Promise<void> {
      while (!stopping.aborted) {
        try {
          const beatMs = Math.min(tickIntervalMs, Math.floor(leaseMs / 3));
          if (clock.now() - beatAtMs >= beatMs) await beat();
          if (isBehind && beside === undefined) {
            beside = exchangeBeside().finally(() => {
              beside = undefined;
              changed.wakeAll();
            });
          }
          const pollMs = await exchange(true);
          waitMs = outageMs.first;
          // What is quickly sent is settled before anybody has to be told that we sleep.
          if (sending.size > 0) {
            await untilChanged((signal) => clock.sleep(quickMs, signal));
          }
          if (lanes.finished > 0 || (isBehind && hasFree())) continue;
          const restMs = Math.max(1, Math.min(pollMs, beatMs, lanes.holdMs(clock.now())));
          await untilChanged((signal) => ledger.whenDue(restMs, signal));
        } catch (error) {
          if (hasCode(error, 'ABORTED') && stopping.aborted) return;
          tell.failed(error);
          await clock.sleep(waitMs, stopping).catch(() => undefined);
          waitMs = Math.min(waitMs * 2, outageMs.max);
        }
      }
    }

    /** Until a batch came to its end, or the other wait did. */
    async function untilChanged(wait: (signal: AbortSignal) => Promise<void>): Promise<void> {
      const woken = new AbortController();
      const signal = AbortSignal.any([stopping, woken.signal]);
      const done = changed.wait(signal, () => lanes.finished > 0);
      try {
        await Promise.race([wait(signal), done]);
      } finally {
        woken.abort();
        await done.catch(() => undefined);
      }
    }

    async function leave(): Promise<void> {
      const patience = new AbortController();
      const impatient = clock.sleep(drainMs, patience.signal).then(
        () => cutOff.abort(),
        () => undefined,
      );
      // What has not begun is not begun any more: whoever owns the lane next finds it.
      for (const { lane, batch } of waiting.splice(0))
        lanes.finish(lane, batch, undecided(lane, batch));
      await beside;
      await Promise.allSettled(sending);
      patience.abort();
      await impatient;
      await exchange(false);
      const giveBack = lanes.takeAll();
      await ledger.streams.acquire({ workerId, integrationTypes: [], leaseMs, giveBack });
    }

    await pump();
    // The leases end by themselves, and what was sent is sent again under the same key.
    await leave().catch((error: unknown) => tell.failed(error));
    lanes.takeAll();
  }

  const lifecycle = runUntilStopped(run, async () => {
    // Refused now, by an error, and not over and over in the log.
    if (!ledger.capabilities.streamMode) await ledger.streams.declared();
  });
  return {
    get state() {
      return lifecycle.state;
    },
    get lanes() {
      return lanes.owned;
    },
    get inFlight() {
      return lanes.inFlight;
    },
    start: () => lifecycle.start(),
    stop: () => lifecycle.stop(),
    [Symbol.asyncDispose]: () => lifecycle.stop(),
  };
}

function undecided({ failures }: RelayLane, { claim, number }: LaneBatch): BatchDecision {
  return { outcome: { claim, number, changes: [] }, failures, holdMs: 0 };
}
