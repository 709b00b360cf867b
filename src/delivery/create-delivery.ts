// From a message to its outcome: find the destination, mind its limits and its breaker, call it within
// its time, and never throw. The dispatcher of the outbox takes `deliver` as it is.

import { aborted, systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import { traceOf } from '../foundation/trace-of.ts';
import { safeObserver } from '../subscriptions/safe-observer.ts';
import { createCallDeadlines, type CallDeadlines } from './call-deadlines.ts';
import {
  admitCall,
  breakerLimits,
  freshBreaker,
  settleCall,
  type BreakerPermit,
  type BreakerPolicy,
  type BreakerResult,
  type BreakerState,
} from './circuit-breaker.ts';
import { idempotencyKeyOf, type DeliveryMessage } from './delivery-message.ts';
import { outcomeOfError, type DeliveryOutcome } from './delivery-outcome.ts';
import type { Destination } from './destination.ts';
import { checkRateLimit, type RateLimit } from './rate-limit.ts';
import { createRateLimiter, type LimitedKey } from './rate-limiter.ts';

export interface DestinationSettings {
  readonly send: Destination;
  /** Of everything that goes there. */
  readonly rateLimit?: RateLimit;
  /** Of each tenant there; messages without a tenant share one. */
  readonly tenantRateLimit?: RateLimit;
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
  const breakers = new Map<string, BreakerState>();

  const routeOf = (type: string): Route | undefined =>
    routes.get(type) ?? routes.get(type.split(':', 1)[0] ?? '');

  const breakerOf = (type: string): BreakerState => breakers.get(type) ?? freshBreaker;

  function setBreaker(type: string, state: BreakerState): void {
    const before = breakerOf(type);
    if (state === before) return;
    // Like a fresh one, but its era must go on: results from before it closed may still come.
    breakers.set(type, state);
    if (state.kind === before.kind) return;
    observer.log?.warn({ destination: type, from: before.kind, to: state.kind }, 'breaker changed');
    observer.gauge?.('delivery_breaker_open', state.kind === 'closed' ? 0 : 1, {
      destination: type,
    });
  }

  /** Undefined: it may go, and its turn has come. */
  async function held(
    message: DeliveryMessage,
    settings: CheckedSettings,
    signal: AbortSignal,
  ): Promise<DeliveryOutcome | undefined> {
    const { integrationType } = message;
    const state = breakerOf(integrationType);
    // No tokens are spent on a destination that is left alone.
    if (state.kind === 'open' && clock.now() < state.untilMs) {
      return notTried('the breaker is open', state.untilMs - clock.now());
    }
    const keys = limitedKeys(message, settings);
    if (keys.length === 0) return undefined;
    const admission = limiter.admit(keys, clock.now(), rateWaitMsMax);
    if (admission.kind === 'refused') return notTried('rate limit', admission.backInMs);
    if (admission.waitMs > 0) await clock.sleep(admission.waitMs, signal);
    return undefined;
  }

  async function attemptCall(
    message: DeliveryMessage,
    settings: Route,
    { signal, attempt }: { signal: AbortSignal; attempt: number },
  ): Promise<DeliveryOutcome> {
    const { integrationType } = message;
    if (signal.aborted) return notTried('the process stops', 0);
    const wait = await held(message, settings, signal).catch(() =>
      notTried('the process stops', 0),
    );
    if (wait !== undefined) return wait;
    if (signal.aborted) return notTried('the process stops', 0);
    const { breaker } = settings;
    let permit: BreakerPermit | undefined;
    if (breaker !== undefined) {
      const answer = admitCall(breakerOf(integrationType), breaker, clock.now());
      setBreaker(integrationType, answer.state);
      if (answer.kind === 'refused') return notTried('the breaker is open', answer.backInMs);
      permit = answer.permit;
    }
    const startedAtMs = clock.now();
    const outcome = await observed(message, attempt, (traced) =>
      callWithin(settings, traced, { signal, attempt }),
    );
    const seconds = (clock.now() - startedAtMs) / 1_000;
    if (breaker !== undefined && permit !== undefined) {
      const result = resultOf(outcome, signal);
      const settled = { permit, result, nowMs: clock.now() };
      setBreaker(integrationType, settleCall(breakerOf(integrationType), breaker, settled));
    }
    observer.record?.('delivery_duration_seconds', seconds, { destination: integrationType });
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

  return {
    breakerOf,
    async deliver(message, { signal = neverAborted, attempt = (message.attempts ?? 0) + 1 } = {}) {
      const { integrationType, tenantId, correlationId } = message;
      const settings = routeOf(integrationType);
      const outcome =
        settings === undefined
          ? unknownDestination(integrationType)
          : await attemptCall(message, settings, { signal, attempt });
      observer.count?.('delivery_attempts_total', {
        destination: integrationType,
        outcome: outcome.kind,
      });
      // What only waits for its turn is no failure.
      if (outcome.kind !== 'sent' && isTried(outcome)) {
        observer.log?.warn(
          {
            operation: 'OUTBOX_DELIVER',
            phase: outcome.kind === 'dead' ? 'DEAD' : 'FAILED',
            outboxId: message.id,
            destination: integrationType,
            tenantId,
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
  const numbers = { timeoutMs, ...policy };
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
