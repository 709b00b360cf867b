// The port for finding sagas by status and by timer without reading their streams. The index is derived
// from the streams and updated by the process that handles their events.

import type { SagaStatus } from './saga-state.ts';

export interface SagaEntry {
  readonly stream: string;
  /** The category of the saga's streams. */
  readonly saga: string;
  readonly tenant: string;
  readonly key: string;
  readonly status: SagaStatus;
  /** Revision of the saga's last event when the entry was written. */
  readonly revision: number;
  readonly updatedAtMs: number;
  /** When the earliest timer is due. */
  readonly dueAtMs: number | undefined;
  /** Shard of the saga's subscription; the owner of the shard fires the timers. */
  readonly shard: number;
  /** Why the saga is parked or compensated. */
  readonly reason: string | undefined;
}

export interface SagaQuery {
  readonly saga?: string | undefined;
  readonly status?: SagaStatus | undefined;
  readonly tenant?: string | undefined;
  /** The stream of the last entry of the previous page. */
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

export interface SagaShards {
  readonly saga: string;
  readonly shards: readonly number[];
}

/** Repairs an index that lost entries: the owner of a shard writes all its entries again. */
export interface SagaIndexUpkeep {
  /** The shards that may lack entries: never filled, or partly or completely lost. */
  incomplete(query: SagaShards): Promise<readonly number[]>;
  /**
   * Called before all entries of these shards are written again; the returned function is called after
   * that. If entries are lost in between, or another process starts a renewal, the shards stay incomplete.
   */
  renew(query: SagaShards): Promise<() => Promise<void>>;
}

/**
 * Usually stored in the event database. It may be stored elsewhere (a Redis hash
 * `checkpoint:workflow:<saga>:{<tenant>}`) if `put` compares revisions.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import type { SagaIndex } from 'millrace/reactors';
 *
 * const index: SagaIndex = openMemory().sagas;
 * const parked = await index.list({ saga: 'shop.fulfilment.v1', status: 'parked' });
 */
export interface SagaIndex {
  /** Ignores an entry whose revision is not higher than the stored one. */
  put(entry: SagaEntry): Promise<void>;
  /** Sagas with timers, earliest first, due or not. */
  upcoming(query: {
    readonly saga: string;
    readonly shards: readonly number[];
    readonly limit: number;
  }): Promise<readonly { readonly stream: string; readonly dueAtMs: number }[]>;
  /** Ordered by stream. */
  list(query: SagaQuery): Promise<readonly SagaEntry[]>;
  /** For an index outside the event database, which can be lost while the events remain. */
  readonly upkeep?: SagaIndexUpkeep | undefined;
}

export const sagaListLimit = 100;

export const sagaStatuses: readonly SagaStatus[] = [
  'waiting',
  'running',
  'compensating',
  'parked',
  'completed',
  'compensated',
];
