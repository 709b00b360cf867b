// The loop of a consumer: fetches while it has capacity, runs handlers, renews leases, and survives broker outages.

import { backoffMs, type BackoffPolicy } from '../foundation/backoff.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { outcomeOf } from '../foundation/handler-outcome.ts';
import type { BusConsumer, ConsumeOptions, MessageHandler } from './bus.ts';
import { busLimits as limits } from './bus-limits.ts';
import type { Delivery } from './bus-message.ts';
import { checkInteger } from './check-bus.ts';
import { createBrokerHealth } from './broker-health.ts';
import type { GroupMember, LeasedDelivery, MemberContext } from './group-member.ts';

/** The backoff of failed handlers; `maxDeliveries` of the group limits the attempts. */
const failureBackoff: BackoffPolicy = {
  initialMs: 1_000,
  factor: 2,
  capMs: 60_000,
  jitterMs: 0,
  attemptsMax: limits.maxDeliveriesMax,
};

const brokerBackoff: BackoffPolicy = {
  initialMs: limits.retryMsFirst,
  factor: 2,
  capMs: limits.retryMsMax,
  jitterMs: limits.retryMsFirst,
  attemptsMax: Number.MAX_SAFE_INTEGER,
};

interface AbortableDelivery extends LeasedDelivery {
  readonly lost: AbortController;
}

