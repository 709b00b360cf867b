// Strategy B, second half: takes jobs from queues, takes over their claims in the ledger, sends the messages and
// stores the outcomes. Calls of the ledger are made in batches.

import { createCallDeadlines } from '../foundation/async/call-deadlines.ts';
import { createBatcher } from '../foundation/async/batcher.ts';
import type { Clock } from '../foundation/clock.ts';
import { runUntilStopped, withLifecycle, type Lifecycle } from '../foundation/lifecycle.ts';
import { whenAborted } from '../foundation/async/when-aborted.ts';
import { renewClaims } from '../loops/renew-claims.ts';
import { attemptWithinLease } from './attempt-delivery.ts';
import { checkNumbers } from './check-outbox.ts';
import type { Job } from '../work/work-queue.ts';
import {
  deliveryQueueName,
  deliveryQueueSettings,
  fromJob,
  type DeliveryJob,
  type DeliveryQueueOptions,
} from './delivery-job.ts';
import { logOutbox } from './observe-outbox.ts';
import { outboxLimits as limits } from './outbox-limits.ts';
import type { Renewed } from './outbox-ledger.ts';
import type { ClaimedMessage, OutboxClaim } from './outbox-message.ts';
import {
  drained,
  freesOrderingKey,
  reportOutcome,
  whenReported,
  type SettledMessage,
} from './report-outcome.ts';
import { outageMs, sendingSettings, type SendingOptions } from './sending-options.ts';

/** The lease of a running attempt is extended, three times per `leaseMs`. */
export interface QueueWorkerOptions extends SendingOptions, DeliveryQueueOptions {
  /** Integration types, or patterns of them (`webhook:*`). Default: all. */
  readonly types?: readonly string[] | undefined;
}

export interface QueueWorker extends Lifecycle {
  /** Jobs that have begun and not ended. */
  readonly inFlight: number;
}

const source = 'outbox-worker';
const operation = 'OUTBOX_DELIVER';

/**
 * Sends the messages that a `createQueueDispatcher` has put into queues, until it is stopped.
 *
 * @example
 * import { openSqlite } from 'millrace/engines/sqlite';
 * import { createQueueWorker } from 'millrace/outbox';
 *
 * await using db = await openSqlite('sqlite:.millrace/events.db');
 * await using worker = createQueueWorker({
 *   ledger: db.outbox,
 *   queue: db.queue,
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
  const { types = ['*'] } = options;
  const { queue, prefix, perTenant } = deliveryQueueSettings(options);
  const settings = sendingSettings(options);
  const { ledger, deliver, schedule, onDead, clock, observer } = settings;
  const { concurrency, leaseMs, timeoutMs, drainMs, workerId } = settings;
  checkNumbers({ concurrency, leaseMs, drainMs });
  // May exceed the lease, which is extended.
  checkNumbers({ timeoutMs });
  const queues = types.map(
    (integrationType) =>
      `${prefix}:${deliveryQueueName({ integrationType, tenantId: '*' }, perTenant)}`,
  );
  let inFlight = 0;

  async function run(stopping: AbortSignal): Promise<void> {
    const cancelling = new AbortController();
    const reports = new Set<Promise<void>>();
    const deadlines = createCallDeadlines(clock, cancelling.signal);
    const time = { clock, timeoutMs, deadlines };
    const attempt = { deliver, schedule, observer, source, operation, ...time } as const;
    const batch = {
      clock,
      stopping: cancelling.signal,
      onFailure: (err: unknown) =>
        logOutbox(observer, { source, operation, phase: 'ERROR' }, {}, { err }),
    };
    const renew = inBatches(async (claims: readonly OutboxClaim[]) => {
      const leasedAtMs = clock.now();
      const renewed = await ledger.renew(claims, { workerId, leaseMs, perTenant });
      return renewed.map((each) => ({ renewed: each, leasedAtMs }));
    }, batch);
    const settle = inBatches(async (messages: readonly SettledMessage[]) => {
      const settled = await ledger.settle(messages.map(({ outcome }) => outcome));
      for (const [at, each] of messages.entries()) {
        reportOutcome(each, settled[at], { source, observer, onDead, reports });
      }
      if (messages.some(freesOrderingKey)) queue.nudge(`${prefix}:nudge`);
      return settled;
    }, batch);

    const ended = new AbortController();
    const extend = (claims: readonly OutboxClaim[]) => ledger.extend(claims, { leaseMs });
    const renewal = renewClaims({ clock, leaseMs, renew: extend, signal: ended.signal });

    async function handle(job: DeliveryJob): Promise<void> {
      const { outboxId: id, token } = job;
      const { renewed, leasedAtMs } = await renew({ id, token });
      if (typeof renewed === 'string') return reportDropped(job, renewed);
      const outcome = await attemptWithinLease(renewed, attempt, { renewal, leasedAtMs });
      if (outcome === undefined) return reportDropped(job, 'stale');
      await settle({ item: renewed, outcome });
    }

    async function handleOne(queued: Job): Promise<undefined> {
      const job = fromJob(queued);
      if (job === undefined) {
        const { queue: name, id: jobId } = queued;
        observer.log?.error({ queue: name, jobId }, 'unknown job in outbox queue');
        return undefined;
      }
      inFlight += 1;
      try {
        await handle(job);
      } catch (error) {
        // The ledger is unavailable and this process must stop: the message is claimed again after its lease.
        const what = { source, operation, phase: 'ERROR' } as const;
        logOutbox(observer, what, job, { outboxId: job.outboxId, err: error });
      } finally {
        inFlight -= 1;
      }
      return undefined;
    }

    function reportDropped(job: DeliveryJob, why: Exclude<Renewed, ClaimedMessage>): void {
      const { outboxId, integrationType, eventType } = job;
      if (why === 'stale') observer.count?.('outbox_stale_total', { integrationType, eventType });
      const what = { source, operation, phase: why === 'stale' ? 'STALE' : 'PAUSED' } as const;
      logOutbox(observer, what, job, { outboxId, integrationType });
    }

    const working = queue.work(handleOne, { queues, concurrency, signal: stopping, leaseMs });
    using stop = whenAborted(stopping);
    await Promise.race([working, stop.aborted]);
    await drained(working, { clock, drainMs, cancelling });
    ended.abort();
    await whenReported(reports, { clock, drainMs });
  }

  return withLifecycle(runUntilStopped(run), {
    get inFlight() {
      return inFlight;
    },
  });
}

/** Batches single calls of the ledger. A failed call is repeated until the process must stop. */
function inBatches<Item, Result>(
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
  {
    clock,
    stopping,
    onFailure,
  }: {
    readonly clock: Clock;
    readonly stopping: AbortSignal;
    readonly onFailure: (error: unknown) => void;
  },
): (item: Item) => Promise<Result> {
  async function runUntilDone(items: readonly Item[]): Promise<readonly Result[]> {
    for (let waitMs: number = outageMs.first; ; waitMs = Math.min(waitMs * 2, outageMs.max)) {
      try {
        return await run(items);
      } catch (error) {
        onFailure(error);
        await clock.sleep(waitMs, stopping);
      }
    }
  }
  const batcher = createBatcher(runUntilDone, { batchMax: limits.claimBatchMax });
  return (item) => batcher.add(item);
}
