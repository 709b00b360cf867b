// Strategy B, first half: claims due messages and puts a job for each into a queue. It sends no message, and
// settles only claims that no queue accepted.

import { slept } from '../foundation/async/slept.ts';
import { runUntilStopped, withLifecycle, type Lifecycle } from '../foundation/lifecycle.ts';
import { createWaiters, waitForFirst } from '../foundation/async/waiters.ts';
import { checkNumbers } from './check-outbox.ts';
import {
  claimOfJobId,
  deliveryQueueName,
  deliveryQueueSettings,
  toNewJob,
  type DeliveryQueueOptions,
} from './delivery-job.ts';
import { logOutbox } from './observe-outbox.ts';
import { outboxLimits as limits } from './outbox-limits.ts';
import type { OutboxOutcome } from './outbox-ledger.ts';
import type { ClaimedMessage, OutboxClaim } from './outbox-message.ts';
import { claimingSettings, outageMs, type ClaimingOptions } from './sending-options.ts';

/** The leases of waiting jobs are extended, three times per `leaseMs`. */
export interface QueueDispatcherOptions extends ClaimingOptions, DeliveryQueueOptions {
  /** Jobs that may wait in one queue; further messages stay in the ledger. Default: 250. */
  readonly waitingMax?: number | undefined;
}

export interface QueueDispatcher extends Lifecycle {
  /** Puts up to `limit` due messages into queues, now. Returns how many; the others stay in the ledger. */
  tick(limit?: number): Promise<number>;
}

const source = 'outbox-dispatcher';
/** The first delay before a full queue is tried again. */
const fullMs = 50;

/**
 * Puts due messages into queues until it is stopped; `createQueueWorker`, in this process or another one, sends
 * them. Jobs that wait in the queues stay there after a stop.
 *
 * @example
 * import { openSqlite } from 'millrace/engines/sqlite';
 * import { createQueueDispatcher } from 'millrace/outbox';
 *
 * await using db = await openSqlite('sqlite:.millrace/events.db');
 * await using dispatcher = createQueueDispatcher({ ledger: db.outbox, queue: db.queue });
 * await dispatcher.start();
 */
