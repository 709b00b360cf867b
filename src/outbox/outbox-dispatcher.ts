// From the ledger to the destinations: claims messages, sends them with bounded concurrency, and stores the
// outcomes of a batch in the round trip that claims the next one.

import { createCallDeadlines } from '../foundation/async/call-deadlines.ts';
import { hasCode } from '../foundation/error.ts';
import { runUntilStopped, withLifecycle, type Lifecycle } from '../foundation/lifecycle.ts';
import { nextTurn } from '../foundation/async/next-turn.ts';
import { createWaiters } from '../foundation/async/waiters.ts';
import { attemptDelivery } from './attempt-delivery.ts';
import { checkNumbers } from './check-outbox.ts';
import {
  claimRoom,
  createSendRate,
  firstPace,
  nextPace,
  paceAfterFailure,
  type ClaimPace,
} from './claim-pace.ts';
import {
  createDispatchQueue,
  createSenders,
  type DispatchQueue,
  type Senders,
} from './dispatch-queue.ts';
import { logOutbox } from './observe-outbox.ts';
import type { ClaimedMessage } from './outbox-message.ts';
import { drained, reportOutcome, whenReported, type SettledMessage } from './report-outcome.ts';
import {
  claimingSettings,
  outageMs,
  sendingSettings,
  type ClaimingOptions,
  type SendingOptions,
} from './sending-options.ts';

export interface OutboxDispatcherOptions extends ClaimingOptions, SendingOptions {}

export interface OutboxDispatcher extends Lifecycle {
  /** Messages that are being sent. */
  readonly inFlight: number;
  /** Resolves when a poll that began after this call found no due message, and all outcomes are stored. */
  whenIdle(signal?: AbortSignal): Promise<void>;
}

const source = 'outbox-dispatcher';

/**
 * Sends the messages of the ledger until it is stopped. When it stops, running attempts may finish, and the other
 * claimed messages are released immediately.
 *
 * @example
 * import { createOutboxDispatcher, memoryOutboxLedger } from 'millrace/outbox';
 *
 * await using dispatcher = createOutboxDispatcher({
 *   ledger: memoryOutboxLedger(),
 *   deliver: async ({ payload }, { idempotencyKey, signal }) => {
 *     const response = await fetch('https://partner.example/hook', {
 *       method: 'POST',
 *       headers: { 'idempotency-key': idempotencyKey },
 *       body: JSON.stringify(payload),
 *       signal,
 *     });
 *     return response.ok ? { kind: 'sent' } : { kind: 'retry', error: `HTTP ${response.status}` };
 *   },
 * });
 * await dispatcher.start();
 */
export function createOutboxDispatcher(options: OutboxDispatcherOptions): OutboxDispatcher {
  const settings = { ...claimingSettings(options), ...sendingSettings(options) };
  const { concurrency, batchSize, leaseMs, timeoutMs, drainMs, tickIntervalMs } = settings;
  checkNumbers({ concurrency, batchSize, leaseMs, timeoutMs, drainMs, tickIntervalMs });
  const idlePolls = createIdlePolls();
  let senders: Senders | undefined;

  const lifecycle = runUntilStopped(async (stopping) => {
    const { clock, deliver, schedule, observer } = settings;
    const cancelling = new AbortController();
    const queue = createDispatchQueue();
    const attempt = {
      deliver,
      schedule,
      clock,
      observer,
      timeoutMs,
      leaseMs,
      source,
      operation: 'OUTBOX_DIRECT_SEND',
      deadlines: createCallDeadlines(clock, cancelling.signal),
    } as const;
    senders = createSenders(queue, {
      concurrency,
      stopping,
      send: ({ message, claimedAtMs }) => attemptDelivery(message, claimedAtMs, attempt),
    });
    const ledgerCalls = createLedgerCalls(settings, { queue, senders, stopping });
    await dispatch(settings, { queue, senders, ledgerCalls, idlePolls, stopping });
    await ledgerCalls.whenSecondClaimEnded();
    queue.releaseWaiting();
    await drained(senders.whenAllSent(), { clock, drainMs, cancelling });
    await ledgerCalls.storeRest();
    await whenReported(ledgerCalls.reports, { clock, drainMs });
  });

  return withLifecycle(lifecycle, {
    get inFlight() {
      return senders?.inFlight ?? 0;
    },
    whenIdle: (signal = new AbortController().signal) => idlePolls.whenIdle(signal),
  });
}

type Settings = ReturnType<typeof claimingSettings> & ReturnType<typeof sendingSettings>;

interface Parts {
  readonly queue: DispatchQueue;
  readonly senders: Senders;
  readonly stopping: AbortSignal;
}

