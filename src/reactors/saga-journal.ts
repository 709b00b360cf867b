// Changes a saga's stream with optimistic concurrency: read, decide, append at the revision that was read.
// After a conflict, the change reads and decides again.

import type { TenantLookup } from '../contracts/tenant.ts';
import { parseStreamName } from '../contracts/stream-name.ts';
import type { Clock } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';
import type { EventStore } from '../store/event-store.ts';
import { ownerMismatch } from '../store/stream-owners.ts';
import { sagaLimits } from './saga.ts';
import {
  skeletonOf,
  toEnvelopes,
  type FactCause,
  type SagaFact,
  type SagaName,
} from './saga-fact.ts';
import { evolveSaga, foldSaga, type SagaState } from './saga-state.ts';

export interface SagaChange {
  readonly facts: readonly SagaFact[];
  readonly cause: FactCause;
  /** Correlation id of the causing event; a started saga keeps its correlation id. */
  readonly correlationId?: string | undefined;
  /** The data subject of that event. */
  readonly subject?: string | undefined;
}

export interface SagaJournal {
  load(stream: string): Promise<SagaState>;
  /** Decides again after each conflict; `decide` returns undefined if there is nothing to write. */
  change(stream: string, decide: (state: SagaState) => SagaChange | undefined): Promise<SagaState>;
  /** The tenant and key of a saga's stream. */
  addressOf(stream: string): { readonly tenant: string; readonly key: string };
}

export function createSagaJournal(
  store: EventStore,
  saga: SagaName,
  { clock, tenants }: { readonly clock: Clock; readonly tenants?: TenantLookup | undefined },
): SagaJournal {
  const { bc, name, version } = saga;

  const addressOf: SagaJournal['addressOf'] = (stream) => {
    const { tenant, id } = parseStreamName(stream, tenants);
    return { tenant, key: id };
  };

  const load = async (stream: string): Promise<SagaState> => {
    const events = await store.readStream(stream).toArray();
    const [first] = events;
    if (first !== undefined && first.tenant !== addressOf(stream).tenant)
      throw ownerMismatch(stream);
    return foldSaga(events);
  };

  return {
    load,
    addressOf,
    async change(stream, decide) {
      let isForgotten = false;
      for (let conflicts = 0; ;) {
        const state = await load(stream);
        const change = decide(state);
        if (change === undefined || change.facts.length === 0) return state;
        const { facts, cause, subject = state.subject } = change;
        const isStart = facts.some(({ kind }) => kind === 'started');
        const flow = isStart ? change.correlationId : state.correlationId;
        const correlationId = flow ?? change.correlationId ?? cause.causationId;
        const address = { bc, name, version, ...addressOf(stream) };
        const written = isForgotten ? facts.map(skeletonOf) : facts;
        const envelopes = toEnvelopes(
          written,
          {
            ...address,
            stream,
            revision: state.revision,
            correlationId,
            subject: isForgotten ? undefined : subject,
          },
          cause,
          clock,
        );
        try {
          const { revision, isDuplicate } = await store.append(stream, envelopes, {
            expected: state.revision === -1 ? 'none' : state.revision,
          });
          // The first append counts, so load its events.
          if (isDuplicate) return await load(stream);
          const after = envelopes.reduce(
            (before, envelope, index) => evolveSaga(before, written[index] as SagaFact, envelope),
            state,
          );
          const updatedAt = envelopes.at(-1)?.occurredAt;
          return { ...after, revision, updatedAt, subject: subject ?? after.subject };
        } catch (error) {
          if (hasCode(error, 'SUBJECT_FORGOTTEN') && !isForgotten) {
            // The saga continues without the personal data.
            isForgotten = true;
            continue;
          }
          conflicts += 1;
          const isOver = conflicts > sagaLimits.conflictRetriesMax;
          if (!hasCode(error, 'VERSION_CONFLICT') || isOver) throw error;
        }
      }
    },
  };
}
