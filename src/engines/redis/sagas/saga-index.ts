// The index of sagas in Redis. The entries of a tenant are a hash in the slot of the tenant, which is written first
// and decides which entry is current. The due times of all tenants are in the slot of the saga and are written
// second. After a crash between the two writes, the saga's event is delivered again and both writes repeat.

import { randomUUID } from 'node:crypto';
import { parseStored } from '../../../foundation/parse-json.ts';
import { nameInvalid } from '../../../contracts/identifier.ts';
import { redisKeys } from '../../../contracts/redis-keys.ts';
import { parseStreamName } from '../../../contracts/stream-name.ts';
import { hasCode } from '../../../foundation/error.ts';
import {
  sagaListLimit,
  sagaStatuses,
  type SagaEntry,
  type SagaIndex,
  type SagaIndexUpkeep,
  type SagaQuery,
} from '../../../reactors/saga-index.ts';
import type { SagaStatus } from '../../../reactors/saga-state.ts';
import type { RedisConnection } from '../connection/connection.ts';
import { pairsOf } from '../connection/engine.ts';
import { mastersOf } from '../connection/risks.ts';
import { loadScripts } from '../connection/script.ts';

/** Every script declares all of its keys. */
export const sagaScripts = loadScripts(new URL('scripts/', import.meta.url), [
  'put',
  'list',
  'due',
  'lost',
  'upcoming',
  'marks',
  'renew',
  'renewed',
]);

export interface RedisSagaIndex extends SagaIndex {
  readonly upkeep: SagaIndexUpkeep;
}

/** Limits each script call, which blocks the server, and the number of concurrent calls. */
const bounds = { entriesPerScript: 500, tenantsAtOnce: 16 } as const;

interface TenantScope {
  readonly keyspace: SagaKeyspace;
  readonly tenant: string;
  /** Prefix of the tenant's streams; streams of another tenant may share it. */
  readonly prefix: string;
}

export function redisSagaIndex(connection: RedisConnection): RedisSagaIndex {
  const { run } = connection;
  const members = (key: string) => connection.ask((redis) => redis.smembers(key));

  async function scopesOf({ saga, tenant }: SagaQuery): Promise<readonly TenantScope[]> {
    const sagas = saga === undefined ? await members(allSagas) : [saga];
    const scopes = await Promise.all(
      sagas.map(async (category) => {
        const keyspace = sagaKeyspace(category);
        const tenants = tenant === undefined ? await members(keyspace.tenants) : [tenant];
        return tenants.map((each) => ({ keyspace, tenant: each, prefix: `${category}-${each}-` }));
      }),
    );
    return scopes.flat().toSorted((a, b) => (a.prefix < b.prefix ? -1 : 1));
  }

  async function entriesOf(
    { keyspace, tenant }: TenantScope,
    { status, after, limit }: PageQuery,
  ): Promise<readonly SagaEntry[]> {
    const { category } = keyspace;
    const first = `${category}-`;
    // In ASCII, the full stop follows the hyphen, so this bound is above all streams of the category.
    const values = [limit, after < first ? `[${first}` : `(${after}`, `${category}.`];
    const statuses = status === undefined ? sagaStatuses : [status];
    const reply = await run(sagaScripts.list, keyspace.tenant(tenant), [...values, ...statuses]);
    const [exists, texts] = reply as [number, readonly string[]];
    // A known tenant has entries. If some are missing or damaged, the owner of the shard must restore them.
    const entries = texts.flatMap((text) => toEntry(text) ?? []);
    if (exists === 0 || entries.length < texts.length) {
      await run(sagaScripts.lost, [keyspace.tenants, keyspace.losses], [tenant]);
    }
    return entries;
  }

  async function page(
    scopes: readonly TenantScope[],
    query: PageQuery,
  ): Promise<readonly SagaEntry[]> {
    const { after, limit } = query;
    // Names are ASCII, so no stream of the tenant sorts after its prefix followed by DEL.
    const left = scopes.filter(({ prefix }) => `${prefix}\u007f` > after);
    let found: readonly SagaEntry[] = [];
    for (let at = 0; at < left.length; at += bounds.tenantsAtOnce) {
      const last = found[limit - 1]?.stream;
      if (last !== undefined && last < (left[at]?.prefix ?? '')) break;
      const some = left.slice(at, at + bounds.tenantsAtOnce);
      const more = await Promise.all(some.map((scope) => entriesOf(scope, query)));
      found = [...found, ...more.flat()]
        .toSorted((a, b) => (a.stream < b.stream ? -1 : 1))
        .slice(0, limit);
    }
    return found;
  }

  return {
    async put(entry) {
      const keyspace = sagaKeyspace(entry.saga);
      const { stream, revision, status, tenant } = entry;
      const values = [stream, revision, status, JSON.stringify(entry)];
      const [text] = await Promise.all([
        run(sagaScripts.put, keyspace.tenant(tenant), values),
        connection.ask((redis) => redis.sadd(allSagas, entry.saga)),
      ]);
      const stored = toEntry(text as string) ?? entry;
      const keys = [keyspace.due(entry.shard), keyspace.revisions, keyspace.tenants];
      await run(sagaScripts.due, keys, [stream, stored.revision, stored.dueAtMs ?? '', tenant]);
    },

    async upcoming({ saga, shards, limit }) {
      if (shards.length === 0) return [];
      const { due } = sagaKeyspace(saga);
      const cells = (await run(sagaScripts.upcoming, shards.map(due), [limit])) as string[];
      return pairsOf(cells)
        .map(([stream, dueAtMs]) => ({ stream, dueAtMs: Number(dueAtMs) }))
        .toSorted((a, b) => a.dueAtMs - b.dueAtMs)
        .slice(0, limit);
    },

    async list(query) {
      const { status, limit = sagaListLimit } = query;
      const scopes = await scopesOf(query);
      const entries: SagaEntry[] = [];
      for (let { after = '' } = query; entries.length < limit;) {
        const size = Math.min(limit - entries.length, bounds.entriesPerScript);
        const found = await page(scopes, { status, after, limit: size });
        entries.push(...found);
        if (found.length < size) break;
        after = found.at(-1)?.stream ?? after;
      }
      return entries;
    },

    upkeep: sagaUpkeep(connection),
  };
}

