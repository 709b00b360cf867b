// The loop of a consumer: fetches while it has capacity, runs handlers, renews leases, and survives broker outages.

import { backoffMs, type BackoffPolicy } from '../foundation/backoff.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { outcomeOf } from '../foundation/handler-outcome.ts';
import { claimLoop, type Cancel, type ClaimedItems, type EndedItem } from '../loops/claim-loop.ts';
import type { ClaimLoad } from '../loops/next-claim-step.ts';
import type { BusConsumer, ConsumeOptions, MessageHandler } from './bus.ts';
import { busLimits as limits } from './bus-limits.ts';
import type { Delivery } from './bus-message.ts';
import { checkInteger } from './check-bus.ts';
import type { GroupMember, LeasedDelivery, MemberContext } from './group-member.ts';

/** The backoff of failed handlers; `maxDeliveries` of the group limits the attempts. */
const failureBackoff: BackoffPolicy = {
  initialMs: 1_000,
  factor: 2,
  capMs: 60_000,
  jitterMs: 0,
  attemptsMax: limits.maxDeliveriesMax,
};

/** Settles the message, unless the handler has settled it. */
type Settle = () => Promise<unknown>;

export function startConsumer<Payload>(
  context: MemberContext,
  member: GroupMember,
  handler: MessageHandler<Payload>,
  options: ConsumeOptions,
): BusConsumer {
  const { clock, observer } = context;
  const { name: group, leaseMs } = member.settings;
  const range = { min: 1, max: 10_000 };
  const concurrency = checkInteger('concurrency', options.concurrency ?? 1, range);
  const maxInFlight = Math.max(
    concurrency,
    checkInteger('maxInFlight', options.maxInFlight ?? limits.maxInFlightDefault, range),
  );
  const retryMs =
    options.backoffMs ?? ((failures: number) => backoffMs(failureBackoff, failures, 0));
  const stopping = new AbortController();
  let hasFetchFailed = false;
  let permanent: { readonly error: unknown } | undefined;
  let downSinceMs = 0;

  const stop = (): void => stopping.abort();
  options.signal?.addEventListener('abort', stop, { once: true });
  if (options.signal?.aborted === true) stop();

  /** While messages are queued, fetch only when half of the capacity is free: larger batches, fewer calls. */
  function room({ waiting, running, unsettled }: ClaimLoad): number {
    const free = maxInFlight - waiting - running - unsettled;
    const hasRoom = waiting === 0 || free * 2 >= maxInFlight;
    return hasRoom ? Math.min(free, limits.fetchMax) : 0;
  }

  async function claim(limit: number, signal: AbortSignal): Promise<ClaimedItems<LeasedDelivery>> {
    try {
      // After a failure, do not wait for messages: an empty result already proves that the broker works.
      const waitMs = hasFetchFailed ? 0 : limits.fetchWaitMsDefault;
      const items = await member.fetch({ limit, waitMs, signal });
      hasFetchFailed = false;
      // The fetch may have waited for a long time, so the leases began at about this time.
      return { items, leasedAtMs: clock.now() };
    } catch (error) {
      hasFetchFailed = true;
      await recover(error);
      return { items: [], leasedAtMs: 0 };
    }
  }

  /** Rejects if the fetch must be repeated later. A permanent error stops the consumer. */
  async function recover(failure: unknown): Promise<void> {
    let error = failure;
    try {
      if (!hasCode(failure, 'BUS_GROUP_UNKNOWN')) throw failure;
      // From the start: the acks of the deleted group are lost, and no message may be skipped.
      await member.ensure('start');
      observer.log?.warn({ group }, 'bus group was missing and is created again');
      return;
    } catch (err) {
      error = err;
    }
    if (isRetryable(error) || stopping.signal.aborted) throw error;
    permanent = { error };
    stop();
  }

  async function run(
    { delivery }: LeasedDelivery,
    onCancel: (cancel: Cancel) => void,
  ): Promise<Settle> {
    const lost = new AbortController();
    onCancel((reason) => lost.abort(reason));
    const attributes = { group, subject: delivery.subject };
    const span = observer.span?.('handle message', attributes, delivery.trace);
    const beganMs = clock.now();
    try {
      await handler(delivery as Delivery<Payload>, lost.signal);
      return () => delivery.ack();
    } catch (error) {
      span?.fail(error);
      observer.count?.('bus_handler_failures_total', { group });
      observer.log?.warn(
        { ...attributes, attempt: delivery.deliveryCount, err: error },
        'bus handler failed',
      );
      return () => settleFailure(delivery, error);
    } finally {
      const { correlationId } = delivery;
      observer.record?.('bus_handler_duration_ms', clock.now() - beganMs, { group, correlationId });
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

  /** The member sends the settlements of one call together. A repeated call skips those that were stored. */
  async function settle(ended: readonly EndedItem<LeasedDelivery, Settle>[]): Promise<void> {
    const settleOne = async ({ item, outcome }: (typeof ended)[number]): Promise<void> => {
      try {
        if (!item.isSettled()) await outcome();
      } catch (err) {
        if (isRetryable(err)) throw err;
        observer.log?.error({ group, subject: item.delivery.subject, err }, 'message not settled');
      }
    };
    const results = await Promise.allSettled(ended.map(settleOne));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  async function renewOne(leased: LeasedDelivery): Promise<boolean> {
    // A handler may settle its message while the renewal runs.
    return leased.isSettled() || (await leased.extend()) === 'settled' || leased.isSettled();
  }

  const loop = claimLoop<LeasedDelivery, Settle>(
    {
      clock,
      concurrency,
      leaseMs,
      bytesMax: limits.waitingBytesMax,
      bytesOf: ({ bytes }) => bytes,
      room,
      claim,
      run,
      settle,
      release: (leased) => () => leased.release(),
      renew: options.autoExtend === false ? undefined : (items) => Promise.all(items.map(renewOne)),
      onLost(err) {
        downSinceMs = clock.now();
        observer.count?.('bus_consumer_interruptions_total', { group });
        observer.log?.warn({ group, err }, 'bus consumer lost its broker');
      },
      onRestored() {
        observer.count?.('bus_consumer_resumes_total', { group });
        const downMs = clock.now() - downSinceMs;
        observer.log?.info({ group, downMs }, 'bus consumer resumed');
      },
    },
    stopping.signal,
  );

  async function runUntilDone(): Promise<void> {
    await loop.done;
    options.signal?.removeEventListener('abort', stop);
    if (permanent !== undefined) throw permanent.error;
  }

  const done = runUntilDone();
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
