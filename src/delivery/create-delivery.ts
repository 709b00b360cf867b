// From a message to its outcome: find the destination, mind its limits and its breaker, call it within
// its time, and never throw. The dispatcher of the outbox takes `deliver` as it is.

import { aborted, systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import { traceOf } from '../foundation/trace-of.ts';
import { safeObserver } from '../subscriptions/safe-observer.ts';
import { createCallDeadlines, type CallDeadlines } from '../foundation/call-deadlines.ts';
import type { BreakerStore } from './breaker-store.ts';
import { createBreakers } from './breakers.ts';
import { createCallPlaces } from './call-places.ts';
import {
  breakerLimits,
  type BreakerPolicy,
  type BreakerResult,
  type BreakerState,
} from './circuit-breaker.ts';
import { idempotencyKeyOf, type DeliveryMessage } from './delivery-message.ts';
import { outcomeOfError, type DeliveryOutcome } from './delivery-outcome.ts';
import type { Destination } from './destination.ts';
import {
  checkRateLimit,
  createRateLimiter,
  type LimitedKey,
  type RateLimit,
} from './rate-limit.ts';

export interface DestinationSettings {
  readonly send: Destination;
  /** Of everything that goes there. */
  readonly rateLimit?: RateLimit;
  /** Of each tenant there; messages without a tenant share one. */
  readonly tenantRateLimit?: RateLimit;
  /** Calls of one integration type at once, in this process; what is above comes back soon. */
  readonly concurrency?: number;
  /** False: none. Default: `breakerLimits`. */
  readonly breaker?: Partial<BreakerPolicy> | false;
  /** How long a call may take. Default: `deliveryLimits.timeoutMs`. */
  readonly timeoutMs?: number;
}

export interface DeliveryOptions {
  /** By integration type, `webhook:partner-x`, or by what stands before its colon, `webhook`. */
  readonly destinations: Readonly<Record<string, Destination | DestinationSettings>>;
  readonly clock?: Clock;
  readonly observer?: Observer;
  /** Whose turn comes within this waits for it here; a longer wait goes back to the ledger. Default: 100. */
  readonly rateWaitMsMax?: number;
  /** Shares the breakers with other processes. Without it each has its own. */
  readonly breakers?: BreakerStore;
}

export interface DeliverContext {
  readonly signal?: AbortSignal;
  /** Default: one more than the message says has failed. */
  readonly attempt?: number;
}

export interface Delivery {
  /** Never rejects. */
  readonly deliver: (
    message: DeliveryMessage,
    context?: DeliverContext,
  ) => Promise<DeliveryOutcome>;
  /** Of one integration type, for screens and health checks. */
  breakerOf(integrationType: string): BreakerState;
}

export const deliveryLimits = {
  timeoutMs: 10_000,
  /** Short: who waits here takes a place among the dispatcher's calls from other tenants. */
  rateWaitMsMax: 100,
  /** How soon a message whose destination this process does not know is looked at again. */
  unknownRetryMs: 60_000,
  /** How old what is known of other processes' breakers may be. */
  breakerRefreshMs: 1_000,
} as const;

/**
 * Everything between a ledger and its destinations. Each integration type has a breaker and limits of
 * its own, also where several share one destination.
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
    observer: given = silentObserver,
    rateWaitMsMax = deliveryLimits.rateWaitMsMax,
  } = options;
  const observer = safeObserver(given);
  const routes = new Map(
    Object.entries(options.destinations).map(([name, each]): [string, Route] => {
      const settings = checkedSettings(name, each);
      return [name, { ...settings, deadlines: createCallDeadlines(clock, settings.timeoutMs) }];
    }),
  );
  const limiter = createRateLimiter();
  const places = createCallPlaces(clock, rateWaitMsMax);
  const breakers = createBreakers({
    clock,
    observer,
    store: options.breakers,
    refreshMs: deliveryLimits.breakerRefreshMs,
  });

  const routeOf = (type: string): Route | undefined =>
    routes.get(type) ?? routes.get(type.split(':', 1)[0] ?? '');

  /** Undefined: it may go, and its turn has come. Rejects when the process stops. */
  async function turnOf(
    message: DeliveryMessage,
    settings: CheckedSettings,
    signal: AbortSignal,
  ): Promise<DeliveryOutcome | undefined> {
    const keys = limitedKeys(message, settings);
    if (keys.length > 0) {
      const admission = limiter.admit(keys, clock.now(), rateWaitMsMax);
      if (admission.kind === 'refused') return notTried('rate limit', admission.backInMs);
      if (admission.waitMs > 0) await clock.sleep(admission.waitMs, signal);
    }
    const { integrationType } = message;
    const { breaker } = settings;
    const asking = breaker === undefined ? undefined : breakers.mayProbe(integrationType, breaker);
    if (asking !== undefined && !(await asking)) {
      return notTried('the breaker is open', deliveryLimits.breakerRefreshMs);
    }
    return undefined;
  }

  async function attemptCall(
    message: DeliveryMessage,
    settings: Route,
    { signal, attempt }: { signal: AbortSignal; attempt: number },
  ): Promise<DeliveryOutcome> {
    const wait = await turnOf(message, settings, signal).catch(() => stopped);
    if (wait !== undefined) return wait;
    if (signal.aborted) return stopped;
    const { integrationType } = message;
    const { breaker } = settings;
    const answer = breaker === undefined ? undefined : breakers.admit(integrationType, breaker);
    if (answer?.kind === 'refused') return notTried('the breaker is open', answer.backInMs);
    const startedAtMs = clock.now();
    const outcome = await observed(message, attempt, (traced) =>
      callWithin(settings, traced, { signal, attempt }),
    );
    observer.record?.('delivery_duration_seconds', (clock.now() - startedAtMs) / 1_000, {
      destination: integrationType,
    });
    if (breaker !== undefined && answer !== undefined) {
      const result = resultOf(outcome, signal);
      breakers.settle(integrationType, breaker, { permit: answer.permit, result });
    }
    return outcome;
  }

  /** A span for each attempt, which the message carries to its receiver. */
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
    if (outcome.kind !== 'sent' && isTried(outcome)) span.fail(outcome.error);
    span.end();
    return outcome;
  }

  async function attemptInPlace(
    message: DeliveryMessage,
    settings: Route,
    context: { signal: AbortSignal; attempt: number },
  ): Promise<DeliveryOutcome> {
    const { integrationType } = message;
    const { concurrency, breaker } = settings;
    if (context.signal.aborted) return stopped;
    const state = breakers.stateOf(integrationType);
    // Neither a place nor tokens are spent on a destination that is left alone.
    if (breaker !== undefined && state.kind === 'open' && clock.now() < state.untilMs) {
      return notTried('the breaker is open', state.untilMs - clock.now());
    }
    if (concurrency === undefined) return attemptCall(message, settings, context);
    const place = await places
      .enter(integrationType, concurrency, context.signal)
      .catch(() => undefined);
    if (place === undefined) return stopped;
    if (place.kind === 'full') return notTried('its concurrency is used up', place.backInMs);
    const outcome = await attemptCall(message, settings, context);
    place.leave({ isTried: isTried(outcome) });
    return outcome;
  }

  return {
    breakerOf: (type) => breakers.stateOf(type),
    async deliver(message, { signal = neverAborted, attempt = (message.attempts ?? 0) + 1 } = {}) {
      const { integrationType, tenantId, userId, correlationId } = message;
      const settings = routeOf(integrationType);
      breakers.refresh();
      const outcome =
        settings === undefined
          ? unknownDestination(integrationType)
          : await attemptInPlace(message, settings, { signal, attempt });
      observer.count?.('delivery_attempts_total', {
        destination: integrationType,
        outcome: outcome.kind,
      });
      // What only waits for its turn is no failure.
      if (outcome.kind !== 'sent' && isTried(outcome)) {
        observer.log?.warn(
          {
            source: 'delivery',
            operation: 'OUTBOX_DELIVER',
            phase: outcome.kind === 'dead' ? 'DEAD' : 'FAILED',
            outboxId: message.id,
            destination: integrationType,
            tenantId,
            ...(userId === undefined ? {} : { userId }),
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

interface Route extends CheckedSettings {
  readonly deadlines: CallDeadlines;
}

interface CheckedSettings extends Omit<DestinationSettings, 'breaker' | 'timeoutMs'> {
  readonly breaker: BreakerPolicy | undefined;
  readonly timeoutMs: number;
}

function checkedSettings(name: string, each: Destination | DestinationSettings): CheckedSettings {
  const {
    breaker,
    timeoutMs = deliveryLimits.timeoutMs,
    ...rest
  } = typeof each === 'function' ? { send: each } : each;
  for (const key of ['rateLimit', 'tenantRateLimit'] as const) {
    const limit = rest[key];
    if (limit !== undefined) checkRateLimit(limit, `${name}.${key}`);
  }
  const policy = breaker === false ? undefined : { ...breakerLimits, ...breaker };
  const { concurrency } = rest;
  const numbers = { timeoutMs, ...(concurrency === undefined ? {} : { concurrency }), ...policy };
  for (const [key, value] of Object.entries(numbers)) {
    if (Number.isFinite(value) && value > 0) continue;
    throw new MillraceError('CONFIG_INVALID', `${name}: ${key} must be above 0`, {
      details: { destination: name, [key]: value },
    });
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
    // No tenant and no integration type holds a line break.
    keys.push({ key: `${integrationType}\n${tenantId}`, limit: tenantRateLimit });
  }
  return keys;
}

/** The destination gets a signal for the end of its time; one that does not listen is left behind. */
function callWithin(
  { send, timeoutMs, deadlines }: Route,
  message: DeliveryMessage,
  { signal, attempt }: { signal: AbortSignal; attempt: number },
): Promise<DeliveryOutcome> {
  const over = new AbortController();
  return new Promise((resolve) => {
    const leave = (reason: Error): void => {
      end({ kind: 'retry', error: reason.message, ambiguous: true });
      over.abort(reason);
    };
    const onStop = (): void => leave(aborted(signal));
    const done = deadlines.begin(() =>
      leave(new MillraceError('HANDLER_TIMEOUT', `no outcome within ${timeoutMs} ms`)),
    );
    const end = (outcome: DeliveryOutcome): void => {
      done();
      signal.removeEventListener('abort', onStop);
      resolve(outcome);
    };
    signal.addEventListener('abort', onStop);
    // A function of the user's may throw before it returns a promise.
    const call = (async () =>
      send(message, {
        idempotencyKey: idempotencyKeyOf(message),
        attempt,
        isRepeated: attempt > 1 || (message.starts ?? 1) > 1,
        signal: over.signal,
        tenantId: message.tenantId,
        correlationId: message.correlationId,
      }))();
    call.then(
      // To return is to have sent it, whatever a short function happens to return.
      (outcome) => end(outcome?.kind === undefined ? sent : outcome),
      (error: unknown) => end(outcomeOfError(error)),
    );
  });
}

const sent: DeliveryOutcome = { kind: 'sent' };
const stopped = notTried('the process stops', 0);

function resultOf(outcome: DeliveryOutcome, signal: AbortSignal): BreakerResult {
  if (outcome.kind !== 'retry') return { kind: 'worked' };
  if (signal.aborted || outcome.attempted === false) return { kind: 'cancelled' };
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

/** Perhaps another process knows it, or this one after its update: no message dies of a roll-out. */
function unknownDestination(integrationType: string): DeliveryOutcome {
  return {
    kind: 'retry',
    error: `no destination is set up for '${integrationType}'`,
    afterMs: deliveryLimits.unknownRetryMs,
  };
}
