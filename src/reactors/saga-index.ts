// Where sagas are found without reading their streams: by status, and by the time at which they want
// to be woken. It is derived: the streams are the truth, and whoever handles their events keeps it.

import type { SagaStatus } from './saga-state.ts';

export interface SagaEntry {
  readonly stream: string;
  /** The category of the saga's streams. */
  readonly saga: string;
  readonly tenant: string;
  readonly key: string;
  readonly status: SagaStatus;
  /** Of the saga's last event when this was written. */
  readonly revision: number;
  readonly updatedAtMs: number;
  /** When the first of its timers is due. */
  readonly dueAtMs: number | undefined;
  /** Of the saga's subscription: whose owner fires the timers. */
  readonly shard: number;
  /** Why it is parked, or compensated. */
  readonly reason: string | undefined;
}

export interface SagaQuery {
  readonly saga?: string;
  readonly status?: SagaStatus;
  readonly tenant?: string;
  /** The stream of the last one of the page before. */
  readonly after?: string;
  readonly limit?: number;
}

export interface SagaShards {
  readonly saga: string;
  readonly shards: readonly number[];
}

/** How an index that lost something gets it back: its owner puts everything again. */
export interface SagaIndexUpkeep {
  /** Those of these shards that may lack entries: never filled, or lost since, wholly or in part. */
  incomplete(query: SagaShards): Promise<readonly number[]>;
  /**
   * Before every entry of these shards is put again; what it returns is called behind that. If
   * something is lost in between, or somebody else has begun it, they stay incomplete.
   */
  renew(query: SagaShards): Promise<() => Promise<void>>;
}

/**
 * The port. The store's own database brings it where it has room; another place may (a Redis hash
 * `checkpoint:workflow:<saga>:{<tenant>}`), as long as `put` is fenced.
 *
 * @example
 * import { memorySagaIndex, type SagaIndex } from 'millrace/reactors';
 *
 * const index: SagaIndex = memorySagaIndex();
 * const parked = await index.list({ saga: 'shop.fulfilment.v1', status: 'parked' });
 */
export interface SagaIndex {
  /** An entry of a lower or the same revision than the one that is kept changes nothing. */
  put(entry: SagaEntry): Promise<void>;
  /** Those that wait for a time, the earliest first, whether it has come or not. */
  upcoming(query: {
    readonly saga: string;
    readonly shards: readonly number[];
    readonly limit: number;
  }): Promise<readonly { readonly stream: string; readonly dueAtMs: number }[]>;
  /** In the order of their streams. */
  list(query: SagaQuery): Promise<readonly SagaEntry[]>;
  /** Of an index that can be lost without the events; one in their database shares their fate. */
  readonly upkeep?: SagaIndexUpkeep;
}

/** An event store whose database has room for it. */
export interface SagaHost {
  readonly sagas: SagaIndex;
}

/**
 * An index in memory, for unit tests.
 *
 * @example
 * import { memorySagaIndex } from 'millrace/reactors';
 *
 * const index = memorySagaIndex();
 * console.log(await index.list({})); // []
 */
export function memorySagaIndex(): SagaIndex & { readonly upkeep: SagaIndexUpkeep } {
  const entries = new Map<string, SagaEntry>();
  const renewals = new Map<string, { isOver: boolean }>();
  return {
    upkeep: {
      async incomplete({ saga, shards }) {
        return shards.filter((shard) => renewals.get(`${saga} ${shard}`)?.isOver !== true);
      },
      async renew({ saga, shards }) {
        const renewal = { isOver: false };
        for (const shard of shards) renewals.set(`${saga} ${shard}`, renewal);
        return async () => {
          renewal.isOver = true;
        };
      },
    },
    async put(entry) {
      const known = entries.get(entry.stream);
      if (known === undefined || known.revision < entry.revision) entries.set(entry.stream, entry);
    },
    async upcoming({ saga, shards, limit }) {
      return [...entries.values()]
        .flatMap(({ stream, dueAtMs, ...entry }) =>
          dueAtMs !== undefined && entry.saga === saga && shards.includes(entry.shard)
            ? [{ stream, dueAtMs }]
            : [],
        )
        .toSorted((a, b) => a.dueAtMs - b.dueAtMs)
        .slice(0, limit);
    },
    async list({ saga, status, tenant, after = '', limit = sagaListLimit }) {
      return [...entries.values()]
        .filter(
          (entry) =>
            (saga === undefined || entry.saga === saga) &&
            (status === undefined || entry.status === status) &&
            (tenant === undefined || entry.tenant === tenant) &&
            entry.stream > after,
        )
        .toSorted((a, b) => (a.stream < b.stream ? -1 : 1))
        .slice(0, limit);
    },
  };
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
