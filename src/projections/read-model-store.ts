// Where documents are kept, as one port. Every write names its tenant, says by the stream's revision
// which event it came from, and carries everything that the document is to be found by, so that an
// engine needs no more than one atomic step for each document: a transaction, or a script of Redis.

import type { ReadModelVersions } from './read-model-versions.ts';

/** A namespace of its own: `app:{<tenant>}:<bc>:<aggregate>:v<version>:…`. */
export interface ModelKey {
  readonly bc: string;
  readonly aggregate: string;
  readonly version: number;
  /** Where its keys in Redis had names before ours. Other engines have no keys to name. */
  readonly layout?: RedisLayout | undefined;
}

/**
 * Keys of one model that other programs know by other names. Each holds `{<tenant>}`, so that all of a
 * tenant's share a slot with what we keep beside them. The document is a hash with a field for each member.
 */
export interface RedisLayout {
  document(tenant: string, id: string): string;
  /** By the set's name; undefined: ours. */
  set?(tenant: string, set: string): string | undefined;
  /** By the range's name; undefined: ours. */
  range?(tenant: string, range: string): string | undefined;
  /** Members whose fields hold JSON. All others are texts, and are kept as they are. */
  readonly jsonFields: readonly string[];
}

export interface ReadModelCapabilities {
  /** Survives the end of the process. */
  readonly durable: boolean;
  /** Other processes see it. */
  readonly crossProcess: boolean;
  /**
   * Members of a set come sorted by their id, no more than `limit` on a page, none of them twice.
   * Without it `limit` is a hint, a page may be empty before the last one, and a member may come twice.
   */
  readonly orderedSets: boolean;
}

export interface DocumentKey {
  readonly tenant: string;
  readonly id: string;
}

/** What a document is found by. All of it replaces what the engine has kept of the document so far. */
export interface DocumentEntries {
  /**
   * Index → value. The last document that was written with a value has it; one that gives it up
   * removes the entry only while it is its own.
   */
  readonly indexes: Readonly<Record<string, string>>;
  /** Names of the sets that the document belongs to, `all` among them. */
  readonly sets: readonly string[];
  /** Range → score: any finite number. Of a group, `<range>:<group>`: of these there are any number. */
  readonly ranges: Readonly<Record<string, number>>;
}

/** Checked by whoever calls: engines may trust it. A document occurs once in a call. */
export interface DocumentWrite extends DocumentKey {
  readonly stream: string;
  /** Of the last event that is in the document. */
  readonly revision: number;
  /** JSON text. Null removes the document, and keeps the fence. */
  readonly document: string | null;
  /** Empty where the document is removed. */
  readonly entries: DocumentEntries;
}

export type DocumentOutcome =
  | 'written'
  /** What is kept came from this event or a later one: nothing was changed. */
  | 'stale'
  /** What is kept came from another stream: nothing was changed. */
  | 'foreign';

export interface StoredDocument {
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
  /** Null: it was removed by the event of this revision. */
  readonly document: string | null;
}

export interface PageQuery {
  readonly limit: number;
  /** Of the page before; made and understood by the engine only. A wrong one: `CURSOR_INVALID`. */
  readonly cursor?: string | undefined;
}

/** Without removed ones. */
export interface DocumentPage {
  readonly documents: readonly StoredDocument[];
  /** Undefined on the last page. */
  readonly cursor: string | undefined;
}

export interface RangeBounds {
  readonly range: string;
  /** Both inclusive. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

export interface RangeQuery extends PageQuery, RangeBounds {
  /** By score, then by id (as bytes); `descending` is the exact reverse. */
  readonly direction: 'ascending' | 'descending';
}

export interface ListKey {
  readonly tenant: string;
  /** `filtersHash` of what was asked. */
  readonly hash: string;
}

export interface CachedList {
  /** Undefined: there is none, it is too old, or something was written since. */
  readonly ids: readonly string[] | undefined;
  /** Changes with every write to this tenant and model. */
  readonly generation: string;
}

/**
 * Read models of all tenants and versions. Nothing but `clear` reaches over more than one tenant. An
 * engine that is somewhere else than the events says by itself, once, that it is away (and then fails
 * with `STORE_UNAVAILABLE`), and once that it is back: only it knows of all its callers.
 *
 * @example
 * import { memoryReadModels, type ReadModelStore } from 'millrace/projections';
 *
 * const store: ReadModelStore = memoryReadModels();
 * console.log(store.capabilities.orderedSets); // true
 */
export interface ReadModelStore {
  readonly capabilities: ReadModelCapabilities;
  /**
   * Each document with all of its entries at once, or not at all; it outdates the tenant's cached
   * lists of this model in the same step. Writes of one tenant in the order given.
   */
  write(model: ModelKey, writes: readonly DocumentWrite[]): Promise<readonly DocumentOutcome[]>;
  /** In the order of the keys, removed ones included; undefined where nothing was ever written. */
  load(
    model: ModelKey,
    keys: readonly DocumentKey[],
  ): Promise<readonly (StoredDocument | undefined)[]>;
  /** Whoever has this value in this index. */
  find(
    model: ModelKey,
    tenant: string,
    at: { readonly index: string; readonly value: string },
  ): Promise<StoredDocument | undefined>;
  members(
    model: ModelKey,
    tenant: string,
    query: PageQuery & { readonly set: string },
  ): Promise<DocumentPage>;
  range(model: ModelKey, tenant: string, query: RangeQuery): Promise<DocumentPage>;
  /** How many documents the range has. */
  count(model: ModelKey, tenant: string, query: RangeBounds): Promise<number>;
  list(model: ModelKey, key: ListKey): Promise<CachedList>;
  /**
   * False, and nothing is kept, when something was written since `generation` was read. A list lives
   * for `ttlMs` by the engine's own clock.
   */
  keepList(
    model: ModelKey,
    key: ListKey,
    list: { readonly ids: readonly string[]; readonly generation: string; readonly ttlMs: number },
  ): Promise<boolean>;
  /**
   * Removes about so many documents, of any tenant, fences and all; returns how many, and 0 when the
   * model has nothing left.
   */
  clear(model: ModelKey, limit: number): Promise<number>;
}

/** An event store whose database has room for read models. */
export interface ReadModelHost {
  readonly readModels: ReadModelStore;
  readonly readModelVersions: ReadModelVersions;
}
