// One call of a handler: its context, its time limit, and the commit of its effects.

import { buildIdempotencyKey } from '../../contracts/idempotency-key.ts';
import { createCallDeadlines } from '../../foundation/async/call-deadlines.ts';
import type { Clock } from '../../foundation/clock.ts';
import { hasCode, MillraceError } from '../../foundation/error.ts';
import { traceOf, type TraceContext } from '../../foundation/observer.ts';
import type { RecordedEvent } from '../../store/recorded-event.ts';
import { resolveTenants, type ResolveTenant } from '../../store/stream-owners.ts';
import { Snooze, Terminal } from '../../foundation/handler-outcome.ts';
import type {
  ClaimKey,
  EffectTransaction,
  Fence,
  Settlement,
  SettleResult,
  SubscriptionStorage,
} from '../subscription-storage.ts';
import type { Caused, HandlerContext, Subscription } from '../subscription.ts';
import type { CheckpointWriter } from './checkpoint-writer.ts';

export interface HandlerWork {
  readonly events: readonly RecordedEvent[];
  readonly attempt: number;
  /** Checkpoint tickets of the events. */
  readonly tickets: readonly number[];
  /** Trace context of the attempt's span. */
  readonly trace?: TraceContext | undefined;
  /** Set when the event comes from the waiting events. */
  readonly drained?: Settlement | undefined;
}

export interface HandlerCalls {
  /** Undefined if the call completed synchronously. Fails if the handler or the commit fails. */
  run(work: HandlerWork): Promise<void> | undefined;
}

/** Time that a claim outlives its handler's timeout. */
const claimMarginMs = 5_000;

