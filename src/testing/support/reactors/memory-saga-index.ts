// A saga index that can be lost while the events remain, as one in Redis.

import {
  sagaListLimit,
  type SagaEntry,
  type SagaIndex,
  type SagaIndexUpkeep,
} from '../../../reactors/saga-index.ts';

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
