// Read models in memory without SQL: the reference for those of the engines.

import { systemClock, type Clock } from '../../../foundation/clock.ts';
import { MillraceError } from '../../../foundation/error.ts';
import type {
  DocumentOutcome,
  DocumentPage,
  DocumentWrite,
  ModelKey,
  PageQuery,
  RangeBounds,
  ReadModelStore,
} from '../../../projections/read-model-store.ts';
import { decideDocument } from '../../../projections/rules/decide-document.ts';
import {
  compareIds,
  fromCursor,
  toCursor,
  type SortKey,
} from '../../../projections/rules/page-cursor.ts';

interface Space {
  readonly documents: Map<string, DocumentWrite>;
  /** Index → value → id. */
  readonly indexes: Map<string, Map<string, string>>;
  readonly lists: Map<string, { readonly ids: readonly string[]; readonly expiresAtMs: number }>;
  generation: number;
}

export function referenceReadModels(
  options: { readonly clock?: Clock | undefined } = {},
): ReadModelStore & AsyncDisposable {
  const { clock = systemClock } = options;
  /** Documents by model, then by tenant. */
  const models = new Map<string, Map<string, Space>>();
  let isClosed = false;
  /** Never reset, so that a list from before `clear` is not valid afterwards. */
  let generations = 0;

  function tenantsOf({ bc, aggregate, version }: ModelKey): Map<string, Space> {
    if (isClosed) throw new MillraceError('STORE_CLOSED', 'the read model store is closed');
    const key = `${bc}:${aggregate}:v${version}`;
    const tenants = models.get(key) ?? new Map<string, Space>();
    models.set(key, tenants);
    return tenants;
  }

  function spaceOf(model: ModelKey, tenant: string): Space {
    const tenants = tenantsOf(model);
    let space = tenants.get(tenant);
    if (space === undefined) {
      generations += 1;
      space = {
        documents: new Map(),
        indexes: new Map(),
        lists: new Map(),
        generation: generations,
      };
      tenants.set(tenant, space);
    }
    return space;
  }

  function writeOne(model: ModelKey, write: DocumentWrite): DocumentOutcome {
    const space = spaceOf(model, write.tenant);
    const stored = space.documents.get(write.id);
    const outcome = decideDocument(stored, write);
    if (outcome !== 'written') return outcome;
    for (const [index, value] of Object.entries(stored?.entries.indexes ?? {})) {
      const values = space.indexes.get(index);
      if (values?.get(value) === write.id) values.delete(value);
    }
    for (const [index, value] of Object.entries(write.entries.indexes)) {
      const values = space.indexes.get(index) ?? new Map<string, string>();
      space.indexes.set(index, values.set(value, write.id));
    }
    space.documents.set(write.id, write);
    space.lists.clear();
    generations += 1;
    space.generation = generations;
    return outcome;
  }

  return {
    capabilities: { durable: false, crossProcess: false, orderedSets: true },
    write: async (model, writes) => writes.map((each) => writeOne(model, each)),
    load: async (model, keys) =>
      keys.map(({ tenant, id }) => spaceOf(model, tenant).documents.get(id)),
    async find(model, tenant, { index, value }) {
      const space = spaceOf(model, tenant);
      const id = space.indexes.get(index)?.get(value);
      return id === undefined ? undefined : space.documents.get(id);
    },
    async members(model, tenant, query) {
      const members = [...spaceOf(model, tenant).documents.values()].filter(({ entries }) =>
        entries.sets.includes(query.set),
      );
      return pageOf(
        members.map((write) => ({ write, score: 0 })),
        query,
      );
    },
    range: async (model, tenant, query) =>
      pageOf(
        within(spaceOf(model, tenant), query),
        query,
        query.direction === 'ascending' ? 1 : -1,
      ),
    count: async (model, tenant, query) => within(spaceOf(model, tenant), query).length,
    async list(model, { tenant, hash }) {
      const { lists, generation } = spaceOf(model, tenant);
      const list = lists.get(hash);
      const isAlive = list !== undefined && list.expiresAtMs > clock.now();
      return { ids: isAlive ? list.ids : undefined, generation: String(generation) };
    },
    async keepList(model, { tenant, hash }, { ids, generation, ttlMs }) {
      const space = spaceOf(model, tenant);
      if (String(space.generation) !== generation) return false;
      space.lists.set(hash, { ids: [...ids], expiresAtMs: clock.now() + ttlMs });
      return true;
    },
    async clear(model, limit) {
      const tenants = tenantsOf(model);
      let removed = 0;
      for (const [tenant, space] of tenants) {
        for (const id of space.documents.keys()) {
          if (removed === limit) return removed;
          removeDocument(space, id);
          removed += 1;
        }
        tenants.delete(tenant);
      }
      return removed;
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      models.clear();
    },
  };

  function removeDocument(space: Space, id: string): void {
    for (const [index, value] of Object.entries(space.documents.get(id)?.entries.indexes ?? {})) {
      if (space.indexes.get(index)?.get(value) === id) space.indexes.get(index)?.delete(value);
    }
    space.documents.delete(id);
    space.lists.clear();
    generations += 1;
    space.generation = generations;
  }
}

interface Scored {
  readonly write: DocumentWrite;
  readonly score: number;
}

function within(
  { documents }: Space,
  { range, from = -Infinity, to = Infinity }: RangeBounds,
): readonly Scored[] {
  return [...documents.values()].flatMap((write) => {
    const score = write.entries.ranges[range];
    return score === undefined || score < from || score > to ? [] : [{ write, score }];
  });
}

function pageOf(
  scored: readonly Scored[],
  { limit, cursor, bytesMax = Infinity }: PageQuery,
  direction: 1 | -1 = 1,
): DocumentPage {
  const after = cursor === undefined ? undefined : fromCursor(cursor);
  const compare = (a: SortKey, b: SortKey): number =>
    direction * (a.score === b.score ? compareIds(a.id, b.id) : a.score - b.score);
  const sortKeyOf = ({ score, write }: Scored): SortKey => ({ score, id: write.id });
  const sorted = scored
    .toSorted((a, b) => compare(sortKeyOf(a), sortKeyOf(b)))
    .filter((each) => after === undefined || compare(sortKeyOf(each), after) > 0);
  let bytes = 0;
  const page = sorted.slice(0, limit).filter(({ write: { document } }) => {
    const isWithin = bytes < bytesMax;
    bytes += Buffer.byteLength(document ?? '');
    return isWithin;
  });
  const last = page.at(-1);
  return {
    documents: page.map(({ write }) => write),
    cursor:
      sorted.length > page.length && last !== undefined ? toCursor(sortKeyOf(last)) : undefined,
  };
}