/** Claims, and stores outcomes, until it is stopped. */
async function dispatch(
  { ledger, clock, tickIntervalMs }: Settings,
  parts: Parts & { readonly ledgerCalls: LedgerCalls; readonly idlePolls: IdlePolls },
): Promise<void> {
  const { queue, senders, ledgerCalls, idlePolls, stopping } = parts;
  const { reports } = ledgerCalls;
  let retryMs: number = outageMs.first;

  async function step(): Promise<void> {
    const limit = ledgerCalls.room();
    if (limit === 0) {
      if (await ledgerCalls.hasAwaitedOther()) return;
      if (queue.settled === 0) await queue.whenChanged(stopping);
      // Outcomes of the same turn are stored together, and often leave room for a claim.
      await nextTurn();
      if (queue.settled === 0 || ledgerCalls.room() > 0) return;
    }
    // An outcome may let the next message of its ordering key be claimed.
    const freesOrderingKey = queue.freesOrderingKey();
    const poll = idlePolls.begin();
    const wasQuiet = reports.size === 0 && ledgerCalls.isQuiet;
    const claimed = await ledgerCalls.claim(limit);
    retryMs = outageMs.first;
    senders.startNext();
    // After a small claim: what is sent within a turn is stored by the poll that finds no more messages.
    if (claimed > 0 && claimed < limit) await nextTurn();
    if (claimed > 0 || limit === 0 || freesOrderingKey || queue.settled > 0) return;
    if (await ledgerCalls.hasAwaitedBackground()) return;
    // A report that ended during the claim may have enqueued a message that the claim could not see.
    if (!wasQuiet && reports.size === 0) return;
    // No await before the sleep: a message that is enqueued in between would not wake it.
    if (senders.inFlight + queue.waiting + reports.size === 0) idlePolls.foundNothing(poll);
    await sleep();
  }

  /** Until a message was enqueued, sent, or becomes due. */
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

  while (!stopping.aborted) {
    try {
      await step();
    } catch (error) {
      if (hasCode(error, 'ABORTED') && stopping.aborted) return;
      ledgerCalls.reportFailure(error);
      await clock.sleep(retryMs, stopping).catch(() => undefined);
      retryMs = Math.min(retryMs * 2, outageMs.max);
    }
  }
}

interface LedgerCalls {
  /** Running calls of `onDead`. */
  readonly reports: ReadonlySet<Promise<void>>;
  /** No other round trip is running, and the next claim stores the outcomes itself. */
  readonly isQuiet: boolean;
  /** How many messages may be claimed now. */
  room(): number;
  /** Stores the outcomes and claims up to `limit` messages. Returns how many were claimed. */
  claim(limit: number): Promise<number>;
  /** Waits for a round trip that runs in addition to the dispatch loop. False: there is none. */
  hasAwaitedOther(): Promise<boolean>;
  /** Like `hasAwaitedOther`, but waits for the whole loop of the second claim. */
  hasAwaitedBackground(): Promise<boolean>;
  whenSecondClaimEnded(): Promise<void>;
  /** After the last attempt: stores the outcomes that are left. */
  storeRest(): Promise<void>;
  reportFailure(error: unknown): void;
}

/**
 * The round trips to the ledger. Normally there is one at a time, which stores outcomes and claims messages. While
 * claiming is slower than sending, outcomes are stored in the background, and a second claim runs concurrently.
 */