export function startConsumer<Payload>(
  context: MemberContext,
  member: GroupMember,
  handler: MessageHandler<Payload>,
  options: ConsumeOptions,
): BusConsumer {
  const { clock, observer } = context;
  const { name: group, leaseMs } = member.settings;
  const concurrency = checkInteger('concurrency', options.concurrency ?? 1, {
    min: 1,
    max: 10_000,
  });
  const maxInFlight = Math.max(
    concurrency,
    checkInteger('maxInFlight', options.maxInFlight ?? limits.maxInFlightDefault, {
      min: 1,
      max: 10_000,
    }),
  );
  const retryMs =
    options.backoffMs ?? ((failures: number) => backoffMs(failureBackoff, failures, 0));
  const stopping = new AbortController();
  const health = createBrokerHealth({ clock, observer }, { group });
  const running = new Set<AbortableDelivery>();
  let waiting: AbortableDelivery[] = [];
  let unsettled = 0;
  let room = Promise.withResolvers<void>();

  const stop = (): void => stopping.abort();
  options.signal?.addEventListener('abort', stop, { once: true });
  if (options.signal?.aborted === true) stop();

  /** While messages are queued, fetch only when half of the capacity is free: larger batches, fewer calls. */
  function hasRoom(): boolean {
    const free = maxInFlight - running.size - waiting.length;
    return waiting.length === 0 ? free > 0 : free * 2 >= maxInFlight;
  }

  async function pull(): Promise<void> {
    let failures = 0;
    while (!stopping.signal.aborted) {
      if (!hasRoom()) {
        room = Promise.withResolvers();
        await room.promise;
        continue;
      }
      const { resumes } = health;
      try {
        const free = maxInFlight - running.size - waiting.length;
        const fetched = await member.fetch({
          limit: Math.min(free, limits.fetchMax),
          // After a failure, do not wait for messages: an empty result already proves that the broker works.
          waitMs: failures > 0 ? 0 : limits.fetchWaitMsDefault,
          signal: stopping.signal,
        });
        failures = 0;
        // Reads can succeed while writes fail, so the outage ends only when no settlement is pending.
        if (unsettled === 0) health.isUp();
        waiting.push(...fetched.map((each) => ({ ...each, lost: new AbortController() })));
        begin();
      } catch (error) {
        if (stopping.signal.aborted) return;
        failures += 1;
        await recover(error, failures, resumes);
      }
    }
  }

  async function recover(error: unknown, failures: number, resumes: number): Promise<void> {
    const isGone = hasCode(error, 'BUS_GROUP_UNKNOWN');
    if (!isGone && !isRetryable(error)) throw error;
    try {
      if (isGone) {
        // From the start: the acks of the deleted group are lost, and no message may be skipped.
        await member.ensure('start');
        observer.log?.warn({ group }, 'bus group was missing and is created again');
        return;
      }
    } catch (err) {
      if (!isRetryable(err)) throw err;
    }
    health.isDown(error, resumes);
    try {
      await clock.sleep(backoffMs(brokerBackoff, failures), stopping.signal);
    } catch (err) {
      if (!hasCode(err, 'ABORTED')) throw err;
    }
  }

  function begin(): void {
    while (running.size < concurrency && !stopping.signal.aborted) {
      const next = waiting.shift();
      if (next === undefined) break;
      running.add(next);
      void handle(next).finally(() => {
        running.delete(next);
        begin();
        if (hasRoom() || stopping.signal.aborted) room.resolve();
      });
    }
  }

  async function handle(leased: AbortableDelivery): Promise<void> {
    const { delivery } = leased;
    const attributes = { group, subject: delivery.subject };
    const span = observer.span?.('handle message', attributes, delivery.trace);
    const beganMs = clock.now();
    try {
      await handler(delivery as Delivery<Payload>, leased.lost.signal);
      if (!leased.isSettled()) await settleWithRetry(leased, () => delivery.ack());
    } catch (error) {
      span?.fail(error);
      observer.count?.('bus_handler_failures_total', { group });
      observer.log?.warn(
        { ...attributes, attempt: delivery.deliveryCount, err: error },
        'bus handler failed',
      );
      if (!leased.isSettled()) await settleWithRetry(leased, () => settleFailure(delivery, error));
    } finally {
      observer.record?.('bus_handler_duration_ms', clock.now() - beganMs, { group });
      span?.end();
    }
  }

  function settleFailure(delivery: Delivery, error: unknown): Promise<unknown> {
    const outcome = outcomeOf(error);
    const reason = (error instanceof Error ? error.message : String(error)) || 'failed';
    if (outcome.kind === 'terminal') return delivery.term(reason);
    const delayMs = outcome.kind === 'failed' ? retryMs(delivery.deliveryCount) : outcome.ms;
    return delivery.nack({ delayMs: Math.min(Math.ceil(delayMs), limits.delayMsMax), reason });
  }

  /** Retries during a short outage, for as long as the lease can still be valid. */
  async function settleWithRetry(
    leased: AbortableDelivery,
    settle: () => Promise<unknown>,
  ): Promise<void> {
    const deadlineMs = clock.now() + leaseMs;
    for (let failures = 1; ; failures += 1) {
      const { resumes } = health;
      try {
        await settle();
        if (failures > 1) unsettled -= 1;
        if (failures > 1 && unsettled === 0) health.isUp();
        return;
      } catch (err) {
        if (failures === 1) unsettled += 1;
        const isOver = clock.now() >= deadlineMs || leased.lost.signal.aborted;
        if (isOver || !isRetryable(err)) {
          unsettled -= 1;
          const { subject } = leased.delivery;
          observer.log?.error({ group, subject, err }, 'message not settled');
          return;
        }
        health.isDown(err, resumes);
        await clock.sleep(backoffMs(brokerBackoff, failures));
      }
    }
  }

  async function renew(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      try {
        await clock.sleep(leaseMs / 3, over);
      } catch (error) {
        if (over.aborted) return;
        throw error;
      }
      await Promise.all([...running, ...waiting].map(renewOne));
    }
  }

  async function renewOne(leased: AbortableDelivery): Promise<void> {
    if (leased.isSettled()) return;
    try {
      if ((await leased.extend()) === 'settled' || leased.isSettled()) return;
      leased.lost.abort(
        new MillraceError('LEASE_LOST', 'the message was delivered to another member'),
      );
      waiting = waiting.filter((each) => each !== leased);
    } catch (err) {
      // The failing fetch reports the outage; the lease may last longer than the outage.
      if (!isRetryable(err)) throw err;
    }
  }

  async function run(): Promise<void> {
    const over = new AbortController();
    const renewing = options.autoExtend === false ? undefined : renew(over.signal);
    try {
      await Promise.race([pull(), ...(renewing === undefined ? [] : [renewing])]);
    } finally {
      stopping.abort();
      options.signal?.removeEventListener('abort', stop);
      const unstarted = waiting;
      waiting = [];
      await Promise.all([
        ...unstarted.map((leased) => settleWithRetry(leased, () => leased.release())),
        drained(),
      ]);
      over.abort();
      await renewing;
    }
  }

  async function drained(): Promise<void> {
    while (running.size > 0) {
      room = Promise.withResolvers();
      await room.promise;
    }
  }

  stopping.signal.addEventListener('abort', () => room.resolve(), { once: true });
  const done = run();
  // A caller that ignores `done` must not crash the process with an unhandled rejection.
  done.catch((err: unknown) => observer.log?.error({ group, err }, 'bus consumer failed'));

  return {
    group,
    done,
    async stop() {
      stop();
      await done;
    },
    async [Symbol.asyncDispose]() {
      stop();
      await done.catch(() => undefined);
    },
  };
}

function isRetryable(error: unknown): boolean {
  return error instanceof MillraceError && error.retryable;
}
