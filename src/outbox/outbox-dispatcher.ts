// From the ledger to the destinations: claims messages, sends them with bounded concurrency, and stores the outcomes
// in batches. `claimLoop` runs it; this file has the calls of the ledger.

import { createCallDeadlines } from '../foundation/async/call-deadlines.ts';
import { createWaiters, waitForFirst } from '../foundation/async/waiters.ts';
import { runUntilStopped, withLifecycle, type Lifecycle } from '../foundation/lifecycle.ts';
import {
  claimLoop,
  type ClaimedItems,
  type ClaimLoop,
  type ClaimLoopOptions,
} from '../loops/claim-loop.ts';
import type { ClaimLoad } from '../loops/next-claim-step.ts';
import { renewClaims } from '../loops/renew-claims.ts';
import { attemptDelivery, attemptWithinLease, type AttemptContext } from './attempt-delivery.ts';
import { checkNumbers } from './check-outbox.ts';
import { claimRoom, createSendRate, firstPace, nextPace, type ClaimPace } from './claim-pace.ts';
import { createDueTimes } from './due-times.ts';
import { logOutbox } from './observe-outbox.ts';
import { outboxLimits as limits } from './outbox-limits.ts';
import type { OutboxOutcome } from './outbox-ledger.ts';
import type { ClaimedMessage, OutboxClaim } from './outbox-message.ts';
import { reportOutcome, whenReported, type SettledMessage } from './report-outcome.ts';
import {
  claimingSettings,
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
  /**
   * Sends up to `limit` due messages, now, also while the dispatcher is stopped: for a schedule of your own. Resolves
   * with their number when all outcomes are stored.
   */
  tick(limit?: number): Promise<number>;
}

const source = 'outbox-dispatcher';

/**
 * Sends the messages of the ledger until it is stopped. When it stops, running attempts may finish, and the other
 * claimed messages are released immediately.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { createOutboxDispatcher } from 'millrace/outbox';
 *
 * await using dispatcher = createOutboxDispatcher({
 *   ledger: openMemory().outbox,
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
  let loop: ClaimLoop | undefined;
  const { clock, deliver, schedule, observer } = settings;
  const newAttempt = (): AttemptContext => ({
    deliver,
    schedule,
    clock,
    observer,
    timeoutMs,
    source,
    operation: 'OUTBOX_DIRECT_SEND',
    deadlines: createCallDeadlines(clock),
  });

  const lifecycle = runUntilStopped(async (stopping) => {
    const attempt = newAttempt();
    const calls = createLedgerCalls(settings, idlePolls, () => current.load);
    const current = claimLoop<ClaimedMessage, OutboxOutcome>(
      {
        ...calls,
        clock,
        concurrency,
        leaseMs,
        drainMs,
        bytesMax: limits.waitingBytesMax,
        bytesOf: ({ payload }) => JSON.stringify(payload).length,
        run: (message, onCancel) => attemptDelivery(message, attempt, onCancel),
        release: ({ id, token }) => ({ kind: 'released', claim: { id, token } }),
      },
      stopping,
    );
    loop = current;
    await current.done;
    await whenReported(calls.reports, { clock, drainMs });
  });

  return withLifecycle(lifecycle, {
    get inFlight() {
      return loop?.load.running ?? 0;
    },
    tick: (limit = batchSize) => sendDue(limit, settings, newAttempt()),
    whenIdle: (signal = new AbortController().signal) => idlePolls.whenIdle(signal),
  });
}

/** Claims as many messages as can be sent at once, until `limit` were sent or none is due. */
async function sendDue(
  limit: number,
  settings: ReturnType<typeof claimingSettings> & ReturnType<typeof sendingSettings>,
  attempt: AttemptContext,
): Promise<number> {
  const { ledger, clock, observer, onDead, workerId, leaseMs, concurrency, drainMs } = settings;
  checkNumbers({ limit });
  const reports = new Set<Promise<void>>();
  const ended = new AbortController();
  const extend = (claims: readonly OutboxClaim[]) => ledger.extend(claims, { leaseMs });
  const renewal = renewClaims({ clock, leaseMs, renew: extend, signal: ended.signal });
  let sent = 0;
  try {
    while (sent < limit) {
      const leasedAtMs = clock.now();
      const room = Math.min(concurrency, limit - sent);
      const claimed = await ledger.claimDueBatch(workerId, room, { leaseMs });
      if (claimed.length === 0) break;
      reportClaim(claimed.length, settings);
      sent += claimed.length;
      await allSettled(
        claimed.map(async (item) => {
          const outcome = await attemptWithinLease(item, attempt, { renewal, leasedAtMs });
          if (outcome === undefined) return;
          const [settled] = await ledger.settle([outcome]);
          reportOutcome({ item, outcome }, settled, { source, observer, onDead, reports });
        }),
      );
    }
  } finally {
    ended.abort();
  }
  await whenReported(reports, { clock, drainMs });
  return sent;
}

/** Waits for all, then rejects with the first error. */
async function allSettled(work: readonly Promise<void>[]): Promise<void> {
  await Promise.allSettled(work);
  await Promise.all(work);
}

