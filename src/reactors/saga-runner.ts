// What runs a saga in this process: one subscription for the events of the outside and for the
// saga's own, and the timers.

import type { TenantLookup } from '../contracts/tenant.ts';
import { systemClock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { createLifecycle, withLifecycle, type Lifecycle } from '../foundation/lifecycle.ts';
import { silentObserver } from '../foundation/observer.ts';
import { isForgotten, subjectOf } from '../store/erasure.ts';
import type { EventStore } from '../store/event-store.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { shardOf } from '../subscriptions/rules/lane-of.ts';
import { subscription, type HandlerContext } from '../subscriptions/subscription.ts';
import {
  createSubscriptionRunner,
  type SubscriptionOptions,
  type SubscriptionRunner,
} from '../subscriptions/subscription-runner.ts';
import type { SubscriptionHost } from '../subscriptions/subscription-storage.ts';
import { decideDue, decideEvent, nextWork } from './decide-saga.ts';
import { createDriveSaga } from './drive-saga.ts';
import { keepSagaIndex } from './keep-saga-index.ts';
import type { SendCommand } from './reaction.ts';
import { sagaLimits, type Saga } from './saga.ts';
import { sagaStream, toFact } from './saga-fact.ts';
import type { SagaEntry, SagaHost, SagaIndex } from './saga-index.ts';
import { createSagaJournal } from './saga-journal.ts';
import { dueAtMs, type SagaState } from './saga-state.ts';
import { startSagaTimers, type SagaTimers } from './saga-timers.ts';

export interface SagaOptions extends SubscriptionOptions {
  readonly send: SendCommand;
  /** Default: the store's own. One that lacks sagas of this one's shards is filled from their streams. */
  readonly index?: SagaIndex;
  /** Tenants whose names hold a hyphen must be known. */
  readonly tenants?: TenantLookup;
  /** How often this process looks for timers that others have set. Default: 1 s. */
  readonly timerPollMs?: number;
}

export interface SagaRunner extends Lifecycle {
  /** Pausing, resetting, waiting: as with every subscription. */
  readonly subscription: SubscriptionRunner;
}

export function createSagaRunner(
  store: EventStore & Partial<SubscriptionHost> & Partial<SagaHost>,
  saga: Saga,
  { send, index: given, tenants, timerPollMs, ...options }: SagaOptions,
): SagaRunner {
  const { clock = systemClock, observer = silentObserver } = options;
  const index = indexOf(store, given);
  const journal = createSagaJournal(store, saga, { clock, tenants });
  const drive = createDriveSaga({ store, saga, journal, send, clock });
  const shards = saga.tuning.shards ?? 1;
  const settled = createSettled(sagaLimits.settledMax);
  let timers: SagaTimers | undefined;
  let keeper: AsyncDisposable | undefined;

  async function handle(
    event: RecordedEvent,
    { attempt, signal, caused }: HandlerContext<unknown>,
  ): Promise<void> {
    if (event.stream.startsWith(`${saga.category}-`)) {
      if (attempt === 1) tell(event);
      if (settled.isPast(event)) return;
      const state = await drive(event, { attempt, signal, trace: caused.headers });
      await enter(event.stream, state);
      if (nextWork(state).kind === 'none') settled.note(event.stream, state.revision);
      return;
    }
    // Another stream's events may have the names of our own.
    if (!saga.handles.has(event.type)) return;
    // The person was forgotten: nobody is left to act for.
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

  /** What people want to hear of: how sagas end, and that one waits for somebody. */
  function tell(own: RecordedEvent): void {
    const fact = toFact(own);
    if (fact?.kind === 'completed' || fact?.kind === 'compensated' || fact?.kind === 'parked') {
      observer.count?.('sagas_total', { saga: saga.subscription, outcome: fact.kind });
    }
    if (fact?.kind !== 'parked') return;
    const { stream, tenant, correlationId, eventId } = own;
    const { at, reason } = fact;
    observer.log?.error(
      { saga: saga.subscription, stream, tenant, correlationId, eventId, at, reason },
      'saga is parked',
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
    // Otherwise it would stand there as due until its event was handled.
    await enter(stream, state);
  }

  /** Again, for an index that may lack it. */
  async function reenter(stream: string): Promise<void> {
    try {
      await enter(stream, await journal.load(stream));
    } catch (error) {
      if (!hasCode(error, 'STREAM_DELETED')) throw error;
    }
  }

  const runner = createSubscriptionRunner(
    store,
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

/** Of the sagas that this process was at last: up to where nothing is left to do. */
interface Settled {
  isPast(own: Pick<RecordedEvent, 'stream' | 'revision'>): boolean;
  note(stream: string, revision: number): void;
}

/** Most of a saga's events were dealt with before they come: their appends came in one piece of work. */
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
  place: { readonly stream: string; readonly tenant: string; readonly key: string },
  state: SagaState,
  shards: number,
): SagaEntry {
  const { status, revision, updatedAt, parked, reason } = state;
  return {
    ...place,
    saga: saga.category,
    status,
    revision,
    updatedAtMs: Date.parse(updatedAt ?? ''),
    dueAtMs: dueAtMs(state),
    shard: shardOf(place.stream, shards),
    reason: parked?.reason ?? reason,
  };
}

export function indexOf(store: Partial<SagaHost>, given: SagaIndex | undefined): SagaIndex {
  const index = given ?? store.sagas;
  if (index !== undefined) return index;
  throw new MillraceError('NOT_SUPPORTED', 'this store has no index of sagas: pass one');
}
