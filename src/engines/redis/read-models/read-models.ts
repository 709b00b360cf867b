// Read models in Redis: a snapshot for each document, hashes for indexes, sets, sorted sets for ranges, and lists
// for cached queries. All keys of a tenant share a cluster slot, so that one script writes a document together
// with all of its entries.

import { parseRedisKey, redisKeys } from '../../../contracts/redis-keys.ts';
import { MillraceError } from '../../../foundation/error.ts';
import { compareIds, fromCursor, toCursor } from '../../../projections/rules/page-cursor.ts';
import type {
  DocumentMarks,
  DocumentPage,
  ModelKey,
  PageQuery,
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
/** Members that one call reads of a large set, when the page is limited in bytes. */
const countMax = 2;

export function redisReadModels(
  connection: RedisConnection,
  { documents: shape = 'json', durable = true }: ReadModelsOptions = {},
): ReadModelStore {
  const writer = createDocumentWriter(connection, shape);

  /** The documents of the first ids, as many as `bytesMax` allows. */
  async function loadOf(
    model: ModelKey,
    tenant: string,
    ids: readonly string[],
    bytesMax?: number,
  ): Promise<readonly (Loaded | undefined)[]> {
    if (ids.length === 0) return [];
    const keyspace = readModelKeyspace(model, tenant, shape);
    const keys = [keyspace.meta('fences'), ...ids.map((id) => keyspace.document(id))];
    const found = (await connection.run(scripts.load, keys, [
      kindOf(keyspace.shape),
      bytesMax ?? '',
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

  /** `count`: the number of ids that `bytesMax` allowed to read. */
  async function present(
    model: ModelKey,
    tenant: string,
    at: {
      readonly ids: readonly string[];
      readonly holds: (each: Loaded) => boolean;
      readonly bytesMax?: number | undefined;
    },
  ): Promise<{ readonly documents: readonly StoredDocument[]; readonly count: number }> {
    const loaded = await loadOf(model, tenant, at.ids, at.bytesMax);
    const documents = loaded.flatMap((each) =>
      each !== undefined && each.stored.document !== null && at.holds(each) ? [each.stored] : [],
    );
    return { documents, count: loaded.length };
  }

  async function someMembers(
    model: ModelKey,
    tenant: string,
    { set, limit, cursor, bytesMax }: PageQuery & { readonly set: string },
  ): Promise<DocumentPage> {
    const key = readModelKeyspace(model, tenant, shape).named('s', set);
    const { scan, after } = scanCursor(cursor);
    const [next, members] = await connection.ask((client) =>
      client.sscan(key, scan, 'COUNT', limit),
    );
    const ids = members.filter((id) => compareIds(id, after) > 0).toSorted(compareIds);
    const holds = ({ fence }: Loaded): boolean => fence.entries.sets.includes(set);
    // Redis returns all members of a small set at once, whatever the limit. Only then is their order that of the set.
    const isWhole = scan === '0' && next === '0';
    const at = { ids, holds, bytesMax: isWhole ? bytesMax : undefined };
    const { documents, count } = await present(model, tenant, at);
    const last = ids[count - 1];
    if (last !== undefined && count < ids.length) return { documents, cursor: `s0:${last}` };
    const more = after === '' ? `s${next}` : `s${next}:${after}`;
    return { documents, cursor: next === '0' ? undefined : more };
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
        const [found] = (await present(model, tenant, { ids: [id], holds })).documents;
        if (found !== undefined) return found;
      }
      return undefined;
    },

    async members(model, tenant, { limit, bytesMax, ...query }) {
      if (bytesMax === undefined) return someMembers(model, tenant, { ...query, limit });
      const documents: StoredDocument[] = [];
      let { cursor } = query;
      let bytes = 0;
      do {
        const left = {
          limit: Math.min(limit - documents.length, countMax),
          bytesMax: bytesMax - bytes,
        };
        const found = await someMembers(model, tenant, { ...query, ...left, cursor });
        documents.push(...found.documents);
        for (const { document } of found.documents) bytes += Buffer.byteLength(document ?? '');
        ({ cursor } = found);
      } while (cursor !== undefined && documents.length < limit && bytes < bytesMax);
      return { documents, cursor };
    },

    async range(model, tenant, { range, direction, limit, from, to, cursor, bytesMax }) {
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
      const at = { ids: page.map(({ id }) => id), holds, bytesMax };
      const { documents, count } = await present(model, tenant, at);
      const last = page[count - 1];
      return {
        documents,
        cursor: rows.length > count && last !== undefined ? toCursor(last) : undefined,
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

/** `s<cursor of SSCAN>`, then `:<id>` if members up to this id were returned before. */
function scanCursor(cursor = 's0:'): { readonly scan: string; readonly after: string } {
  const [, scan, after = ''] = /^s(0(?=:)|[1-9]\d{0,19})(?::(.*))?$/.exec(cursor) ?? [];
  if (scan !== undefined) return { scan, after };
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
