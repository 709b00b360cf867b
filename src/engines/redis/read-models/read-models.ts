// Read models in Redis: a snapshot for each document, hashes for indexes, sets, sorted sets for ranges, and lists
// for cached queries. All keys of a tenant share a cluster slot, so that one script writes a document together
// with all of its entries.

import { parseRedisKey, redisKeys } from '../../../contracts/redis-keys.ts';
import { MillraceError } from '../../../foundation/error.ts';
import { fromCursor, toCursor } from '../../../projections/rules/page-cursor.ts';
import type {
  DocumentMarks,
  ModelKey,
  ReadModelStore,
  StoredDocument,
} from '../../../projections/read-model-store.ts';
import { familyOf } from '../../../projections/read-model-versions.ts';
import type { RedisConnection } from '../connection/connection.ts';
import { escapeGlob, forEachGroup, pairsOf, scanKeys } from '../connection/engine.ts';
import { loadScripts } from '../connection/script.ts';
import { decodeFence, fromRedisText, kindOf, type DocumentFence } from './document.ts';
import { readModelKeyspace } from './keyspace.ts';
import { createDocumentWriter, type DocumentWriter } from './writer.ts';

const scripts = loadScripts(new URL('scripts/', import.meta.url), [
  'load',
  'range',
  'list',
  'cacheList',
]);

interface ReadModelsOptions {
  readonly documents?: 'json' | 'hash' | undefined;
  readonly durable?: boolean | undefined;
}

interface Loaded {
  readonly stored: StoredDocument;
  readonly fence: DocumentFence;
}

/** Limits the retries of a lookup: the index value may move to another document between the two reads. */
const findRoundsMax = 10;

export function redisReadModels(
  connection: RedisConnection,
  { documents: shape = 'json', durable = true }: ReadModelsOptions = {},
): ReadModelStore {
  const writer = createDocumentWriter(connection, shape);

  async function loadOf(
    model: ModelKey,
    tenant: string,
    ids: readonly string[],
  ): Promise<readonly (Loaded | undefined)[]> {
    if (ids.length === 0) return [];
    const keyspace = readModelKeyspace(model, tenant, shape);
    const keys = [keyspace.meta('fences'), ...ids.map((id) => keyspace.document(id))];
    const found = (await connection.run(scripts.load, keys, [
      kindOf(keyspace.shape),
      ...ids,
    ])) as readonly [string | null, string | readonly string[] | null][];
    return found.map(([text, stored], index) => {
      if (text === null) return undefined;
      const id = ids[index] ?? '';
      const fence = decodeFence(text);
      const { stream, revision, exists } = fence;
      const document = exists ? fromRedisText(id, stored, keyspace.shape) : null;
      return { stored: { id, stream, revision, document }, fence };
    });
  }

  async function present(
    model: ModelKey,
    tenant: string,
    at: { readonly ids: readonly string[]; readonly holds: (each: Loaded) => boolean },
  ): Promise<readonly StoredDocument[]> {
    const loaded = await loadOf(model, tenant, at.ids);
    return loaded.flatMap((each) =>
      each !== undefined && each.stored.document !== null && at.holds(each) ? [each.stored] : [],
    );
  }

  return {
    capabilities: {
      durable,
      crossProcess: true,
      orderedSets: false,
    },

    // Tenants are in different slots; the writes of one tenant stay in order.
    write: (model, writes) =>
      forEachGroup(
        writes,
        ({ tenant }) => tenant,
        (own, tenant) => writer.write(model, tenant, own),
      ),

    load: (model, keys) =>
      forEachGroup(
        keys,
        ({ tenant }) => tenant,
        async (own, tenant) => {
          const ids = own.map(({ id }) => id);
          return (await loadOf(model, tenant, ids)).map((each) => each?.stored);
        },
      ),

    async find(model, tenant, { index, value }) {
      const key = readModelKeyspace(model, tenant, shape).named('i', index);
      for (let round = 0; round < findRoundsMax; round += 1) {
        const id = await connection.ask((client) => client.hget(key, value));
        if (id === null) return undefined;
        const holds = ({ fence }: Loaded): boolean => fence.entries.indexes[index] === value;
        const [found] = await present(model, tenant, { ids: [id], holds });
        if (found !== undefined) return found;
      }
      return undefined;
    },

    async members(model, tenant, { set, limit, cursor }) {
      const key = readModelKeyspace(model, tenant, shape).named('s', set);
      const from = cursor === undefined ? '0' : scanCursor(cursor);
      const [next, ids] = await connection.ask((client) => client.sscan(key, from, 'COUNT', limit));
      const holds = ({ fence }: Loaded): boolean => fence.entries.sets.includes(set);
      return {
        documents: await present(model, tenant, { ids, holds }),
        cursor: next === '0' ? undefined : `s${next}`,
      };
    },

    async range(model, tenant, { range, direction, limit, from, to, cursor }) {
      const key = readModelKeyspace(model, tenant, shape).named('z', range);
      const after = cursor === undefined ? undefined : fromCursor(cursor);
      const bounds = [from, to, after?.score].map((each) => (each === undefined ? '' : `${each}`));
      const values = [direction, limit, ...bounds, after?.id ?? ''];
      const found = (await connection.run(scripts.range, [key], values)) as readonly string[];
      const rows = pairsOf(found).map(([id, score]) => ({ id, score: Number(score) }));
      const page = rows.slice(0, limit);
      const scores = new Map(page.map(({ id, score }) => [id, score]));
      const holds = ({ stored, fence }: Loaded): boolean =>
        fence.entries.ranges[range] === scores.get(stored.id);
      const last = page.at(-1);
      return {
        documents: await present(model, tenant, { ids: page.map(({ id }) => id), holds }),
        cursor: rows.length > limit && last !== undefined ? toCursor(last) : undefined,
      };
    },

    count(model, tenant, { range, from = '-inf', to = '+inf' }) {
      const key = readModelKeyspace(model, tenant, shape).named('z', range);
      return connection.ask((client) => client.zcount(key, from, to));
    },

    async list(model, { tenant, hash }) {
      const keyspace = readModelKeyspace(model, tenant, shape);
      const keys = [keyspace.named('l', hash), keyspace.meta('generation'), keyspace.meta('lists')];
      const reply = await connection.run(scripts.list, keys, [hash]);
      const [isCached, ids, generation] = reply as [number, string[], string];
      return { ids: isCached === 1 ? ids : undefined, generation };
    },

    async keepList(model, { tenant, hash }, { ids, generation, ttlMs }) {
      const keyspace = readModelKeyspace(model, tenant, shape);
      const keys = [keyspace.named('l', hash), keyspace.meta('generation'), keyspace.meta('lists')];
      const values = [hash, generation, ttlMs, ...ids];
      return (await connection.run(scripts.cacheList, keys, values)) === 1;
    },

    clear: createClearReadModel(connection, writer),
    marks: documentMarks(connection),
  };
}