function reportClaim(
  claimed: number,
  { observer, workerId }: Pick<ReturnType<typeof claimingSettings>, 'observer' | 'workerId'>,
): void {
  observer.count?.('outbox_claimed_total', {}, claimed);
  const what = { source, operation: 'OUTBOX_CLAIM', phase: 'SUCCESS' } as const;
  logOutbox(observer, what, {}, { workerId, claimed });
}

type LoopOptions = ClaimLoopOptions<ClaimedMessage, OutboxOutcome>;
type LedgerCall = 'room' | 'claim' | 'settle' | 'renew' | 'wake' | 'onLost' | 'onRestored';

/** The calls of the ledger that the loop makes. */
function createLedgerCalls(
  settings: ReturnType<typeof claimingSettings> & ReturnType<typeof sendingSettings>,
  idlePolls: IdlePolls,
  load: () => ClaimLoad,
): Pick<LoopOptions, LedgerCall> & { readonly reports: ReadonlySet<Promise<void>> } {
  const { ledger, clock, observer, onDead, workerId, leaseMs, tickIntervalMs } = settings;
  const rate = createSendRate(clock.now());
  const dueTimes = createDueTimes();
  /** Running calls of `onDead`. */
  const reports = new Set<Promise<void>>();
  const changed = createWaiters();
  let isChanged = false;
  let pace: ClaimPace = firstPace(settings);

  /** A claim may find messages that the last one could not see. */
  function pollAgain(): void {
    isChanged = true;
    changed.wakeAll();
  }

  function isQuiet(): boolean {
    const { waiting, running, unsettled } = load();
    return waiting + running + unsettled + reports.size === 0;
  }

  async function claim(limit: number): Promise<ClaimedItems<ClaimedMessage>> {
    const leasedAtMs = clock.now();
    const poll = idlePolls.begin();
    const wasQuiet = isQuiet();
    isChanged = false;
    const items = await ledger.claimDueBatch(workerId, limit, { leaseMs });
    const nowMs = clock.now();
    pace = nextPace(pace, { ...load(), sentPerMs: rate.perMs(nowMs) }, settings);
    observer.record?.('outbox_claim_duration_ms', nowMs - leasedAtMs, {});
    if (items.length > 0) reportClaim(items.length, settings);
    else if (wasQuiet) idlePolls.foundNothing(poll);
    // An outcome or a report of a dead message that was stored during the poll may have made a message due.
    else if (isQuiet()) isChanged = true;
    return { items, leasedAtMs };
  }

  async function settle(ended: readonly SettledMessage[]): Promise<void> {
    const settled = await ledger.settle(ended.map(({ outcome }) => outcome));
    for (const [at, each] of ended.entries()) {
      rate.sent();
      dueTimes.add(each.outcome);
      reportOutcome(each, settled[at], { source, observer, onDead, reports });
    }
    // Another message of the key can be claimed now; a message that was not sent is due now or later.
    const isDue = ({ item, outcome }: SettledMessage): boolean =>
      item.orderingKey !== undefined || outcome.kind !== 'sent';
    if (idlePolls.isAwaited || ended.some(isDue)) pollAgain();
  }

  /** Until a message was enqueued, or may be due for another reason. */
  function wake(stopping: AbortSignal): Promise<void> {
    const pollMs = Math.max(1, Math.min(tickIntervalMs, dueTimes.nextInMs(clock.now())));
    return waitForFirst(stopping, [
      (signal) => ledger.whenDue(pollMs, signal),
      (signal) => changed.wait(signal, () => isChanged),
    ]);
  }

  idlePolls.onAwaited(pollAgain);
  return {
    reports,
    room: (now) => claimRoom(pace, now, settings),
    claim,
    settle,
    renew: (messages) => ledger.extend(messages, { leaseMs }),
    wake,
    onLost: (err) =>
      logOutbox(observer, { source, operation: 'OUTBOX_CLAIM', phase: 'ERROR' }, {}, { err }),
    onRestored: () =>
      logOutbox(observer, { source, operation: 'OUTBOX_CLAIM', phase: 'RESTORED' }, {}),
  };
}

interface IdlePolls {
  readonly isAwaited: boolean;
  /** The listener starts a poll. */
  onAwaited(listener: () => void): void;
  /** A poll of the ledger begins; returns its number. */
  begin(): number;
  /** The poll found no message, and no message is being sent. */
  foundNothing(poll: number): void;
  whenIdle(signal: AbortSignal): Promise<void>;
}

/** Callers of `whenIdle`: only a poll that began after their call counts. */
function createIdlePolls(): IdlePolls {
  const waiters = createWaiters();
  let onAwaited: () => void = () => undefined;
  let begun = 0;
  let idle = 0;
  return {
    get isAwaited() {
      return waiters.size > 0;
    },
    onAwaited: (listener) => void (onAwaited = listener),
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
      while (idle <= before) {
        const idleAgain = waiters.wait(signal, () => idle > before);
        onAwaited();
        await idleAgain;
      }
    },
  };
}
