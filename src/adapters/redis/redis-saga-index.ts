// The index of sagas in Redis. A tenant's entries are a hash in the tenant's slot, which is written
// first and says which entry counts; the times of all tenants stand in a slot of the saga's own, and
// follow it. Killed in between, the saga's event is delivered again, and both are put again.

import { redisKeys } from '../../contracts/redis-keys.ts';
import {
  sagaListLimit,
  sagaStatuses,
  type SagaEntry,
  type SagaIndex,
  type SagaIndexUpkeep,
  type SagaQuery,
} from '../../reactors/saga-index.ts';
import type { SagaStatus } from '../../reactors/saga-state.ts';
import { connectRedis, type RedisClient, type RedisConnectionOptions } from './redis-connection.ts';
import { sagaScripts } from './saga-scripts.ts';
import { sagaSpace, type SagaSpace } from './saga-space.ts';
import { sagaUpkeep } from './saga-upkeep.ts';

export interface RedisSagaIndex extends SagaIndex, AsyncDisposable {
  readonly upkeep: SagaIndexUpkeep;
}

/** Bounds of one call, so that others are not kept waiting. */
const bounds = { entriesPerScript: 500, tenantsAtOnce: 16 } as const;

interface Place {
  readonly space: SagaSpace;
  readonly tenant: string;
  /** Of the tenant's streams; those of another tenant may begin with it, too. */
  readonly prefix: string;
}

/**
 * The index of sagas in one Redis or a Redis Cluster, by its URL or with a client of your own. Give
 * it to `startSaga` and `sagaAdmin` as `index`. What Redis loses is put again from the sagas' streams.
 *
 * @example
 * import { redisSagaIndex } from 'millrace/adapters/redis';
 *
 * await using index = await redisSagaIndex('redis://localhost:6379');
 * const parked = await index.list({ saga: 'shop.fulfilment.v1', status: 'parked' });
 */
export async function redisSagaIndex(
  target: string | RedisClient,
  options: RedisConnectionOptions = {},
): Promise<RedisSagaIndex> {
  const connection = await connectRedis(target, options);
  const { run } = connection;
  const members = (key: string) => connection.ask((redis) => redis.smembers(key));

  async function placesOf({ saga, tenant }: SagaQuery): Promise<readonly Place[]> {
    const sagas = saga === undefined ? await members(allSagas) : [saga];
    const places = await Promise.all(
      sagas.map(async (category) => {
        const space = sagaSpace(category);
        const tenants = tenant === undefined ? await members(space.tenants) : [tenant];
        return tenants.map((each) => ({ space, tenant: each, prefix: `${category}-${each}-` }));
      }),
    );
    return places.flat().toSorted((a, b) => (a.prefix < b.prefix ? -1 : 1));
  }

  async function entriesOf(
    { space, tenant }: Place,
    { status, after, limit }: PageQuery,
  ): Promise<readonly SagaEntry[]> {
    const { category } = space;
    const first = `${category}-`;
    // A full stop comes right behind the hyphen.
    const values = [limit, after < first ? `[${first}` : `(${after}`, `${category}.`];
    const statuses = status === undefined ? sagaStatuses : [status];
    const answer = await run(sagaScripts.list, space.tenant(tenant), [...values, ...statuses]);
    const [isThere, texts] = answer as [number, readonly string[]];
    // A tenant that is known has entries: if they are gone, their owner is to put them again.
    if (isThere === 0) await run(sagaScripts.lost, [space.tenants, space.losses], [tenant]);
    return texts.map(toEntry);
  }

  async function page(places: readonly Place[], query: PageQuery): Promise<readonly SagaEntry[]> {
    const { after, limit } = query;
    // Names are ASCII: nothing of a place comes behind this.
    const left = places.filter(({ prefix }) => `${prefix}\u007f` > after);
    let found: readonly SagaEntry[] = [];
    for (let at = 0; at < left.length; at += bounds.tenantsAtOnce) {
      const last = found[limit - 1]?.stream;
      if (last !== undefined && last < (left[at]?.prefix ?? '')) break;
      const some = left.slice(at, at + bounds.tenantsAtOnce);
      const more = await Promise.all(some.map((place) => entriesOf(place, query)));
      found = [...found, ...more.flat()]
        .toSorted((a, b) => (a.stream < b.stream ? -1 : 1))
        .slice(0, limit);
    }
    return found;
  }

  return {
    async put(entry) {
      const space = sagaSpace(entry.saga);
      const { stream, revision, status, tenant } = entry;
      const values = [stream, revision, status, JSON.stringify(entry)];
      const [text] = await Promise.all([
        run(sagaScripts.put, space.tenant(tenant), values),
        connection.ask((redis) => redis.sadd(allSagas, entry.saga)),
      ]);
      const kept = toEntry(text as string);
      const keys = [space.due(entry.shard), space.revisions, space.tenants];
      await run(sagaScripts.due, keys, [stream, kept.revision, kept.dueAtMs ?? '', tenant]);
    },

    async upcoming({ saga, shards, limit }) {
      if (shards.length === 0) return [];
      const { due } = sagaSpace(saga);
      const cells = (await run(sagaScripts.upcoming, shards.map(due), [limit])) as string[];
      return Array.from({ length: cells.length / 2 }, (_, at) => ({
        stream: cells[at * 2] ?? '',
        dueAtMs: Number(cells[at * 2 + 1]),
      }))
        .toSorted((a, b) => a.dueAtMs - b.dueAtMs)
        .slice(0, limit);
    },

    async list(query) {
      const { status, limit = sagaListLimit } = query;
      const places = await placesOf(query);
      const entries: SagaEntry[] = [];
      for (let { after = '' } = query; entries.length < limit;) {
        const size = Math.min(limit - entries.length, bounds.entriesPerScript);
        const found = await page(places, { status, after, limit: size });
        entries.push(...found);
        if (found.length < size) break;
        after = found.at(-1)?.stream ?? after;
      }
      return entries;
    },

    upkeep: sagaUpkeep(connection),

    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  };
}

interface PageQuery {
  readonly status: SagaStatus | undefined;
  readonly after: string;
  readonly limit: number;
}

const allSagas = redisKeys.workflows();

function toEntry(text: string): SagaEntry {
  const entry = JSON.parse(text) as SagaEntry;
  return { ...entry, dueAtMs: entry.dueAtMs, reason: entry.reason };
}
