// Sagas from the outside: where each of them is, and what an operator does with a parked one. It
// needs the saga's name only, none of its code.

import type { TenantLookup } from '../contracts/tenant.ts';
import { systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import type { EventStore } from '../store/event-store.ts';
import { decideResume } from './decide-saga.ts';
import { sagaLimits } from './saga.ts';
import { sagaCategory, sagaStream, type SagaName, type SagaOperator } from './saga-fact.ts';
import {
  sagaListLimit,
  type SagaEntry,
  type SagaHost,
  type SagaIndex,
  type SagaQuery,
} from './saga-index.ts';
import { createSagaJournal } from './saga-journal.ts';
import { indexOf } from './saga-runner.ts';
import type { SagaParked, SagaState, SagaStatus, SagaStepStatus } from './saga-state.ts';

export interface SagaAddress {
  readonly tenant: string;
  readonly key: string;
}

/** Where a saga is, for people. */
export interface SagaInfo extends SagaAddress {
  readonly stream: string;
  readonly status: SagaStatus;
  readonly revision: number;
  readonly data: unknown;
  readonly startedAt: string | undefined;
  readonly updatedAt: string | undefined;
  readonly correlationId: string | undefined;
  readonly steps: readonly {
    readonly step: string;
    readonly status: SagaStepStatus;
    readonly command: string | undefined;
    readonly reason: string | undefined;
  }[];
  readonly timers: readonly { readonly timer: string; readonly dueAt: string }[];
  /** Events that wait for the start, or for the saga to be resumed. */
  readonly held: number;
  /** Why it is compensated. */
  readonly reason: string | undefined;
  readonly parked: SagaParked | undefined;
}

export interface SagaPage {
  readonly sagas: readonly SagaEntry[];
  /** What `after` of the next page is; undefined: this is the last one. */
  readonly next: string | undefined;
}

export interface SagaAdmin {
  /** From its stream, so that it is never late. */
  get(address: SagaAddress): Promise<SagaInfo>;
  /** From the index, which follows within moments. */
  list(query?: Omit<SagaQuery, 'saga'>): Promise<SagaPage>;
  /** Lets a parked saga try again what it is parked at. */
  resume(address: SagaAddress, operator: SagaOperator): Promise<void>;
  /**
   * Lets a parked saga go on without it. A compensation was done by hand; a step without an answer
   * had no effect, and the saga is compensated.
   */
  skip(address: SagaAddress, operator: SagaOperator): Promise<void>;
}

/**
 * The operator's side of a saga.
 *
 * @example
 * import { memoryEventStore } from 'millrace/adapters/memory';
 * import { sagaAdmin } from 'millrace/reactors';
 *
 * await using store = memoryEventStore();
 * const sagas = sagaAdmin(store, { bc: 'shop', name: 'fulfilment', version: 1 });
 * const { sagas: parked } = await sagas.list({ status: 'parked' });
 * for (const { tenant, key } of parked) await sagas.resume({ tenant, key }, { by: 'ada' });
 */
export function sagaAdmin(
  store: EventStore & Partial<SagaHost>,
  saga: SagaName,
  options: {
    readonly index?: SagaIndex;
    readonly clock?: Clock;
    readonly tenants?: TenantLookup;
  } = {},
): SagaAdmin {
  const { clock = systemClock, tenants } = options;
  const journal = createSagaJournal(store, saga, { clock, tenants });
  const streamOf = (address: SagaAddress): string => sagaStream(saga, address, tenants);

  const known = (state: SagaState, { tenant, key }: SagaAddress): void => {
    if (state.revision !== -1) return;
    throw new MillraceError('SAGA_UNKNOWN', `${saga.name} has no saga '${key}'`, {
      details: { saga: saga.name, tenant, key },
    });
  };

  const goOn = async (
    address: SagaAddress,
    how: 'resume' | 'skip',
    { by, note }: SagaOperator,
  ): Promise<void> => {
    await journal.change(streamOf(address), (state) => {
      known(state, address);
      const operator = note === undefined ? { by } : { by, note };
      const facts = decideResume(state, how, operator);
      if (facts.length === 0) {
        const { status } = state;
        throw new MillraceError('SAGA_NOT_PARKED', `the saga '${address.key}' is ${status}`, {
          details: { ...address, status },
        });
      }
      const causationId = state.correlationId ?? address.key;
      return { facts, cause: { id: `${how} ${state.resumes}`, causationId } };
    });
  };

  return {
    async get(address) {
      const stream = streamOf(address);
      const state = await journal.load(stream);
      known(state, address);
      return toInfo(state, { stream, ...address });
    },
    async list({ limit = sagaListLimit, ...query } = {}) {
      const size = Math.min(Math.max(1, limit), sagaLimits.listMax);
      const found = await indexOf(store, options.index).list({
        ...query,
        saga: sagaCategory(saga),
        limit: size + 1,
      });
      const sagas = found.slice(0, size);
      return { sagas, next: found.length > size ? sagas.at(-1)?.stream : undefined };
    },
    resume: (address, operator) => goOn(address, 'resume', operator),
    skip: (address, operator) => goOn(address, 'skip', operator),
  };
}

function toInfo(
  state: SagaState,
  { stream, tenant, key }: SagaAddress & { readonly stream: string },
): SagaInfo {
  const { status, revision, data, startedAt, updatedAt, correlationId, reason, parked } = state;
  return {
    stream,
    tenant,
    key,
    status,
    revision,
    data,
    startedAt,
    updatedAt,
    correlationId,
    steps: state.steps.map((each) => ({
      step: each.step,
      status: each.status,
      command: each.request?.command.type,
      reason: each.reason,
    })),
    timers: [...state.timers].map(([timer, { dueAtMs }]) => ({
      timer,
      dueAt: new Date(dueAtMs).toISOString(),
    })),
    held: state.held.length,
    reason,
    parked,
  };
}
