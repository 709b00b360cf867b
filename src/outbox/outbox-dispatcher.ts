// From the ledger to the outside: claims, sends with bounded concurrency, and settles a batch in the round
// trip that claims the next.

import { randomUUID } from 'node:crypto';
import { createCallDeadlines } from '../foundation/call-deadlines.ts';
import { systemClock, type Clock } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';
import type { Lifecycle } from '../foundation/lifecycle.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import { nextTurn } from '../store/next-turn.ts';
import { safeObserver } from '../subscriptions/safe-observer.ts';
import { attemptDelivery } from './attempt-delivery.ts';
import { checkNumbers } from './check-outbox.ts';
import { createSendRate, firstPace, nextPace } from './claim-pace.ts';
import type { RetrySchedule } from './decide-delivery.ts';
import type { Deliver } from './deliver-message.ts';
import { createDispatchQueue, type Dispatched } from './dispatch-queue.ts';
import { createIdleLooks } from './idle-looks.ts';
import { logOutbox } from './observe-outbox.ts';
import { outboxLimits as limits } from './outbox-limits.ts';
import type { OutboxLedger } from './outbox-ledger.ts';
import type { ClaimedMessage } from './outbox-message.ts';
import { tellOutcome, whenTold, type OnDead, type SettledMessage } from './tell-outcome.ts';
import { runUntilStopped } from './run-until-stopped.ts';

export interface OutboxDispatcherOptions {
  readonly ledger: OutboxLedger;
  readonly deliver: Deliver;
  /** Messages that are sent at once. Default: 50. */
  readonly concurrency?: number;
  /** Messages that are claimed at once, at most: no more than are sent in a moment. Default: 100. */
  readonly batchSize?: number;
  /** After which others take over what a process that died had claimed. Default: 60 s. */
  readonly leaseMs?: number;
  /** No attempt takes longer. Default: half of the lease. */
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
  readonly onDead?: OnDead;
}

export interface OutboxDispatcher extends Lifecycle {
  /** Being sent right now. */
  readonly inFlight: number;
  /** Resolves when it has looked from now on, and found nothing due, with everything settled. */
  whenIdle(signal?: AbortSignal): Promise<void>;
}

const source = 'outbox-dispatcher';
const outageMs = { first: 100, max: 5_000 };

/** So many batches may wait to be written down: their leases go on. */
const unsettledBatchesMax = 4;

/**
 * Sends what the ledger holds, until it is stopped. Stopping lets what is being sent come to its end, and
 * gives the rest back at once.
 *
 * @example
 * import { createOutboxDispatcher, memoryOutboxLedger } from 'millrace/outbox';
 *
 * await using dispatcher = createOutboxDispatcher({
 *   ledger: memoryOutboxLedger(),
 *   deliver: async ({ payload }, { idempotencyKey, signal }) => {
 *     const answer = await fetch('https://partner.example/hook', {
 *       method: 'POST',
 *       headers: { 'idempotency-key': idempotencyKey },
 *       body: JSON.stringify(payload),
 *       signal,
 *     });
 *     return answer.ok ? { kind: 'sent' } : { kind: 'retry', error: `HTTP ${answer.status}` };
 *   },
 * });
 * await dispatcher.start();
 */
