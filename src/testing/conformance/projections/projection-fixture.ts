// The fixture of running projections: counters whose documents show which events they contain.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';
import { newEvent } from '../store/fixture.ts';
import { documentsOf, type Documents } from '../../../projections/documents.ts';
import type { InlineRoles } from '../../../projections/inline-appends.ts';
import {
  projection,
  type ProjectedEvent,
  type Projection,
} from '../../../projections/projection.ts';
import { readModel } from '../../../projections/read-model.ts';
import type { ProjectionRoles } from '../../../projections/start-projection.ts';

export type ProjectionHandle = ProjectionRoles & InlineRoles;

export interface ProjectionFixture {
  /** Opens an engine; it may return the same handle each time. The fixture closes it. */
  open(): Promise<ProjectionHandle>;
}

export interface Counter {
  readonly name: string;
  readonly total: number;
  /** The number of applied events, which reveals a duplicate. */
  readonly events: number;
  readonly last: number;
}

interface Counted {
  readonly amount: number;
}

/** A separate category, model and projection for each case. */
export interface Counters {
  readonly aggregate: string;
  stream(id: string, tenant?: string): string;
  event(
    type: string,
    payload?: unknown,
    fields?: Partial<DomainEventEnvelope>,
  ): DomainEventEnvelope;
  add(...amounts: readonly number[]): DomainEventEnvelope[];
  projection(options?: CounterOptions): Projection<Counter>;
  documents(db: Pick<ProjectionHandle, 'readModels'>, version?: number): Documents<Counter>;
}

interface CounterOptions {
  readonly version?: number | undefined;
  readonly onAdded?: ((event: ProjectedEvent<Counted>) => void) | undefined;
  readonly id?: ((event: ProjectedEvent) => string) | undefined;
  readonly shards?: number | undefined;
  readonly batchSize?: number | undefined;
}

export function newCounters(): Counters {
  const aggregate = `c${randomUUID().replaceAll('-', '')}`;
  const model = (version: number) =>
    readModel<Counter>({
      bc: 'counting',
      aggregate,
      version,
      indexes: { name: ({ name }) => name },
      sets: { positive: ({ total }) => total > 0 },
      ranges: { total: ({ total }) => total },
    });
  const event: Counters['event'] = (action, payload = {}, fields = {}) =>
    newEvent({ type: `${aggregate}.${action}.v1`, payload, ...fields });
  return {
    aggregate,
    stream: (id, tenant = 'core') => `counting.${aggregate}.v1-${tenant}-${id}`,
    event,
    add: (...amounts) => amounts.map((amount) => event('added', { amount })),
    projection: ({ version = 1, onAdded, id, shards, batchSize } = {}) =>
      projection({
        name: `sub:counting:${aggregate}:v${version}`,
        readModel: model(version),
        filter: { category: `counting.${aggregate}.v1` },
        ...(id === undefined ? {} : { id }),
        ...(shards === undefined ? {} : { shards }),
        ...(batchSize === undefined ? {} : { batchSize }),
        retry: { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0, attemptsMax: 2 },
        on: {
          [`${aggregate}.added.v1`]: (counter: Counter | null, added: ProjectedEvent<Counted>) => {
            onAdded?.(added);
            const { amount } = added.payload;
            return {
              name: `n-${added.stream.slice(added.stream.indexOf('-') + 1)}`,
              total: (counter?.total ?? 0) + amount * version,
              events: (counter?.events ?? 0) + 1,
              last: added.revision,
            };
          },
          [`${aggregate}.removed.v1`]: () => null,
        },
      }),
    documents: (db, version = 1) => documentsOf(db.readModels, model(version)),
  };
}

/** The expected amounts of one stream. */
export async function assertTotal(
  documents: Documents<Counter>,
  id: string,
  amounts: readonly number[],
  tenant = 'core',
): Promise<void> {
  const found = await documents.get(tenant, id);
  assert.deepEqual(
    { total: found?.document.total, events: found?.document.events },
    { total: amounts.reduce((sum, each) => sum + each, 0), events: amounts.length },
  );
}