export function createHandlerCalls<Transaction>(
  subscription: Subscription<Transaction>,
  storage: SubscriptionStorage<Transaction>,
  options: {
    readonly fence: Fence;
    readonly signal: AbortSignal;
    readonly clock: Clock;
    readonly carry: CheckpointWriter['carry'];
    readonly resolveTenant?: ResolveTenant | undefined;
  },
): HandlerCalls {
  const { fence, signal, resolveTenant } = options;
  const { name, service, handler, batchHandler, timeoutMs } = subscription;
  const operation = name.split(':')[2] ?? name;
  const idempotencyKeyOf = ({ tenant, eventId }: RecordedEvent): string =>
    buildIdempotencyKey({ tenant, service, operation, naturalKey: eventId });

  const deadlines = createCallDeadlines(options.clock, signal);

  /** After the signal, a call has no time limit. */
  function withinLimit(work: Promise<void>): Promise<void> {
    const expired = Promise.withResolvers<void>();
    const end = deadlines.begin(timeoutMs, (why) => {
      if (why === 'stopped') return;
      expired.reject(new MillraceError('HANDLER_TIMEOUT', `the handler exceeded ${timeoutMs} ms`));
    });
    return Promise.race([work, expired.promise]).finally(end);
  }

  /** Claims whose external effect happened but is not confirmed yet; the next attempt confirms it first. */
  const unconfirmed = new Map<string, number>();

  return {
    run({ events, attempt, tickets, trace, drained }) {
      const [event] = events;
      if (event === undefined) return undefined;
      for (const { unreadable } of events) {
        if (unreadable !== undefined) throw new Terminal(unreadable);
      }
      const causedBy = ({ correlationId, eventId, headers }: RecordedEvent): Caused => ({
        correlationId,
        causationId: eventId,
        // An event caused by one event of a batch stays in the trace of that event.
        headers: {
          ...(events.length > 1 ? (traceOf(headers) ?? trace) : (trace ?? traceOf(headers))),
        },
      });
      let own = event;
      let effect: Promise<EffectTransaction<Transaction>> | undefined;
      let claiming: Promise<boolean> | undefined;
      let claimToken: number | undefined;
      let controller: AbortController | undefined;
      let ownSignal: AbortSignal | undefined;

      const context: HandlerContext<Transaction> = {
        subscription: name,
        attempt,
        token: fence.token,
        get signal() {
          controller ??= new AbortController();
          ownSignal ??= AbortSignal.any([signal, controller.signal]);
          return ownSignal;
        },
        get idempotencyKey() {
          return idempotencyKeyOf(own);
        },
        idempotencyKeyOf,
        get caused() {
          return causedBy(event);
        },
        causedBy,
        async transaction() {
          effect ??= storage.begin(fence);
          return (await effect).transaction;
        },
        claim: () => (claiming ??= claim()),
      };

      const call = (given: readonly RecordedEvent[]): void | Promise<void> => {
        own = given[0] ?? event;
        return batchHandler === undefined ? handler?.(own, context) : batchHandler(given, context);
      };
      const resolved = resolveOrEnd(events, resolveTenant);
      const result = isResolved(resolved) ? call(resolved) : resolved.then(call);
      const isComplete =
        result === undefined &&
        effect === undefined &&
        claiming === undefined &&
        drained === undefined;
      return isComplete ? undefined : finish(result);

      async function claim(): Promise<boolean> {
        const before = unconfirmed.get(claimKey().eventId);
        if (before !== undefined && (await confirm(before))) return false;
        const ttlMs = subscription.claimTtlMs;
        const leaseMs = timeoutMs + claimMarginMs;
        const claimed = await storage.processed.claim(claimKey(), { leaseMs, ttlMs });
        if (claimed.kind === 'done') return false;
        if (claimed.kind === 'busy') {
          throw new Snooze(claimed.retryInMs, 'another process holds the claim');
        }
        claimToken = claimed.token;
        return true;
      }

      async function finish(running: void | Promise<void>): Promise<void> {
        try {
          if (running !== undefined) await withinLimit(running);
          // Confirm the external effect before the commit, because no rollback undoes it: if only the
          // commit fails, the next attempt must not repeat the effect.
          if (claimToken !== undefined) await confirm(claimToken);
          if (effect !== undefined || drained !== undefined) await commit();
        } catch (error) {
          controller?.abort(error);
          if (effect !== undefined || claimToken !== undefined) {
            await undo(hasCode(error, 'HANDLER_TIMEOUT') ? 'late' : undefined);
          }
          throw error;
        }
      }

      /** Returns false if another process took over the claim. */
      async function confirm(token: number): Promise<boolean> {
        const key = claimKey();
        claimToken = undefined;
        unconfirmed.set(key.eventId, token);
        const isConfirmed = await storage.processed.confirm(key, token);
        unconfirmed.delete(key.eventId);
        return isConfirmed;
      }

      function claimKey(): ClaimKey {
        return { eventId: event?.eventId ?? '', handler: name };
      }

      async function commit(): Promise<void> {
        if (effect !== undefined) {
          const settled = await commitEffect(await effect);
          // The response to an earlier commit was lost, so its effects exist. For a batch this may hold for
          // some events only, so retry them one by one.
          if (settled === 'duplicate' && events.length > 1)
            throw new Error('partly processed before');
          effect = undefined;
        } else if (drained !== undefined) {
          await storage.settle(fence, drained);
        }
      }

      async function commitEffect(open: EffectTransaction<Transaction>): Promise<SettleResult> {
        if (drained !== undefined) return open.commit(drained);
        const positions = events.map(({ position }) => position);
        const carried = options.carry(tickets);
        let settled: SettleResult | undefined;
        try {
          settled = await open.commit({
            kind: 'delivered',
            positions,
            checkpoint: carried?.position,
          });
          return settled;
        } finally {
          carried?.end(settled === 'settled');
        }
      }

      async function undo(why: 'late' | undefined): Promise<void> {
        const open = await effect?.catch(() => undefined);
        // On a broken connection the rollback throws as well; that error does not count against the event.
        await open?.rollback(why);
        if (claimToken !== undefined && why === undefined) {
          await storage.processed.release(claimKey(), claimToken);
        }
      }
    },
  };
}

/** An event that fails here would fail again, so it becomes a dead letter. */
function resolveOrEnd(
  events: readonly RecordedEvent[],
  resolve: ResolveTenant | undefined,
): ReturnType<typeof resolveTenants> {
  try {
    const resolved = resolveTenants(events, resolve);
    return isResolved(resolved)
      ? resolved
      : resolved.catch((error: unknown) => {
          throw terminalMismatch(error);
        });
  } catch (error) {
    throw terminalMismatch(error);
  }
}

function isResolved(
  events: readonly RecordedEvent[] | Promise<readonly RecordedEvent[]>,
): events is readonly RecordedEvent[] {
  return Array.isArray(events);
}

function terminalMismatch(error: unknown): unknown {
  if (!hasCode(error, 'TENANT_MISMATCH') && !hasCode(error, 'ENVELOPE_INVALID')) return error;
  return new Terminal(`${error.code}: ${error.message}`, { cause: error });
}