function scanCursor(cursor: string): string {
  const digits = /^s([1-9]\d{0,19})$/.exec(cursor)?.[1];
  if (digits !== undefined) return digits;
  const shown = cursor.slice(0, 60);
  throw new MillraceError('CURSOR_INVALID', `invalid cursor '${shown}'`, {
    details: { cursor: shown },
  });
}

/**
 * Removes one version of a model. No list of its tenants is stored, so a scan of all keys finds them: at the start, and
 * again when no known tenant has documents left.
 */
function createClearReadModel(
  connection: RedisConnection,
  writer: DocumentWriter,
): ReadModelStore['clear'] {
  const found = new Map<string, string[]>();

  async function step(model: ModelKey, tenant: string, limit: number): Promise<number> {
    const keyspace = readModelKeyspace(model, tenant, 'json');
    const fences = keyspace.meta('fences');
    const [, rows] = await connection.ask((client) => client.hscan(fences, '0', 'COUNT', limit));
    const removed = await writer.forget(
      model,
      tenant,
      rows.filter((_, at) => at % 2 === 0),
    );
    // The last key: the scan finds the tenants by it, also after an interruption.
    if (removed === 0) await connection.ask((client) => client.del(keyspace.meta('generation')));
    return removed;
  }

  return async (model, limit) => {
    const name = `${model.bc}:${model.aggregate}:${model.version}`;
    for (;;) {
      const tenants = found.get(name) ?? (await tenantsOf(connection, model));
      found.set(name, tenants);
      const [tenant] = tenants;
      if (tenant === undefined) {
        found.delete(name);
        return 0;
      }
      const removed = await step(model, tenant, limit);
      if (removed > 0) return removed;
      tenants.shift();
      // Tenants may have been added since the last scan.
      if (tenants.length === 0) found.delete(name);
    }
  };
}

function documentMarks(connection: RedisConnection): DocumentMarks {
  const keyOf = (model: ModelKey): string =>
    redisKeys.readModelMark(familyOf(model), model.version);
  const read = (model: ModelKey) => connection.ask((client) => client.get(keyOf(model)));
  return {
    read: async (model) => (await read(model)) ?? undefined,
    async create(model, mark) {
      await connection.ask((client) => client.setnx(keyOf(model), mark));
      return (await read(model)) ?? mark;
    },
    async replace(model, mark) {
      await connection.ask((client) => client.set(keyOf(model), mark));
    },
    hasDocuments: async (model) => (await tenantsOf(connection, model)).length > 0,
    onRestored: (listener) => connection.onRestored(listener),
  };
}

async function tenantsOf(
  connection: RedisConnection,
  { bc, aggregate, version }: ModelKey,
): Promise<string[]> {
  const { keyPrefix = '' } = connection.client.options;
  const match = `${escapeGlob(keyPrefix)}app:{*}:${bc}:${aggregate}:v${version}:meta:generation`;
  const keys = await scanKeys(connection, match, 'string');
  const tenants = keys.flatMap((key) => {
    const parsed = parseRedisKey(key.slice(keyPrefix.length));
    return parsed.kind === 'meta' ? [parsed.tenant] : [];
  });
  return [...new Set(tenants)];
}
