// Strategy B, the second half: takes jobs from queues, takes their claims over in the ledger, sends, and
// settles. What many jobs ask of the ledger goes in batches.

import { randomUUID } from 'node:crypto';
import { createCallDeadlines } from '../foundation/call-deadlines.ts';
import { systemClock, type Clock } from '../foundation/clock.ts';
import type { Lifecycle } from '../foundation/lifecycle.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import { safeObserver } from '../subscriptions/safe-observer.ts';
import { attemptDelivery } from './attempt-delivery.ts';
import { checkNumbers } from './check-outbox.ts';
import type { RetrySchedule } from './decide-delivery.ts';
import type { Deliver } from './deliver-message.ts';
import type { DeliveryJob, DeliveryQueue } from './delivery-queue.ts';
import { inBatches } from './in-batches.ts';
import { logOutbox } from './observe-outbox.ts';
import { outboxLimits as limits } from './outbox-limits.ts';
import type { OutboxLedger, Renewed } from './outbox-ledger.ts';
import type { ClaimedMessage, OutboxClaim } from './outbox-message.ts';
import {
  freesOthers,
  tellOutcome,
  whenTold,
  type OnDead,
  type SettledMessage,
} from './tell-outcome.ts';
import { runUntilStopped } from './run-until-stopped.ts';

export interface QueueWorkerOptions {
  readonly ledger: OutboxLedger;
  readonly queue: DeliveryQueue;
  readonly deliver: Deliver;
  /** Integration types, or patterns of them (`webhook:*`). Default: all. */
  readonly types?: readonly string[];
  /** Messages that are sent at once, of each queue. Default: 50. */
  readonly concurrency?: number;
  /** After which a message whose worker died comes again. Default: 60 s. */
  readonly leaseMs?: number;
  /** No attempt takes longer. Default: half of the lease. */
  readonly timeoutMs?: number;
  /** When it is stopped, what is being sent may take so long, and is cut off then. Default: 10 s. */
  readonly drainMs?: number;
  /** Default: min(60 s · 2^(n−1), 15 min) + 0..10 s. */
  readonly schedule?: RetrySchedule;
  /** New at every start. */
  readonly workerId?: string;
  readonly clock?: Clock;
  readonly observer?: Observer;
  readonly onDead?: OnDead;
}

export interface QueueWorker extends Lifecycle {
  /** Jobs that it has begun and not come to an end with. */
  readonly inFlight: number;
}

const source = 'outbox-worker';

/**
 * Sends what a `createQueueDispatcher` has put into queues, until it is stopped.
 *
 * @example
 * import { createQueueWorker, memoryDeliveryQueue, memoryOutboxLedger } from 'millrace/outbox';
 *
 * await using worker = createQueueWorker({
 *   ledger: memoryOutboxLedger(),
 *   queue: memoryDeliveryQueue(),
 *   types: ['webhook:*'],
 *   deliver: async ({ payload }, { idempotencyKey, signal }) => {
 *     const headers = { 'idempotency-key': idempotencyKey };
 *     const body = JSON.stringify(payload);
 *     await fetch('https://partner.example/hook', { method: 'POST', headers, body, signal });
 *   },
 * });
 * await worker.start();
 */
export function createQueueWorker(options: QueueWorkerOptions): QueueWorker {
  const { ledger, queue, deliver, schedule, onDead, types = ['*'], clock = systemClock } = options;
  const concurrency = options.concurrency ?? limits.concurrencyDefault;
  const leaseMs = options.leaseMs ?? limits.leaseMsDefault;
  const timeoutMs = options.timeoutMs ?? Math.floor(leaseMs / 2);
  const drainMs = options.drainMs ?? limits.drainMsDefault;
  const workerId = options.workerId ?? `outbox-${process.pid}-${randomUUID().slice(0, 8)}`;
  const observer = safeObserver(options.observer ?? silentObserver);
  checkNumbers({ concurrency, leaseMs, timeoutMs, drainMs });

  let inFlight = 0;

  async function run(stopping: AbortSignal): Promise<void> {
    const cutOff = new AbortController();
    const telling = new Set<Promise<void>>();
    const deadlines = createCallDeadlines(clock, timeoutMs, cutOff.signal);
    const limitsOfOne = { timeoutMs, leaseMs, deadlines };
    const operation = 'OUTBOX_DELIVER' as const;
    const attempt = { deliver, schedule, clock, observer, source, operation, ...limitsOfOne };
    const batch = {
      sizeMax: limits.claimBatchMax,
      clock,
      hurry: cutOff.signal,
      onFailure: (err: unknown) =>
        logOutbox(observer, { source, operation, phase: 'ERROR' }, {}, { err }),
    };
    const renew = inBatches(async (claims: readonly (OutboxClaim | ClaimedMessage)[]) => {
      const leasedAtMs = clock.now();
      const renewed = await ledger.renew(claims, { workerId, leaseMs, perTenant: queue.perTenant });
      return renewed.map((each) => ({ renewed: each, leasedAtMs }));
    }, batch);
    const settle = inBatches(async (ended: readonly SettledMessage[]) => {
      const settled = await ledger.settle(ended.map(({ outcome }) => outcome));
      for (const [at, each] of ended.entries()) {
        tellOutcome(each, settled[at], { source, observer, onDead, telling });
      }
      if (ended.some(freesOthers)) queue.nudge();
      return settled;
    }, batch);

    async function handle(job: DeliveryJob): Promise<void> {
      const { outboxId: id, token } = job;
      const { renewed, leasedAtMs } = await renew(job.message ?? { id, token });
      if (typeof renewed === 'string') return tellDropped(job, renewed);
      const outcome = await attemptDelivery(renewed, leasedAtMs, attempt);
      await settle({ message: renewed, outcome });
    }

    async function handleOne(job: DeliveryJob): Promise<void> {
      inFlight += 1;
      try {
        await handle(job);
      } catch (error) {
        // The ledger is away and this process must end: the lease brings the message back.
        const what = { source, operation, phase: 'ERROR' } as const;
        logOutbox(observer, what, job, { outboxId: job.outboxId, err: error });
      } finally {
        inFlight -= 1;
      }
    }

    function tellDropped(job: DeliveryJob, why: Exclude<Renewed, ClaimedMessage>): void {
      const { outboxId, integrationType, eventType } = job;
      if (why === 'stale') observer.count?.('outbox_stale_total', { integrationType, eventType });
      const what = { source, operation, phase: why === 'stale' ? 'STALE' : 'PAUSED' } as const;
      logOutbox(observer, what, job, { outboxId, integrationType });
    }

    const patience = new AbortController();
    const impatient = whenAborted(AbortSignal.any([stopping, patience.signal]))
      .then(() => clock.sleep(drainMs, patience.signal))
      .then(
        () => cutOff.abort(),
        () => undefined,
      );
    await queue.work(handleOne, { types, concurrency, signal: stopping });
    patience.abort();
    await impatient;
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
    start: () => lifecycle.start(),
    stop: () => lifecycle.stop(),
    [Symbol.asyncDispose]: () => lifecycle.stop(),
  };
}

function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
