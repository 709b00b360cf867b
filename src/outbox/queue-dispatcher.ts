// Strategy B, the first half: claims what is due and hands it to queues. It sends nothing and settles nothing
// but what it could not hand on.

import { randomUUID } from 'node:crypto';
import { systemClock, type Clock } from '../foundation/clock.ts';
import type { Lifecycle } from '../foundation/lifecycle.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import { createWaiters } from '../store/waiters.ts';
import { safeObserver } from '../subscriptions/safe-observer.ts';
import { checkNumbers } from './check-outbox.ts';
import { toDeliveryJob } from './delivery-job.ts';
import type { DeliveryQueue } from './delivery-queue.ts';
import { logOutbox } from './observe-outbox.ts';
import { outboxLimits as limits } from './outbox-limits.ts';
import type { OutboxLedger, OutboxOutcome } from './outbox-ledger.ts';
import type { ClaimedMessage, OutboxClaim } from './outbox-message.ts';
import { runUntilStopped } from './run-until-stopped.ts';

export interface QueueDispatcherOptions {
  readonly ledger: OutboxLedger;
  readonly queue: DeliveryQueue;
  /** Default: 100. */
  readonly batchSize?: number;
  /**
   * After which a message whose job got lost is claimed again. Leases of jobs that wait are extended, three
   * times as often. Default: 60 s.
   */
  readonly leaseMs?: number;
  /** Jobs that may wait in one queue; what is over it stays in the ledger. Default: 250. */
  readonly waitingMax?: number;
  /** `small`: a message of up to `inlineBytesMax` travels in its job, and the worker need not read it. */
  readonly payload?: 'id' | 'small';
  /** Default: 4 KiB. */
  readonly inlineBytesMax?: number;
  /** The backstop of notifications. Default: 1 s. */
  readonly tickIntervalMs?: number;
  /** New at every start. */
  readonly workerId?: string;
  readonly clock?: Clock;
  readonly observer?: Observer;
}

const source = 'outbox-dispatcher';
const outageMs = { first: 100, max: 5_000 };
/** How soon a queue that was full is tried again. */
const fullMs = 50;

/**
 * Hands what is due to queues, until it is stopped; `createQueueWorker`, in this process or in others, sends
 * it. What waits in the queues then goes on waiting there.
 *
 * @example
 * import { createQueueDispatcher, memoryDeliveryQueue, memoryOutboxLedger } from 'millrace/outbox';
 *
 * await using dispatcher = createQueueDispatcher({
 *   ledger: memoryOutboxLedger(),
 *   queue: memoryDeliveryQueue(),
 * });
 * await dispatcher.start();
 */