function createLedgerCalls(settings: Settings, { queue, senders, stopping }: Parts): LedgerCalls {
  const { ledger, clock, observer, onDead, workerId, leaseMs } = settings;
  const rate = createSendRate(clock.now());
  senders.onSent(() => rate.sent());
  const reports = new Set<Promise<void>>();
  let pace: ClaimPace = firstPace(settings);
  /** Messages that running claims may return. */
  let requested = 0;
  let settlement: { readonly count: number; readonly done: Promise<void> } | undefined;
  let secondLoop: Promise<void> | undefined;
  let secondClaim: Promise<unknown> | undefined;

  async function settleAndClaim(
    settled: readonly SettledMessage[],
    limit: number,
  ): Promise<number> {
    const claimedAtMs = clock.now();
    const outcomes = settled.map(({ outcome }) => outcome);
    const sentBefore = senders.sentTotal;
    requested += limit;
    try {
      const result =
        limit === 0
          ? { settled: await ledger.settle(outcomes), claimed: [] }
          : await ledger.settleAndClaim(outcomes, { workerId, limit, leaseMs });
      for (const [at, each] of settled.entries()) {
        reportOutcome(each, result.settled[at], { source, observer, onDead, reports });
      }
      if (limit > 0) {
        noteClaim(result.claimed, { claimedAtMs, limit, sent: senders.sentTotal - sentBefore });
      }
      return result.claimed.length;
    } catch (error) {
      queue.putBack(settled);
      throw error;
    } finally {
      requested -= limit;
    }
  }

  function noteClaim(
    messages: readonly ClaimedMessage[],
    claim: { readonly claimedAtMs: number; readonly limit: number; readonly sent: number },
  ): void {
    const { claimedAtMs, limit, sent } = claim;
    const nowMs = clock.now();
    const claimed = messages.length;
    const { inFlight } = senders;
    const sentPerMs = rate.perMs(nowMs);
    const report = { limit, claimed, waiting: queue.waiting, inFlight, sent, sentPerMs };
    pace = nextPace(pace, report, settings);
    queue.add(messages.map((message) => ({ message, claimedAtMs })));
    if (claimed > 0) {
      observer.count?.('outbox_claimed_total', {}, claimed);
      const what = { source, operation: 'OUTBOX_CLAIM', phase: 'SUCCESS' } as const;
      logOutbox(observer, what, {}, { workerId, claimed });
    }
    observer.record?.('outbox_claim_duration_ms', nowMs - claimedAtMs, {});
  }

  function room(): number {
    const unsettled = settlement === undefined ? 0 : settlement.count + queue.settled;
    const now = { waiting: queue.waiting, inFlight: senders.inFlight, requested, unsettled };
    return claimRoom(pace, now, settings);
  }

  /** Stores outcomes in the background, so that claims need not wait for the disk. */
  function settleInBackground(): void {
    if (settlement !== undefined || queue.settled === 0) return;
    const settled = queue.takeSettled();
    // After a failure the outcomes return to the queue, and the next claim stores them.
    const done = settleAndClaim(settled, 0).then(() => undefined, slowDown);
    settlement = { count: settled.length, done: done.finally(() => (settlement = undefined)) };
  }

  /** The messages of one claim are read while the other claim runs. */
  async function runSecondClaims(): Promise<void> {
    try {
      while (pace.needsSecondClaim && !stopping.aborted) {
        const limit = room();
        if (limit === 0) return;
        settleInBackground();
        secondClaim = settleAndClaim([], limit);
        await secondClaim;
        senders.startNext();
      }
    } catch (error) {
      slowDown(error);
    } finally {
      secondClaim = undefined;
    }
  }

  function slowDown(error: unknown): void {
    pace = paceAfterFailure(pace);
    reportFailure(error);
  }

  function reportFailure(err: unknown): void {
    logOutbox(observer, { source, operation: 'OUTBOX_CLAIM', phase: 'ERROR' }, {}, { err });
  }

  return {
    reports,
    get isQuiet() {
      return settlement === undefined && secondLoop === undefined && !pace.isBehind;
    },
    room,
    claim(limit) {
      const inBackground = pace.isBehind && limit > 0;
      if (inBackground) settleInBackground();
      const claiming = settleAndClaim(inBackground ? [] : queue.takeSettled(), limit);
      if (pace.needsSecondClaim) {
        secondLoop ??= runSecondClaims().finally(() => (secondLoop = undefined));
      }
      return claiming;
    },
    async hasAwaitedOther() {
      const other = settlement?.done ?? secondClaim;
      // The second claim reports its failure itself.
      await other?.catch(() => undefined);
      return other !== undefined;
    },
    async hasAwaitedBackground() {
      const other = settlement?.done ?? secondLoop;
      await other;
      return other !== undefined;
    },
    async whenSecondClaimEnded() {
      await secondLoop;
    },
    async storeRest() {
      await settlement?.done;
      // If this fails, the leases expire, and the messages are sent again with the same idempotency key.
      if (queue.settled > 0) await settleAndClaim(queue.takeSettled(), 0).catch(reportFailure);
    },
    reportFailure,
  };
}

interface IdlePolls {
  /** A poll of the ledger begins; returns its number. */
  begin(): number;
  /** The poll found no message, and no message is being sent. */
  foundNothing(poll: number): void;
  whenIdle(signal: AbortSignal): Promise<void>;
}

/** Callers of `whenIdle`: only a poll that began after their call counts. */
function createIdlePolls(): IdlePolls {
  const waiters = createWaiters();
  let begun = 0;
  let idle = 0;
  return {
    begin() {
      begun += 1;
      return begun;
    },
    foundNothing(poll) {
      idle = poll;
      waiters.wakeAll();
    },
    async whenIdle(signal) {
      const before = begun;
      while (idle <= before) await waiters.wait(signal, () => idle > before);
    },
  };
}
