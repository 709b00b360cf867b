// Administration of sagas: shows their state, and lets an operator resume or skip a parked one. It needs
// only the saga's name, not its code.

import { parseStreamName } from '../contracts/stream-name.ts';
import type { TenantLookup } from '../contracts/tenant.ts';
import { systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { decideResume } from './decide-saga.ts';
import { sagaLimits } from './saga.ts';
import { sagaCategory, sagaStream, type SagaName, type SagaOperator } from './saga-fact.ts';
import { sagaListLimit, type SagaEntry, type SagaQuery } from './saga-index.ts';
import { createSagaJournal } from './saga-journal.ts';
import { indexOf, type SagaRoles } from './saga-runner.ts';
import type { SagaParked, SagaState, SagaStatus, SagaStepStatus } from './saga-state.ts';

export interface SagaAddress {
  readonly tenant: string;
  readonly key: string;
}

/** The state of a saga, for display. */
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
  /** Number of events that wait until the saga starts or is resumed. */
  readonly queuedEvents: number;
  /** Why the saga is compensated. */
  readonly reason: string | undefined;
  readonly parked: SagaParked | undefined;
}

export interface SagaPage {
  readonly items: readonly SagaEntry[];
  /** Pass it as `after` for the next page; undefined: this is the last page. */
  readonly cursor: string | undefined;
}

export interface SagaAdmin {
  /** Reads the stream, so the result is always current. */
  get(address: SagaAddress): Promise<SagaInfo>;
  /** Reads the index, which may lag slightly. */
  list(query?: Omit<SagaQuery, 'saga'>): Promise<SagaPage>;
  /** Retries the work that the saga is parked at. */
  resume(address: SagaAddress, operator: SagaOperator): Promise<void>;
  /**
   * Continues without the work that the saga is parked at. A skipped compensation counts as done by hand;
   * a skipped step counts as failed, and the saga is compensated.
   */
  skip(address: SagaAddress, operator: SagaOperator): Promise<void>;
}

/**
 * Creates the administration of a saga.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { sagaAdmin } from 'millrace/reactors';
 *
 * await using db = openMemory();
 * const sagas = sagaAdmin(db, { bc: 'shop', name: 'fulfilment', version: 1 });
 * const { items: parked } = await sagas.list({ status: 'parked' });
 * for (const { tenant, key } of parked) await sagas.resume({ tenant, key }, { by: 'ada' });
 */
export function sagaAdmin(
  roles: Pick<SagaRoles, 'sagas' | 'store'>,
  saga: SagaName,
  options: {
    readonly clock?: Clock | undefined;
    readonly tenants?: TenantLookup | undefined;
  } = {},
): SagaAdmin {
  const { clock = systemClock, tenants } = options;
  const journal = createSagaJournal(roles.store, saga, { clock, tenants });
  const streamOf = (address: SagaAddress): string => sagaStream(saga, address, tenants);

  const assertExists = (state: SagaState, { tenant, key }: SagaAddress): void => {
    if (state.revision !== -1) return;
    throw new MillraceError('SAGA_UNKNOWN', `unknown saga '${key}' of '${saga.name}'`, {
      details: { saga: saga.name, tenant, key },
    });
  };

  const unpark = async (
    address: SagaAddress,
    how: 'resume' | 'skip',
    { by, note }: SagaOperator,
  ): Promise<void> => {
    await journal.change(streamOf(address), (state) => {
      assertExists(state, address);
      const operator = note === undefined ? { by } : { by, note };
      const facts = decideResume(state, how, operator);
      if (facts.length === 0) {
        const { status } = state;
        throw new MillraceError(
          'SAGA_NOT_PARKED',
          `saga '${address.key}' is not parked but ${status}`,
          {
            details: { ...address, status },
          },
        );
      }
      const causationId = state.correlationId ?? address.key;
      return { facts, cause: { id: `${how} ${state.resumes}`, causationId } };
    });
  };

  return {
    async get(address) {
      const stream = streamOf(address);
      const state = await journal.load(stream);
      assertExists(state, address);
      return toInfo(state, { stream, ...address });
    },
    async list({ limit = sagaListLimit, ...query } = {}) {
      const size = Math.min(Math.max(1, limit), sagaLimits.listMax);
      const found = await indexOf(roles).list({
        ...query,
        saga: sagaCategory(saga),
        limit: size + 1,
      });
      const items = found.slice(0, size);
      return { items, cursor: found.length > size ? items.at(-1)?.stream : undefined };
    },
    resume: (address, operator) => unpark(address, 'resume', operator),
    skip: (address, operator) => unpark(address, 'skip', operator),
  };
}

/** The saga of a stream: the stream name identifies the saga, its first event the tenant. */
export async function sagaAt(
  roles: Pick<SagaRoles, 'sagas' | 'store'>,
  stream: string,
  options: { readonly clock?: Clock } = {},
): Promise<{ readonly sagas: SagaAdmin; readonly address: SagaAddress; readonly name: string }> {
  const [first] = await roles.store.readStream(stream, { limit: 1 }).toArray();
  // Only the event shows where a tenant name with a hyphen ends.
  const tenants = new Set(first === undefined ? [] : [first.tenant]);
  const { bc, agg, version, tenant, id } = parseStreamName(stream, tenants);
  const sagas = sagaAdmin(roles, { bc, name: agg, version }, { ...options, tenants });
  return { sagas, address: { tenant, key: id }, name: agg };
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
    queuedEvents: state.queued.length,
    reason,
    parked,
  };
}
