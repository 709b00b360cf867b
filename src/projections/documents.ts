// Reads and writes the documents of a read model: by id, index, set and range, and cached lists.

import { filtersHash } from '../contracts/filters-hash.ts';
import { checkDocumentId, checkRangeName } from '../contracts/redis-keys.ts';
import { checkTenant } from '../contracts/tenant.ts';
import { MillraceError } from '../foundation/error.ts';
import type {
  DocumentOutcome,
  DocumentPage,
  PageQuery,
  RangeBounds,
  RangeQuery,
  ReadModelStore,
  StoredDocument,
} from './read-model-store.ts';
import {
  groupRange,
  readModelLimits as limits,
  type DocumentSource,
  type ReadModel,
} from './read-model.ts';

export interface Found<Document> {
  readonly id: string;
  readonly document: Document;
  /** Revision of the last event in the document. */
  readonly revision: number;
}

export interface Page<Document> {
  readonly items: readonly Found<Document>[];
  /** Cursor of the next page; undefined on the last page. */
  readonly cursor: string | undefined;
}

type Options<Query> = { readonly [Name in keyof Query]?: Query[Name] | undefined };

export type PageOptions = Options<PageQuery>;
/** Selects one group of a grouped range. */
interface InGroup {
  readonly group?: string | undefined;
}
export type CountOptions = Options<Pick<RangeQuery, 'from' | 'to'>> & InGroup;
export type RangeOptions = Options<Omit<RangeQuery, 'range'>> & InGroup;

export interface DocumentChange<Document> extends DocumentSource {
  /** Null removes the document. */
  readonly document: Document | null;
}

/** Queries of one tenant per call. */
export interface DocumentQueries<Document> {
  get(tenant: string, id: string): Promise<Found<Document> | undefined>;
  byIndex(tenant: string, index: string, value: string): Promise<Found<Document> | undefined>;
  bySet(tenant: string, set: string, options?: PageOptions): Promise<Page<Document>>;
  byRange(tenant: string, range: string, options?: RangeOptions): Promise<Page<Document>>;
  /** Number of documents that `byRange` returns over all pages. */
  count(tenant: string, range: string, options?: CountOptions): Promise<number>;
  /**
   * Returns the ids from `load`, cached by filters until the next write or expiry. A write during `load`
   * prevents the caching.
   */
  list(
    tenant: string,
    filters: unknown,
    load: () => Promise<readonly string[]>,
  ): Promise<readonly string[]>;
}

export interface Documents<Document> extends DocumentQueries<Document> {
  put(source: DocumentSource, document: Document): Promise<DocumentOutcome>;
  remove(source: DocumentSource): Promise<DocumentOutcome>;
  /** Each document at most once. */
  write(changes: readonly DocumentChange<Document>[]): Promise<readonly DocumentOutcome[]>;
}

/**
 * Opens a read model in a store of documents.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { documentsOf, readModel } from 'millrace/projections';
 *
 * const currencies = readModel<{ readonly code: string }>({
 *   bc: 'banking', aggregate: 'currency', version: 1, indexes: { code: ({ code }) => code },
 * });
 * const documents = documentsOf(openMemory().readModels, currencies);
 * const stream = 'banking.currency.v1-core-USD';
 * await documents.put({ tenant: 'core', id: 'USD', stream, revision: 0 }, { code: 'usd' });
 * const found = await documents.byIndex('core', 'code', 'usd');
 */