interface PageQuery {
  readonly status: SagaStatus | undefined;
  readonly after: string;
  readonly limit: number;
}

const allSagas = redisKeys.workflows();

/** Undefined: the stored text is damaged. */
function toEntry(text: string): SagaEntry | undefined {
  const entry = parseStored(text) as SagaEntry | undefined;
  return entry && { ...entry, dueAtMs: entry.dueAtMs, reason: entry.reason };
}

/** The keys of one saga. Versions, and sagas of the same name in other contexts, share a hash and differ by stream. */
interface SagaKeyspace {
  readonly category: string;
  /** The key of the entries, and the key of the entries by status. */
  readonly tenant: (tenant: string) => readonly [string, string];
  readonly due: (shard: number) => string;
  readonly revisions: string;
  readonly tenants: string;
  readonly losses: string;
}

export function sagaKeyspace(category: string): SagaKeyspace {
  const { bc, agg: name, version, ...parsed } = parseStreamName(`${category}-any-any`);
  if (parsed.category !== category) {
    throw nameInvalid('saga', category, 'must be <bc>.<name>.v<version>', parsed.category);
  }
  return {
    category,
    tenant: (tenant) => [
      redisKeys.workflowCheckpoint(name, tenant),
      redisKeys.workflowByStatus(name, tenant),
    ],
    due: (shard) => redisKeys.workflowDue(name, bc, version, shard),
    revisions: redisKeys.workflowPart(name, bc, version, 'revisions'),
    tenants: redisKeys.workflowPart(name, bc, version, 'tenants'),
    losses: redisKeys.workflowPart(name, bc, version, 'losses'),
  };
}

/**
 * Detects whether the index may lack entries. A server that restarted, or a replica that took over, may have lost
 * confirmed writes, so only entries that were put since then count.
 */
function sagaUpkeep(connection: RedisConnection): SagaIndexUpkeep {
  const { run } = connection;
  return {
    async incomplete({ saga, shards }) {
      if (shards.length === 0) return [];
      const { losses, due } = sagaKeyspace(saga);
      const servers = await serversOf(connection);
      const marks = await run(sagaScripts.marks, [losses, ...shards.map(due)], [servers]);
      return shards.filter((_, at) => (marks as readonly number[])[at] === 0);
    },
    async renew({ saga, shards }) {
      const { losses, due } = sagaKeyspace(saga);
      const keys = shards.map(due);
      const renewal = randomUUID();
      // Read before the first entry is restored: a server that restarts during the renewal has another run id.
      const servers = await serversOf(connection);
      const lostSoFar = String(await run(sagaScripts.renew, [losses, ...keys], [renewal]));
      return async () => {
        await run(sagaScripts.renewed, keys, [renewal, servers, lostSoFar]);
      };
    },
  };
}

/** The run ids of all masters, which change when a server restarts or a replica takes over. */
async function serversOf(connection: RedisConnection): Promise<string> {
  const names = await Promise.all(
    mastersOf(connection.client).map(async (node) => {
      try {
        const info = await connection.ask(() => node.info('server'));
        return /^run_id:(\w+)/m.exec(info)?.[1] ?? '';
      } catch (error) {
        // Hosted servers may reject `INFO`. The complete loss of the keys is still detected.
        if (hasCode(error, 'STORE_UNAVAILABLE') && !error.retryable) return '';
        throw error;
      }
    }),
  );
  return names.toSorted().join('+');
}
