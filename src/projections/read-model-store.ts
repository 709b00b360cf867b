// The storage port of read models. A write carries its tenant, the stream and revision of its last event,
// and all index entries of the document. An engine needs one atomic step per document: a transaction, or a
// Redis script.

import type { GenerationMarks } from '../subscriptions/generations.ts';
import type { ReadModelVersions } from './read-model-versions.ts';

/** The namespace of a read model: `app:{<tenant>}:<bc>:<aggregate>:v<version>:…`. */
export interface ModelKey {
  readonly bc: string;
  readonly aggregate: string;
  readonly version: number;
  /** Existing Redis key names to use. Other engines ignore it. */
  readonly layout?: RedisLayout | undefined;
}

/**
 * Redis key names that other programs already use. Each name contains `{<tenant>}`, so that all keys of a
 * tenant share a slot. The document is a hash with one field per member.
 */
export interface RedisLayout {
  document(tenant: string, id: string): string;
  /** Undefined selects the default name. */
  set?(tenant: string, set: string): string | undefined;
  /** Undefined selects the default name. */
  range?(tenant: string, range: string): string | undefined;
  /** Members stored as JSON. All other members are stored as plain text. */
  readonly jsonFields: readonly string[];
}

export interface ReadModelCapabilities {
  /** Documents survive a restart of the process. */
  readonly durable: boolean;
  /** Other processes see the documents. */
  readonly crossProcess: boolean;
  /**
   * Members of a set are sorted by id, at most `limit` per page, without duplicates. Without this
   * capability `limit` is a hint, a page before the last may be empty, and a member may appear twice.
   */
  readonly orderedSets: boolean;
}

export interface DocumentKey {
  readonly tenant: string;
  readonly id: string;
}

/** The index entries of a document, which replace all its earlier entries. */
export interface DocumentEntries {
  /**
   * Index → value. A value belongs to the last document written with it; another document that drops the
   * value does not remove the entry.
   */
  readonly indexes: Readonly<Record<string, string>>;
  /** Names of the document's sets, including `all`. */
  readonly sets: readonly string[];
  /** Range → score, any finite number. The range of a group is named `<range>:<group>`. */
  readonly ranges: Readonly<Record<string, number>>;
}

/** Validated by the caller, so engines may trust it. A document occurs once per call. */
export interface DocumentWrite extends DocumentKey {
  readonly stream: string;
  /** Revision of the last event in the document. */
  readonly revision: number;
  /** JSON text. Null removes the document and keeps its stream and revision as the fence. */
  readonly document: string | null;
  /** Empty if the document is removed. */
  readonly entries: DocumentEntries;
  /** Replaces a document of the same revision, and leaves no copy of it on disk. */
  readonly isErasure?: boolean | undefined;
}

export type DocumentOutcome =
  | 'written'
  /** The stored document already includes this event: nothing changed. */
  | 'stale'
  /** The stored document belongs to another stream: nothing changed. */
  | 'foreign';

export interface StoredDocument {
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
  /** Null if the event of this revision removed it. */
  readonly document: string | null;
}

export interface PageQuery {
  readonly limit: number;
  /** Opaque cursor of the previous page. An invalid cursor fails with `CURSOR_INVALID`. */
  readonly cursor?: string | undefined;
  /**
   * The page ends with the document whose text reaches this number of bytes. Without `orderedSets`, a few more documents
   * of a set may follow. Default: no limit.
   */
  readonly bytesMax?: number | undefined;
}

/** Removed documents are left out. */
export interface DocumentPage {
  readonly documents: readonly StoredDocument[];
  /** Undefined on the last page. */
  readonly cursor: string | undefined;
}

export interface RangeBounds {
  readonly range: string;
  /** The bounds are inclusive. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

export interface RangeQuery extends PageQuery, RangeBounds {
  /** By score, then by id (as bytes); `descending` is the exact reverse. */
  readonly direction: 'ascending' | 'descending';
}

export interface ListKey {
  readonly tenant: string;
  /** `filtersHash` of the filters. */
  readonly hash: string;
}

export interface CachedList {
  /** Undefined if no list is cached, if it expired, or after a write. */
  readonly ids: readonly string[] | undefined;
  /** Changes with every write to this tenant and model. */
  readonly generation: string;
}

/**
 * Read models of all tenants and versions. Only `clear` affects more than one tenant. During an outage a
 * remote engine fails with `STORE_UNAVAILABLE`, and it logs the loss and the return of its connection once.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import type { ReadModelStore } from 'millrace/projections';
 *
 * const store: ReadModelStore = openMemory().readModels;
 * console.log(store.capabilities.orderedSets); // true
 */
export interface ReadModelStore {
  readonly capabilities: ReadModelCapabilities;
  /**
   * Writes each document atomically with its entries and invalidates the tenant's cached lists of the model
   * in the same step. Writes of one tenant are applied in order.
   */
  write(model: ModelKey, writes: readonly DocumentWrite[]): Promise<readonly DocumentOutcome[]>;
  /** In the order of the keys, including removed documents; undefined if never written. */
  load(
    model: ModelKey,
    keys: readonly DocumentKey[],
  ): Promise<readonly (StoredDocument | undefined)[]>;
  /** The document with this value in this index. */
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
  /** Number of documents in the range. */
  count(model: ModelKey, tenant: string, query: RangeBounds): Promise<number>;
  list(model: ModelKey, key: ListKey): Promise<CachedList>;
  /**
   * Caches a list for `ttlMs` by the engine's clock. Returns false and caches nothing after a write since
   * `generation` was read.
   */
  keepList(
    model: ModelKey,
    key: ListKey,
    list: { readonly ids: readonly string[]; readonly generation: string; readonly ttlMs: number },
  ): Promise<boolean>;
  /**
   * Removes about `limit` documents of any tenant, with their fences. Returns their number, and 0 when the
   * model is empty.
   */
  clear(model: ModelKey, limit: number): Promise<number>;
  /** Of an engine that may lose its data: a mark for each version of a model, which disappears with the documents. */
  readonly marks?: DocumentMarks | undefined;
}

export interface DocumentMarks extends GenerationMarks<ModelKey> {
  /** Whether documents of the model exist, which may take long. */
  hasDocuments(model: ModelKey): Promise<boolean>;
}

/** Documents and the versions of their models; the handle of an engine with read models has these roles. */
export interface ReadModelRoles {
  readonly readModels: ReadModelStore;
  readonly readModelVersions: ReadModelVersions;
}