export function documentsOf<Document extends object>(
  store: ReadModelStore,
  model: ReadModel<Document>,
): Documents<Document> {
  const invalid = (reason: string): MillraceError =>
    new MillraceError('READ_MODEL_INVALID', `${model.name}: ${reason}`, {
      details: { model: model.name },
    });
  const checkName = (kind: string, names: ReadonlySet<string>, name: string): void => {
    if (!names.has(name)) throw invalid(`unknown ${kind} '${name}'`);
  };
  const limitOf = (limit: number = limits.pageSize): number => {
    if (Number.isInteger(limit) && limit >= 1 && limit <= limits.pageSizeMax) return limit;
    throw invalid(`limit must be an integer from 1 to ${limits.pageSizeMax}, not ${limit}`);
  };
  const found = (stored: StoredDocument | undefined): Found<Document> | undefined => {
    if (stored === undefined || stored.document === null) return undefined;
    const { id, revision, document } = stored;
    return { id, revision, document: model.parse(document) };
  };
  const pageOf = ({ documents, cursor }: DocumentPage): Page<Document> => ({
    items: documents.map(found).filter((each) => each !== undefined),
    cursor,
  });

  const boundsOf = (tenant: string, name: string, options: CountOptions): RangeBounds => {
    checkTenant(tenant);
    const { group, from, to } = options;
    checkName('range', group === undefined ? model.ranges : model.groups, name);
    for (const bound of [from, to]) {
      if (bound !== undefined && !Number.isFinite(bound)) {
        throw invalid(`the bound ${bound} is not finite: leave it out`);
      }
    }
    if (group === undefined) return { range: name, from, to };
    const range = groupRange(name, group);
    // Reject group values that no document can have.
    checkRangeName(tenant, model.bc, model.aggregate, model.version, range);
    return { range, from, to };
  };

  const write = async (
    changes: readonly DocumentChange<Document>[],
  ): Promise<readonly DocumentOutcome[]> => {
    if (changes.length > limits.batchMax) {
      throw invalid(
        `${changes.length} documents exceed the maximum of ${limits.batchMax} per write`,
      );
    }
    const writes = changes.map(({ document, ...source }) => model.toWrite(source, document));
    const keys = new Set(writes.map(({ tenant, id }) => `${tenant} ${id}`));
    if (keys.size < writes.length) throw invalid('a document occurs twice in one write');
    return writes.length === 0 ? [] : store.write(model, writes);
  };
  const writeOne = async (change: DocumentChange<Document>): Promise<DocumentOutcome> => {
    const [outcome] = await write([change]);
    if (outcome === undefined) {
      throw new MillraceError('STORE_CORRUPT', 'the read model store returned no outcome');
    }
    return outcome;
  };

  return {
    write,
    put: (source, document) => writeOne({ ...source, document }),
    remove: (source) => writeOne({ ...source, document: null }),
    async get(tenant, id) {
      checkDocumentId(tenant, model.bc, model.aggregate, model.version, id);
      const [stored] = await store.load(model, [{ tenant, id }]);
      return found(stored);
    },
    async byIndex(tenant, index, value) {
      checkTenant(tenant);
      checkName('index', model.indexes, index);
      // No document has such a value, and some databases reject it.
      if (value === '' || value.length > limits.indexCharsMax || value.includes('\0')) {
        return undefined;
      }
      return found(await store.find(model, tenant, { index, value }));
    },
    async bySet(tenant, set, { limit, ...from } = {}) {
      checkTenant(tenant);
      checkName('set', model.sets, set);
      return pageOf(await store.members(model, tenant, { ...from, set, limit: limitOf(limit) }));
    },
    async byRange(tenant, range, options = {}) {
      const bounds = boundsOf(tenant, range, options);
      const { limit, cursor, bytesMax, direction = 'ascending' } = options;
      const query = { ...bounds, direction, limit: limitOf(limit), cursor, bytesMax };
      return pageOf(await store.range(model, tenant, query));
    },
    count: async (tenant, range, options = {}) =>
      store.count(model, tenant, boundsOf(tenant, range, options)),
    async list(tenant, filters, load) {
      checkTenant(tenant);
      const key = { tenant, hash: filtersHash(filters) };
      const { ids, generation } = await store.list(model, key);
      if (ids !== undefined) return ids;
      const loaded = await load();
      if (loaded.length > limits.listIdsMax) return loaded;
      await store.keepList(model, key, { ids: loaded, generation, ttlMs: model.listTtlMs });
      return loaded;
    },
  };
}