export function createQueueDispatcher(options: QueueDispatcherOptions): Lifecycle {
  const { ledger, queue, payload = 'id', clock = systemClock } = options;
  const batchSize = options.batchSize ?? limits.claimBatchDefault;
  const leaseMs = options.leaseMs ?? limits.leaseMsDefault;
  const waitingMax = options.waitingMax ?? limits.waitingMaxDefault;
  const inlineBytesMax = options.inlineBytesMax ?? limits.inlineBytesMaxDefault;
  const tickIntervalMs = options.tickIntervalMs ?? limits.tickIntervalMsDefault;
  const workerId = options.workerId ?? `outbox-${process.pid}-${randomUUID().slice(0, 8)}`;
  const observer = safeObserver(options.observer ?? silentObserver);
  checkNumbers({ batchSize, leaseMs, waitingMax, inlineBytesMax, tickIntervalMs });

  async function pump(stopping: AbortSignal): Promise<void> {
    let releases: OutboxOutcome[] = [];
    let failMs = outageMs.first;
    let waitFullMs = fullMs;
    const nudged = createWaiters();
    let isNudged = false;
    const unsubscribe = queue.onNudge(() => {
      isNudged = true;
      nudged.wakeAll();
    });

    async function claim(): Promise<readonly ClaimedMessage[]> {
      const startMs = clock.now();
      const request = { workerId, limit: batchSize, leaseMs };
      const { claimed } = await ledger.exchange(releases, request);
      releases = [];
      observer.record?.('outbox_claim_duration_ms', clock.now() - startMs, {});
      if (claimed.length > 0) observer.count?.('outbox_claimed_total', {}, claimed.length);
      return claimed;
    }

    /** Returns those that were not taken, as their queues are full. */
    async function handOn(claimed: readonly ClaimedMessage[]): Promise<readonly ClaimedMessage[]> {
      const inlineMax = payload === 'small' ? inlineBytesMax : 0;
      try {
        const jobs = claimed.map((message) => toDeliveryJob(message, inlineMax));
        const offered = await queue.offer(jobs, { waitingMax });
        for (const [at, message] of claimed.entries()) {
          if (offered[at] === 'taken') tell(message);
        }
        return claimed.filter((_message, at) => offered[at] !== 'taken');
      } catch (error) {
        // Some may have been taken all the same: their tokens are worth nothing once this is written.
        releases = claimed.map(released());
        await ledger.settle(releases);
        releases = [];
        throw error;
      }
    }

    function tell(message: ClaimedMessage): void {
      const { integrationType, eventType } = message;
      const what = { source, operation: 'OUTBOX_ENQUEUE_JOB', phase: 'SUCCESS' } as const;
      logOutbox(observer, what, message, { outboxId: message.id, integrationType });
      observer.count?.('outbox_jobs_total', { integrationType, eventType });
    }

    /** Until something was enqueued, or a worker has settled what others waited for. */
    async function sleep(pollMs: number): Promise<void> {
      const woken = new AbortController();
      const signal = AbortSignal.any([stopping, woken.signal]);
      const nudge = nudged.wait(signal, () => isNudged);
      try {
        await Promise.race([ledger.whenDue(pollMs, signal), nudge]);
      } finally {
        woken.abort();
        await nudge.catch(() => undefined);
      }
    }

    while (!stopping.aborted) {
      let operation: 'OUTBOX_CLAIM' | 'OUTBOX_ENQUEUE_JOB' = 'OUTBOX_CLAIM';
      try {
        isNudged = false;
        const claimed = await claim();
        operation = 'OUTBOX_ENQUEUE_JOB';
        const refused = claimed.length === 0 ? [] : await handOn(claimed);
        failMs = outageMs.first;
        operation = 'OUTBOX_CLAIM';
        if (claimed.length === 0) await sleep(tickIntervalMs);
        if (refused.length < claimed.length) waitFullMs = fullMs;
        if (refused.length === 0) continue;
        // A queue that nobody empties costs a batch now and then, not a batch after the other.
        observer.count?.('outbox_queue_full_total', {}, refused.length);
        releases = refused.map(released(new Date(clock.now() + waitFullMs)));
        await clock.sleep(fullMs, stopping);
        if (waitFullMs > fullMs) await sleep(waitFullMs - fullMs);
        waitFullMs = Math.min(waitFullMs * 2, tickIntervalMs);
      } catch (error) {
        if (stopping.aborted) break;
        logOutbox(observer, { source, operation, phase: 'ERROR' }, {}, { err: error });
        await clock.sleep(failMs, stopping).catch(() => undefined);
        failMs = Math.min(failMs * 2, outageMs.max);
      }
    }
    unsubscribe();
    try {
      await ledger.settle(releases);
    } catch (error) {
      // Their leases end by themselves.
      const what = { source, operation: 'OUTBOX_CLAIM', phase: 'ERROR' } as const;
      logOutbox(observer, what, {}, { err: error });
    }
  }

  /** What waits behind a slow destination must not be claimed again: its job would come to nothing. */
  async function keepLeases(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      try {
        await clock.sleep(Math.ceil(leaseMs / 3), stopping);
        for await (const { queue: name, claims } of queue.waiting()) {
          observer.gauge?.('queue_depth', claims.length, { queue: name });
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

  return runUntilStopped((signal) => Promise.all([pump(signal), keepLeases(signal)]));
}

function released(dueAt?: Date): (claim: OutboxClaim) => OutboxOutcome {
  return ({ id, token }) => ({ kind: 'released', claim: { id, token }, dueAt });
}