export function createQueueDispatcher(options: QueueDispatcherOptions): QueueDispatcher {
  const { queue, prefix, perTenant } = deliveryQueueSettings(options);
  const settings = claimingSettings(options);
  const { ledger, clock, observer, workerId, batchSize, leaseMs, tickIntervalMs } = settings;
  const waitingMax = options.waitingMax ?? limits.waitingMaxDefault;
  checkNumbers({ batchSize, leaseMs, waitingMax, tickIntervalMs });

  async function claim(limit: number): Promise<readonly ClaimedMessage[]> {
    const startMs = clock.now();
    const claimed = await ledger.claimDueBatch(workerId, limit, { leaseMs });
    observer.record?.('outbox_claim_duration_ms', clock.now() - startMs, {});
    if (claimed.length > 0) observer.count?.('outbox_claimed_total', {}, claimed.length);
    return claimed;
  }

  /** Returns the messages whose queues are full. If it rejects, some jobs may have been accepted. */
  async function offer(claimed: readonly ClaimedMessage[]): Promise<readonly ClaimedMessage[]> {
    const byQueue = Map.groupBy(claimed, (each) => deliveryQueueName(each, perTenant));
    const offers = [...byQueue].map(async ([name, messages]) => {
      const jobs = messages.map(toNewJob);
      const taken = await queue.add(`${prefix}:${name}`, jobs, { waitingMax });
      for (const message of messages.slice(0, taken)) reportJob(message);
      return messages.slice(taken);
    });
    await Promise.allSettled(offers);
    return (await Promise.all(offers)).flat();
  }

  function reportJob(message: ClaimedMessage): void {
    const { integrationType, eventType } = message;
    const what = { source, operation: 'OUTBOX_ENQUEUE_JOB', phase: 'SUCCESS' } as const;
    logOutbox(observer, what, message, { outboxId: message.id, integrationType });
    observer.count?.('outbox_jobs_total', { integrationType, eventType });
  }

  async function tick(limit: number = batchSize): Promise<number> {
    checkNumbers({ limit });
    const claimed = await claim(limit);
    let unqueued = claimed;
    try {
      if (claimed.length > 0) unqueued = await offer(claimed);
    } finally {
      // Releasing the claims of jobs that may have been accepted makes their tokens stale.
      await ledger.settle(unqueued.map(released(new Date(clock.now() + fullMs))));
    }
    return claimed.length - unqueued.length;
  }

  async function pump(stopping: AbortSignal): Promise<void> {
    let releases: OutboxOutcome[] = [];
    let failMs: number = outageMs.first;
    let waitFullMs = fullMs;
    const nudged = createWaiters();
    let isNudged = false;
    const unsubscribe = queue.onNudge(`${prefix}:nudge`, () => {
      isNudged = true;
      nudged.wakeAll();
    });

    async function settleReleases(): Promise<void> {
      await ledger.settle(releases);
      releases = [];
    }

    async function offerOrRelease(
      claimed: readonly ClaimedMessage[],
    ): Promise<readonly ClaimedMessage[]> {
      try {
        return await offer(claimed);
      } catch (error) {
        // Some jobs may have been accepted: releasing their claims makes their tokens stale.
        releases = claimed.map(released());
        await settleReleases();
        throw error;
      }
    }

    /** Until a message was enqueued, or a worker settled a message that others of its ordering key waited for. */
    function sleep(pollMs: number): Promise<void> {
      return waitForFirst(stopping, [
        (signal) => ledger.whenDue(pollMs, signal),
        (signal) => nudged.wait(signal, () => isNudged),
      ]);
    }

    while (!stopping.aborted) {
      let operation: 'OUTBOX_CLAIM' | 'OUTBOX_ENQUEUE_JOB' = 'OUTBOX_CLAIM';
      try {
        isNudged = false;
        await settleReleases();
        const claimed = await claim(batchSize);
        operation = 'OUTBOX_ENQUEUE_JOB';
        const unqueued = claimed.length === 0 ? [] : await offerOrRelease(claimed);
        failMs = outageMs.first;
        operation = 'OUTBOX_CLAIM';
        if (claimed.length === 0) await sleep(tickIntervalMs);
        if (unqueued.length < claimed.length) waitFullMs = fullMs;
        if (unqueued.length === 0) continue;
        // Back off, so that a queue without workers does not cost one claim after another.
        observer.count?.('outbox_queue_full_total', {}, unqueued.length);
        releases = unqueued.map(released(new Date(clock.now() + waitFullMs)));
        await clock.sleep(fullMs, stopping);
        if (waitFullMs > fullMs) await sleep(waitFullMs - fullMs);
        waitFullMs = Math.min(waitFullMs * 2, tickIntervalMs);
      } catch (error) {
        if (stopping.aborted) break;
        logOutbox(observer, { source, operation, phase: 'ERROR' }, {}, { err: error });
        await slept(clock, failMs, stopping);
        failMs = Math.min(failMs * 2, outageMs.max);
      }
    }
    unsubscribe();
    try {
      await settleReleases();
    } catch (error) {
      // The messages are claimed again after their leases expire.
      const what = { source, operation: 'OUTBOX_CLAIM', phase: 'ERROR' } as const;
      logOutbox(observer, what, {}, { err: error });
    }
  }

  /** Extends the leases of messages whose jobs wait in a queue: a second claim would make those jobs stale. */
  async function keepLeases(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      try {
        await clock.sleep(Math.ceil(leaseMs / 3), stopping);
        for await (const { queue: name, ids } of queue.waiting(`${prefix}:outbox-*`)) {
          const claims = ids.flatMap((id) => claimOfJobId(id) ?? []);
          observer.gauge?.('queue_depth', ids.length, { queue: name.slice(prefix.length + 1) });
          for (let at = 0; at < claims.length; at += limits.claimBatchMax) {
            await ledger.extend(claims.slice(at, at + limits.claimBatchMax), { leaseMs });
          }
        }
      } catch (error) {
        if (stopping.aborted) return;
        const what = { source, operation: 'OUTBOX_ENQUEUE_JOB', phase: 'ERROR' } as const;
        logOutbox(observer, what, {}, { err: error });
      }
    }
  }

  const lifecycle = runUntilStopped((signal) => Promise.all([pump(signal), keepLeases(signal)]));
  return withLifecycle(lifecycle, { tick });
}

function released(dueAt?: Date): (claim: OutboxClaim) => OutboxOutcome {
  return ({ id, token }) => ({ kind: 'released', claim: { id, token }, dueAt });
}
