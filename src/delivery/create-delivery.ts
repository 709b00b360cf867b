// From a message to its outcome: find the destination, respect its limits and its breaker, call it within its
// time limit, and never throw. The dispatcher of the outbox calls `deliver` directly.

import { idempotencyKeyOf } from '../contracts/idempotency-key.ts';
import { aborted, systemClock, type Clock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { errorFacts } from '../foundation/failure-cause.ts';
import { traceOf, silentObserver, type Observer } from '../foundation/observer.ts';
import { nextTurn } from '../foundation/async/next-turn.ts';
import { safeObserver } from '../foundation/safe-observer.ts';
import { createCallDeadlines } from '../foundation/async/call-deadlines.ts';
import type { BreakerStore } from './breaker-store.ts';
import { createBreakers } from './breakers.ts';
import { createCallSamples, type CallActivity } from './call-samples.ts';
import { createCallSlots } from './call-slots.ts';
import {
  breakerLimits,
  type BreakerPolicy,
  type BreakerResult,
  type BreakerState,
} from './circuit-breaker.ts';
import type { DeliveryMessage } from './delivery-message.ts';
import { outcomeOfError, shownFailure, type DeliveryOutcome } from './delivery-outcome.ts';
import type { Destination } from './destination.ts';
import {
  checkRateLimit,
  createRateLimiter,
  type LimitedKey,
  type RateLimit,
} from './rate-limit.ts';

export interface DestinationSettings {
  readonly send: Destination;
  /** Limits all messages to this destination. */
  readonly rateLimit?: RateLimit | undefined;
  /** Limits each tenant; messages without a tenant share one limit. */
  readonly tenantRateLimit?: RateLimit | undefined;
  /** Concurrent calls of one integration type in this process; further messages return to the ledger for a moment. */
  readonly concurrency?: number | undefined;
  /** False: no breaker. Default: `breakerLimits`. */
  readonly breaker?: Partial<BreakerPolicy> | false | undefined;
  /**
   * Time limit of one call. If the destination has a `timeoutMs` as well, the shorter limit applies.
   * Default: that of the destination, or else `deliveryLimits.timeoutMs`.
   */
  readonly timeoutMs?: number | undefined;
}

export interface DeliveryOptions {
  /** By integration type, `webhook:partner-x`, or by the part before its colon, `webhook`. */
  readonly destinations: Readonly<Record<string, Destination | DestinationSettings>>;
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
  /** A message waits at most this long for a limit; after that it returns to the ledger. Default: 100. */
  readonly rateWaitMsMax?: number | undefined;
  /** Shares the breakers with other processes. Default: no sharing. */
  readonly breakers?: BreakerStore | undefined;
}

export interface DeliverOptions {
  /** Cancels the attempt; with the reason `HANDLER_TIMEOUT`, it counts as a failure of the destination. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Given by a caller that enforces the time limit itself: starts the limit of this call, after which the caller
   * fires `signal`. Default: `deliver` enforces the limit.
   */
  readonly limit?: ((timeoutMs: number) => void) | undefined;
  /** Default: one more than the failed attempts of the message. */
  readonly attempt?: number | undefined;
}

export interface Delivery {
  /** Sends one message. Never rejects. */
  readonly deliver: (
    message: DeliveryMessage,
    context?: DeliverOptions,
  ) => Promise<DeliveryOutcome>;
  /** The breaker of one integration type, for screens and health checks. */
  breakerOf(integrationType: string): BreakerState;
  /** The calls of the last 5 minutes by integration type, in this process. */
  activity(): ReadonlyMap<string, CallActivity>;
}

export const deliveryLimits = {
  timeoutMs: 10_000,
  /** Short, because a waiting message occupies one of the dispatcher's concurrent calls. */
  rateWaitMsMax: 100,
  /** When a message with an unknown destination is retried. */
  unknownRetryMs: 60_000,
  /** How often the breakers of other processes are read. */
  breakerRefreshMs: 1_000,
} as const;

/**
 * Everything between a ledger and its destinations. Each integration type has a separate breaker and limits, even
 * if several types share one destination.
 *
 * @example
 * import { createDelivery } from 'millrace/delivery';
 *
 * const { deliver } = createDelivery({
 *   destinations: {
 *     audit: async (message) => console.log(message.eventType),
 *     partner: { send: async () => {}, tenantRateLimit: { perSecond: 5 }, timeoutMs: 2_000 },
 *   },
 * });
 * const outcome = await deliver({
 *   id: 'o-1',
 *   integrationType: 'partner:acme',
 *   eventType: 'payment.completed.v1',
 *   payload: { amount: 5 },
 *   sourceStreamId: 'paymenthub.payment.v1-core-1',
 *   sourceEventId: 'e-1',
 * });
 * if (outcome.kind === 'retry') console.log(outcome.error, outcome.afterMs);
 */
export function createDelivery(options: DeliveryOptions): Delivery {
  const {
    clock = systemClock,
    observer: unsafeObserver = silentObserver,
    rateWaitMsMax = deliveryLimits.rateWaitMsMax,
  } = options;
  const observer = safeObserver(unsafeObserver);
  const routes = new Map(
    Object.entries(options.destinations).map(([name, each]) => [name, checkedSettings(name, each)]),
  );
  const deadlines = createCallDeadlines(clock);
  const limiter = createRateLimiter();
  const samples = createCallSamples(clock.now());
  const slots = createCallSlots(clock, rateWaitMsMax);
  const breakers = createBreakers({
    clock,
    observer,
    store: options.breakers,
    refreshMs: deliveryLimits.breakerRefreshMs,
  });

  const routeOf = (type: string): CheckedSettings | undefined =>
    routes.get(type) ?? routes.get(type.split(':', 1)[0] ?? '');

  /** The outcome if a limit or the breaker forbids the call now, else undefined. Rejects when the process stops. */
  async function whyNotNow(
    message: DeliveryMessage,
    settings: CheckedSettings,
    signal: AbortSignal,
  ): Promise<DeliveryOutcome | undefined> {
    const keys = limitedKeys(message, settings);
    if (keys.length > 0) {
      const admission = limiter.admit(keys, clock.now(), rateWaitMsMax);
      if (admission.kind === 'rejected') return notTried('rate limit', admission.backInMs);
      if (admission.waitMs > 0) await clock.sleep(admission.waitMs, signal);
    }
    const { integrationType } = message;
    const { breaker } = settings;
    const mayProbe =
      breaker === undefined ? undefined : breakers.mayProbe(integrationType, breaker);
    if (mayProbe !== undefined && !(await mayProbe)) {
      return notTried('the breaker is open', deliveryLimits.breakerRefreshMs);
    }
    return undefined;
  }

  async function attemptCall(
    message: DeliveryMessage,
    settings: CheckedSettings,
    context: CallContext,
  ): Promise<DeliveryOutcome> {
    const { signal, attempt } = context;
    const postponed = await whyNotNow(message, settings, signal).catch(() => stopped);
    if (postponed !== undefined) return postponed;
    if (signal.aborted) return stopped;
    const { integrationType } = message;
    const { breaker } = settings;
    const admission = breaker === undefined ? undefined : breakers.admit(integrationType, breaker);
    if (admission?.kind === 'rejected') return notTried('the breaker is open', admission.backInMs);
    const startedAtMs = clock.now();
    const outcome = await observed(message, attempt, (traced) =>
      callDestination(settings, traced, context),
    );
    const durationMs = clock.now() - startedAtMs;
    samples.add(integrationType, { atMs: startedAtMs, durationMs });
    observer.record?.('delivery_duration_seconds', durationMs / 1_000, {
      destination: integrationType,
      correlationId: message.correlationId,
    });
    if (breaker !== undefined && admission !== undefined) {
      const result = breakerResultOf(outcome, signal);
      breakers.settle(integrationType, breaker, { permit: admission.permit, result });
    }
    return outcome;
  }

  /**
   * Calls the destination. Its signal fires when the time limit expires or the process stops. A destination that
   * obeys the signal can still report its outcome in the same turn of the event loop; any other is not awaited.
   */
  function callDestination(
    { send, timeoutMs }: CheckedSettings,
    message: DeliveryMessage,
    { signal, attempt, limit }: CallContext,
  ): Promise<DeliveryOutcome> {
    const cancelled = new AbortController();
    let endLimit: (() => void) | undefined;
    return new Promise((resolve) => {
      const cancel = (reason: Error): void => {
        cancelled.abort(reason);
        const facts = errorFacts(reason);
        const late = { kind: 'retry', error: reason.message, ambiguous: true, facts } as const;
        void nextTurn().then(() => end(late));
      };
      const onAbort = (): void =>
        cancel(hasCode(signal.reason, 'HANDLER_TIMEOUT') ? signal.reason : aborted(signal));
      const end = (outcome: DeliveryOutcome): void => {
        endLimit?.();
        signal.removeEventListener('abort', onAbort);
        resolve(outcome);
      };
      signal.addEventListener('abort', onAbort);
      if (limit !== undefined) limit(timeoutMs);
      else {
        endLimit = deadlines.begin(timeoutMs, () =>
          cancel(new MillraceError('HANDLER_TIMEOUT', `no response within ${timeoutMs} ms`)),
        );
      }
      // A function of the user may throw before it returns a promise.
      const call = (async () =>
        send(message, {
          idempotencyKey: idempotencyKeyOf(message),
          attempt,
          isDuplicate: attempt > 1 || (message.starts ?? 1) > 1,
          signal: cancelled.signal,
          tenantId: message.tenantId,
          correlationId: message.correlationId,
        }))();
      call.then(
        // Returning means sent, also where a short function returns some other value.
        (outcome) => end(outcome?.kind === undefined ? sent : outcome),
        (error: unknown) => end(outcomeOfError(error)),
      );
    });
  }

  /** A span for each attempt; the message carries its context to the receiver. */
  async function observed(
    message: DeliveryMessage,
    attempt: number,
    call: (traced: DeliveryMessage) => Promise<DeliveryOutcome>,
  ): Promise<DeliveryOutcome> {
    if (observer.span === undefined) return call(message);
    const span = observer.span(
      'deliver message',
      {
        attempt,
        outboxId: message.id,
        integrationType: message.integrationType,
        eventType: message.eventType,
        eventId: message.sourceEventId,
        stream: message.sourceStreamId,
        tenant: message.tenantId,
        correlationId: message.correlationId,
      },
      traceOf(message.headers),
    );
    const outcome = await call({ ...message, headers: { ...message.headers, ...span.context } });
    span.set({ outcome: outcome.kind });
    if (outcome.kind !== 'sent' && isTried(outcome)) {
      const code = shownFailure(outcome);
      span.fail(Object.assign(new Error(code), { code }));
    }
    span.end();
    return outcome;
  }

  async function attemptInSlot(
    message: DeliveryMessage,
    settings: CheckedSettings,
    context: CallContext,
  ): Promise<DeliveryOutcome> {
    const { integrationType } = message;
    const { concurrency, breaker } = settings;
    if (context.signal.aborted) return stopped;
    const state = breakers.stateOf(integrationType);
    // While the breaker is open, no slot and no token is used.
    if (breaker !== undefined && state.kind === 'open' && clock.now() < state.untilMs) {
      return notTried('the breaker is open', state.untilMs - clock.now());
    }
    if (concurrency === undefined) return attemptCall(message, settings, context);
    const slot = await slots
      .acquire(integrationType, concurrency, context.signal)
      .catch(() => undefined);
    if (slot === undefined) return stopped;
    if (slot.kind === 'full') return notTried('concurrency limit', slot.backInMs);
    const outcome = await attemptCall(message, settings, context);
    slot.release({ isTried: isTried(outcome) });
    return outcome;
  }

  return {
    breakerOf: (type) => breakers.stateOf(type),
    activity: () => samples.activity(clock.now()),
    async deliver(message, context = {}) {
      const { signal = neverAborted, attempt = (message.attempts ?? 0) + 1, limit } = context;
      const { integrationType, tenantId, userId, correlationId } = message;
      const settings = routeOf(integrationType);
      breakers.refresh();
      const outcome =
        settings === undefined
          ? unknownDestination(integrationType)
          : await attemptInSlot(message, settings, { signal, attempt, limit });
      observer.count?.('delivery_attempts_total', {
        destination: integrationType,
        outcome: outcome.kind,
        correlationId,
      });
      // A message that only waits for a limit has not failed.
      if (outcome.kind !== 'sent' && isTried(outcome)) {
        observer.log?.warn(
          {
            source: 'delivery',
            operation: 'OUTBOX_DELIVER',
            phase: outcome.kind === 'dead' ? 'DEAD' : 'FAILED',
            outboxId: message.id,
            destination: integrationType,
            tenantId,
            userId,
            correlationId,
            attempt,
            status: outcome.answer?.status,
          },
          'delivery failed',
        );
      }
      return outcome;
    },
  };
}

const neverAborted = new AbortController().signal;

interface CallContext {
  readonly signal: AbortSignal;
  readonly attempt: number;
  readonly limit: DeliverOptions['limit'];
}

interface CheckedSettings extends Omit<DestinationSettings, 'breaker' | 'timeoutMs'> {
  readonly breaker: BreakerPolicy | undefined;
  readonly timeoutMs: number;
}

function checkedSettings(name: string, each: Destination | DestinationSettings): CheckedSettings {
  const { breaker, ...rest }: DestinationSettings =
    typeof each === 'function' ? { send: each } : each;
  const limits = [rest.timeoutMs, rest.send.timeoutMs].filter((ms) => ms !== undefined);
  const timeoutMs = limits.length === 0 ? deliveryLimits.timeoutMs : Math.min(...limits);
  for (const key of ['rateLimit', 'tenantRateLimit'] as const) {
    const limit = rest[key];
    if (limit !== undefined) checkRateLimit(limit, `${name}.${key}`);
  }
  const policy = breaker === false ? undefined : { ...breakerLimits, ...breaker };
  const { concurrency } = rest;
  for (const [key, value = 1] of Object.entries({ timeoutMs, concurrency, ...policy })) {
    if (Number.isFinite(value) && value > 0) continue;
    throw new MillraceError(
      'CONFIG_INVALID',
      `${name}: ${key} must be greater than 0, not ${value}`,
      {
        details: { destination: name, [key]: value },
      },
    );
  }
  return { ...rest, timeoutMs, breaker: policy };
}

function limitedKeys(
  { integrationType, tenantId = '' }: DeliveryMessage,
  { rateLimit, tenantRateLimit }: CheckedSettings,
): readonly LimitedKey[] {
  const keys: LimitedKey[] = [];
  if (rateLimit !== undefined) keys.push({ key: integrationType, limit: rateLimit });
  if (tenantRateLimit !== undefined) {
    // No tenant and no integration type contains a line break.
    keys.push({ key: `${integrationType}\n${tenantId}`, limit: tenantRateLimit });
  }
  return keys;
}

const sent: DeliveryOutcome = { kind: 'sent' };
const stopped = notTried('the process is stopping', 0);

function breakerResultOf(outcome: DeliveryOutcome, signal: AbortSignal): BreakerResult {
  if (outcome.kind !== 'retry') return { kind: 'worked' };
  const isStopped = signal.aborted && !hasCode(signal.reason, 'HANDLER_TIMEOUT');
  if (isStopped || outcome.attempted === false) return { kind: 'cancelled' };
  if (outcome.throttled === true && outcome.afterMs !== undefined && outcome.afterMs > 0) {
    return { kind: 'throttled', pauseMs: outcome.afterMs };
  }
  return { kind: 'failed' };
}

function isTried(outcome: DeliveryOutcome): boolean {
  return outcome.kind !== 'retry' || outcome.attempted !== false;
}

function notTried(error: string, afterMs: number): DeliveryOutcome {
  return { kind: 'retry', error, afterMs: Math.ceil(afterMs), attempted: false };
}

/** A retry, because during a rollout another process or a newer version may know the destination. */
function unknownDestination(integrationType: string): DeliveryOutcome {
  return {
    kind: 'retry',
    error: `unknown destination '${integrationType}': configure it in destinations`,
    afterMs: deliveryLimits.unknownRetryMs,
  };
}
