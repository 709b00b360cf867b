// Runs a saga in this process: one subscription for the events that it handles and for the events of its streams,
// and the timers.

import type { TenantLookup } from '../contracts/tenant.ts';
import { systemClock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { createLifecycle, withLifecycle, type Lifecycle } from '../foundation/lifecycle.ts';
import { silentObserver } from '../foundation/observer.ts';
import { isForgotten, subjectOf } from '../store/erasure.ts';
import { compileFilter, matchesRow } from '../store/event-filter.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { shardOf } from '../subscriptions/rules/lane-of.ts';
import { subscription, type HandlerContext } from '../subscriptions/subscription.ts';
import {
  createSubscriptionRunner,
  type SubscriptionOptions,
  type SubscriptionRunner,
} from '../subscriptions/subscription-runner.ts';
import type { SubscriptionRoles } from '../subscriptions/subscription-storage.ts';
import { decideDue, decideEvent, nextWork } from './decide-saga.ts';
import { createDriveSaga } from './drive-saga.ts';
import { keepSagaIndex } from './keep-saga-index.ts';
import type { SendCommand } from './reaction.ts';
import { sagaLimits, type Saga } from './saga.ts';
import { sagaStream, toFact } from './saga-fact.ts';
import type { SagaEntry, SagaIndex } from './saga-index.ts';
import { createSagaJournal } from './saga-journal.ts';
import { dueAtMs, type SagaState } from './saga-state.ts';
import { startSagaTimers, type SagaTimers } from './saga-timers.ts';

/** What a saga reads and stores; the handle of an engine with sagas has these roles. */
export interface SagaRoles extends SubscriptionRoles {
  /** An incomplete index is filled from the saga streams. */
  readonly sagas: SagaIndex;
}

export interface SagaOptions extends SubscriptionOptions {
  readonly send: SendCommand;
  /** Required for tenants whose names contain a hyphen. */
  readonly tenants?: TenantLookup | undefined;
  /** How often this process polls for timers set by other processes. Default: 1 s. */
  readonly timerPollMs?: number | undefined;
}

export interface SagaRunner extends Lifecycle {
  /** Pauses, resets and waits for the subscription of the saga. */
  readonly subscription: SubscriptionRunner;
}

/**
 * Runs a saga in this process until it is stopped. In several processes, each saga is handled by one of
 * them at a time, and another one takes over when that process dies.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { defineEvent } from 'millrace/contracts';
 * import { saga, startSaga } from 'millrace/reactors';
 * import { z } from 'zod';
 *
 * const asked = defineEvent('question.asked.v1', z.object({ id: z.string() }));
 * const reminder = saga({
 *   bc: 'help',
 *   name: 'reminder',
 *   version: 1,
 *   from: 'end',
 *   events: [asked],
 *   startOn: ['question.asked.v1'],
 *   correlateBy: ({ payload }) => payload.id,
 *   initial: {},
 *   on: { 'question.asked.v1': () => [{ timer: 'tomorrow', afterMs: 86_400_000 }] },
 *   steps: {},
 *   timers: { tomorrow: () => [{ end: 'completed' }] },
 * });
 *
 * await using db = openMemory();
 * await using runner = await startSaga(db, reminder, {
 *   send: async ({ command }) => console.log(command.type),
 * });
 * await runner.subscription.whenCaughtUp();
 */
export async function startSaga(
  roles: SagaRoles,
  saga: Saga,
  options: SagaOptions,
): Promise<SagaRunner> {
  const runner = createSagaRunner(roles, saga, options);
  await runner.start();
  return runner;
}

export function createSagaRunner(
  roles: SagaRoles,
  saga: Saga,
  { send, tenants, timerPollMs, ...options }: SagaOptions,
): SagaRunner {
  const { clock = systemClock, observer = silentObserver } = options;
  const { store } = roles;
  const index = indexOf(roles);
  const journal = createSagaJournal(store, saga, { clock, tenants });
  const drive = createDriveSaga({ store, saga, journal, send, clock });
  const shards = saga.tuning.shards ?? 1;
  const settled = createSettled(sagaLimits.settledMax);
  const external = compileFilter(saga.filter);
  let timers: SagaTimers | undefined;
  let keeper: AsyncDisposable | undefined;

  async function handle(
    event: RecordedEvent,
    { attempt, signal, caused }: HandlerContext<unknown>,
  ): Promise<void> {
    if (event.stream.startsWith(`${saga.category}-`)) {
      if (attempt === 1) reportOutcome(event);
      if (settled.isPast(event)) return;
      const state = await drive(event, { attempt, signal, trace: caused.headers });
      await enter(event.stream, state);
      if (nextWork(state).kind === 'none') settled.note(event.stream, state.revision);
      return;
    }
    // Events in other streams may have the same types as saga events, or those of another bounded context.
    if (!matchesRow(external, event, event.tenant)) return;
    // The data subject was forgotten, so there is nothing to act on.
    if (isForgotten(event.payload)) return;
    const key = saga.correlate(event);
    if (key === undefined) return;
    const { tenant, eventId, correlationId } = event;
    await journal.change(sagaStream(saga, { tenant, key }, tenants), (state) => ({
      facts: decideEvent(state, event, { saga, tenant, key, nowMs: clock.now() }),
      cause: { id: `event ${eventId}`, causationId: eventId, trace: caused.headers },
      correlationId,
      subject: subjectOf(event),
    }));
  }

  /** Counts ended and parked sagas, and logs parked ones. */
  function reportOutcome(own: RecordedEvent): void {
    const fact = toFact(own);
    if (fact?.kind === 'completed' || fact?.kind === 'compensated' || fact?.kind === 'parked') {
      observer.count?.('sagas_total', { saga: saga.subscription, outcome: fact.kind });
    }
    if (fact?.kind !== 'parked') return;
    const { stream, tenant, correlationId, eventId } = own;
    const { at, reason } = fact;
    observer.log?.error(
      { saga: saga.subscription, stream, tenant, correlationId, eventId, at, reason },
      'saga parked',
    );
  }

  async function enter(stream: string, state: SagaState): Promise<void> {
    if (state.revision === -1) return;
    const entry = toEntry(saga, { stream, ...journal.addressOf(stream) }, state, shards);
    await index.put(entry);
    if (entry.dueAtMs !== undefined) timers?.note(entry.dueAtMs);
  }

  async function fire(stream: string): Promise<void> {
    const state = await journal.change(stream, (now) => {
      const facts = decideDue(now, clock.now());
      const setBy = facts.map((fact) =>
        fact.kind === 'timer-fired' ? now.timers.get(fact.timer)?.setBy : '',
      );
      return { facts, cause: { id: `due ${setBy.join(' ')}`, causationId: setBy[0] ?? stream } };
    });
    // Update the entry now: otherwise it would stay due until the timer event is handled.
    await enter(stream, state);
  }

  /** Writes the entry again, for an incomplete index. */
  async function reenter(stream: string): Promise<void> {
    try {
      await enter(stream, await journal.load(stream));
    } catch (error) {
      if (!hasCode(error, 'STREAM_DELETED')) throw error;
    }
  }

  const runner = createSubscriptionRunner(
    roles,
    subscription({
      ...saga.tuning,
      name: saga.subscription,
      from: saga.from,
      filter: { types: saga.types },
      retry: saga.retry,
      timeoutMs: saga.commandTimeoutMs + sagaLimits.answerMarginMs,
      handler: handle,
    }),
    options,
  );

  const lifecycle = createLifecycle({
    async start() {
      await runner.start();
      const own = () => runner.status.shards.map(({ shard }) => shard);
      const common = { clock, observer, pollMs: timerPollMs ?? sagaLimits.pollMs, shards: own };
      timers = startSagaTimers({ ...common, saga: saga.category, index, fire });
      const { upkeep } = index;
      if (upkeep === undefined) return;
      keeper = keepSagaIndex({ ...common, store, saga, upkeep, enter: reenter });
    },
    async stop() {
      await keeper?.[Symbol.asyncDispose]();
      keeper = undefined;
      await timers?.[Symbol.asyncDispose]();
      timers = undefined;
      await runner.stop();
    },
  });

  return withLifecycle(lifecycle, { subscription: runner });
}

/** For recently handled sagas, the revision up to which no work is left. */
interface Settled {
  isPast(own: Pick<RecordedEvent, 'stream' | 'revision'>): boolean;
  note(stream: string, revision: number): void;
}

/** One piece of work appends several events, so most of them need no work when they are delivered. */
function createSettled(sizeMax: number): Settled {
  const revisions = new Map<string, number>();
  return {
    isPast: ({ stream, revision }) => revision <= (revisions.get(stream) ?? -1),
    note(stream, revision) {
      revisions.delete(stream);
      revisions.set(stream, revision);
      if (revisions.size <= sizeMax) return;
      const [oldest] = revisions.keys();
      if (oldest !== undefined) revisions.delete(oldest);
    },
  };
}

function toEntry(
  saga: Saga,
  address: { readonly stream: string; readonly tenant: string; readonly key: string },
  state: SagaState,
  shards: number,
): SagaEntry {
  const { status, revision, updatedAt, parked, reason } = state;
  return {
    ...address,
    saga: saga.category,
    status,
    revision,
    updatedAtMs: Date.parse(updatedAt ?? ''),
    dueAtMs: dueAtMs(state),
    shard: shardOf(address.stream, shards),
    reason: parked?.reason ?? reason,
  };
}

/** Checks the role of callers without types. */
export function indexOf({ sagas }: Partial<Pick<SagaRoles, 'sagas'>>): SagaIndex {
  if (sagas !== undefined) return sagas;
  throw new MillraceError(
    'NOT_SUPPORTED',
    'this engine has no saga index: pass `sagas` of another engine, such as PostgreSQL or SQLite',
    { details: { role: 'sagas' } },
  );
}