export function createOutboxDispatcher(options: OutboxDispatcherOptions): OutboxDispatcher {
  const { ledger, deliver, schedule, onDead, clock = systemClock } = options;
  const concurrency = options.concurrency ?? limits.concurrencyDefault;
  const batchSize = options.batchSize ?? limits.claimBatchDefault;
  const leaseMs = options.leaseMs ?? limits.leaseMsDefault;
  const timeoutMs = options.timeoutMs ?? Math.floor(leaseMs / 2);
  const drainMs = options.drainMs ?? limits.drainMsDefault;
  const tickIntervalMs = options.tickIntervalMs ?? limits.tickIntervalMsDefault;
  const workerId = options.workerId ?? `outbox-${process.pid}-${randomUUID().slice(0, 8)}`;
  const observer = safeObserver(options.observer ?? silentObserver);
  checkNumbers({ concurrency, batchSize, leaseMs, timeoutMs, drainMs, tickIntervalMs });

  let inFlight = 0;
  const looks = createIdleLooks();

  async function run(stopping: AbortSignal): Promise<void> {
    const cutOff = new AbortController();
    const queue = createDispatchQueue();
    const telling = new Set<Promise<void>>();
    const attempt = {
      deliver,
      schedule,
      clock,
      observer,
      source,
      operation: 'OUTBOX_DIRECT_SEND',
      timeoutMs,
      leaseMs,
      deadlines: createCallDeadlines(clock, timeoutMs, cutOff.signal),
    } as const;
    const rate = createSendRate(clock.now());
    let pace = firstPace({ batchSize, concurrency });
    /** Sending is faster than claiming, and there is more than a claim brings. */
    let isBehind = false;
    /** Seen while the last claim was made, and not only because nothing had been claimed before. */
    let isFast = false;
    let settling: { readonly count: number; readonly done: Promise<void> } | undefined;
    /** The second hand, its claim under way, and how many messages both hands have asked for. */
    let beside: Promise<void> | undefined;
    let besideClaim: Promise<unknown> | undefined;
    let asked = 0;
    let sentTotal = 0;
    let waitMs = outageMs.first;
    /** For whoever waits until nothing is being sent. */
    let whenSent: PromiseWithResolvers<void> | undefined;

    function startSome(): void {
      for (;;) {
        if (stopping.aborted || inFlight >= concurrency) return;
        const next = queue.next();
        if (next === undefined) return;
        inFlight += 1;
        void send(next);
      }
    }

    async function send({ message, claimedAtMs }: Dispatched): Promise<void> {
      try {
        queue.settle(message, await attemptDelivery(message, claimedAtMs, attempt));
      } finally {
        inFlight -= 1;
        sentTotal += 1;
        rate.sent();
        startSome();
        if (inFlight === 0) whenSent?.resolve();
      }
    }

    async function exchange(taken: readonly SettledMessage[], limit: number): Promise<number> {
      const claimedAtMs = clock.now();
      const outcomes = taken.map(({ outcome }) => outcome);
      const sentBefore = sentTotal;
      asked += limit;
      try {
        const answer =
          limit === 0
            ? { settled: await ledger.settle(outcomes), claimed: [] }
            : await ledger.exchange(outcomes, { workerId, limit, leaseMs });
        for (const [at, each] of taken.entries()) {
          tellOutcome(each, answer.settled[at], { source, observer, onDead, telling });
        }
        if (limit > 0) claimed(answer.claimed, { claimedAtMs, limit, sentBefore });
        return answer.claimed.length;
      } catch (error) {
        queue.putBack(taken);
        throw error;
      } finally {
        asked -= limit;
      }
    }

    function claimed(
      messages: readonly ClaimedMessage[],
      asking: {
        readonly claimedAtMs: number;
        readonly limit: number;
        readonly sentBefore: number;
      },
    ): void {
      const { claimedAtMs, limit, sentBefore } = asking;
      const nowMs = clock.now();
      const isEmpty = queue.waiting === 0 && inFlight < concurrency;
      // Two hands bring a claim before the last one is gone: they are needed while it is gone by the next.
      const sentMeanwhile = sentTotal - sentBefore;
      const isHungry = isEmpty || (isBehind && queue.waiting <= 2 * sentMeanwhile);
      isBehind = isHungry && messages.length >= limit;
      isFast = isBehind && sentMeanwhile > 0;
      pace = nextPace(pace, { batchSize, concurrency, isHungry, sentPerMs: rate.perMs(nowMs) });
      queue.add(messages.map((message) => ({ message, claimedAtMs })));
      if (messages.length > 0) {
        observer.count?.('outbox_claimed_total', {}, messages.length);
        const what = { source, operation: 'OUTBOX_CLAIM', phase: 'SUCCESS' } as const;
        logOutbox(observer, what, {}, { workerId, claimed: messages.length });
      }
      observer.record?.('outbox_claim_duration_ms', nowMs - claimedAtMs, {});
    }

    /** What was sent is written down beside the claims, which need not wait for the disk. */
    function settleBeside(): void {
      if (settling !== undefined || queue.settled === 0) return;
      const taken = queue.takeSettled();
      const done = exchange(taken, 0).then(
        () => undefined,
        (error: unknown) => {
          // They were put back, and go with the next claim.
          isBehind = false;
          isFast = false;
          failed(error);
        },
      );
      settling = { count: taken.length, done: done.finally(() => (settling = undefined)) };
    }

    /** A second hand, for as long as one is not enough: what one claim brings is read while the other is made. */
    async function claimBeside(): Promise<void> {
      try {
        while (isFast && !stopping.aborted) {
          const limit = room();
          if (limit === 0) return;
          settleBeside();
          besideClaim = exchange([], limit);
          await besideClaim;
          startSome();
        }
      } catch (error) {
        isBehind = false;
        isFast = false;
        failed(error);
      } finally {
        besideClaim = undefined;
      }
    }

    /** So many as are sent in a moment, and all that can begin at once. */
    function room(): number {
      const unsettled = settling === undefined ? 0 : settling.count + queue.settled;
      const coming = queue.waiting + asked;
      if (coming >= pace.enough || unsettled + asked >= unsettledBatchesMax * batchSize) return 0;
      return Math.min(batchSize, Math.max(pace.limit, concurrency - inFlight - coming));
    }

    function failed(err: unknown): void {
      const what = { source, operation: 'OUTBOX_CLAIM', phase: 'ERROR' } as const;
      logOutbox(observer, what, {}, { err });
    }

    async function pump(): Promise<void> {
      while (!stopping.aborted) {
        try {
          const limit = room();
          if (limit === 0) {
            if (settling !== undefined) {
              await settling.done;
              continue;
            }
            if (besideClaim !== undefined) {
              // It tells of its failure itself.
              await besideClaim.catch(() => undefined);
              continue;
            }
            if (queue.settled === 0) await queue.whenChanged(stopping);
            // What ends together is written down together, and often makes room for a claim.
            await nextTurn();
            if (queue.settled === 0 || room() > 0) continue;
          }
          // Behind a message that was settled, the next one of its key may have become free.
          const frees = queue.freesOthers();
          const look = looks.begin();
          const isBeside = isBehind && limit > 0;
          const isQuiet =
            telling.size === 0 && settling === undefined && beside === undefined && !isBeside;
          if (isBeside) settleBeside();
          const claiming = exchange(isBeside ? [] : queue.takeSettled(), limit);
          if (isFast) beside ??= claimBeside().finally(() => (beside = undefined));
          const count = await claiming;
          waitMs = outageMs.first;
          startSome();
          // Of few, what is quickly sent is written down by the look that finds no more.
          if (count > 0 && count < limit) await nextTurn();
          if (count > 0 || limit === 0 || frees || queue.settled > 0) continue;
          if (settling !== undefined || beside !== undefined) {
            await (settling?.done ?? beside);
            continue;
          }
          // What was told meanwhile may have enqueued something that this look could not see.
          if (!isQuiet && telling.size === 0) continue;
          // No await before the sleep: what is enqueued in between would not wake it.
          if (inFlight + queue.waiting + telling.size === 0) looks.wasIdle(look);
          await sleep();
        } catch (error) {
          if (hasCode(error, 'ABORTED') && stopping.aborted) return;
          failed(error);
          await clock.sleep(waitMs, stopping).catch(() => undefined);
          waitMs = Math.min(waitMs * 2, outageMs.max);
        }
      }
    }

    /** Until something was enqueued, or sent, or becomes due. */
    async function sleep(): Promise<void> {
      const woken = new AbortController();
      const signal = AbortSignal.any([stopping, woken.signal]);
      const pollMs = Math.max(1, Math.min(tickIntervalMs, queue.dueInMs(clock.now())));
      const changed = queue.whenChanged(signal);
      try {
        await Promise.race([ledger.whenDue(pollMs, signal), changed]);
      } finally {
        woken.abort('over');
        await changed.catch(() => undefined);
      }
    }

    await pump();
    await beside;
    queue.releaseWaiting();
    whenSent = Promise.withResolvers();
    if (inFlight === 0) whenSent.resolve();
    const patience = new AbortController();
    const impatient = clock.sleep(drainMs, patience.signal).then(
      () => cutOff.abort(),
      () => undefined,
    );
    await whenSent.promise;
    patience.abort();
    await impatient;
    await settling?.done;
    // The leases end by themselves, and what was sent is sent again under the same key.
    if (queue.settled > 0) await exchange(queue.takeSettled(), 0).catch(failed);
    await whenTold(telling, { clock, drainMs });
  }

  const lifecycle = runUntilStopped(run);
  return {
    get state() {
      return lifecycle.state;
    },
    get inFlight() {
      return inFlight;
    },
    whenIdle: (signal = new AbortController().signal) => looks.when(signal),
    start: () => lifecycle.start(),
    stop: () => lifecycle.stop(),
    [Symbol.asyncDispose]: () => lifecycle.stop(),
  };
}
