// Defaults and limits of projections and read models.

export const projectionLimits = {
  /** Events per batch, and the number of parallel batches. */
  batchSize: 1_000,
  lanes: 4,
  inFlightMax: 8_000,
  waitMs: 30_000,
  /** Events per page of a rebuild. */
  rebuildPage: 5_000,
  /** Documents that a rebuild caches in memory, and their total length. */
  rebuildDocuments: 20_000,
  rebuildChars: 32 * 1_048_576,
  rebuildCheckpointMs: 100,
  /** Maximum length of the documents in one write to the read model store. */
  writeChars: 8 * 1_048_576,
  leaseMs: 10_000,
} as const;

export const readModelLimits = {
  documentBytesMax: 1_048_576,
  /** Index values are codes, not texts. */
  indexCharsMax: 255,
  /** Maximum number of indexes, of sets and of ranges of a model. */
  entriesMax: 32,
  /** Maximum number of groups of a document. */
  groupsMax: 4_096,
  pageSize: 100,
  pageSizeMax: 1_000,
  /** Maximum number of ids in a cached list. */
  listIdsMax: 10_000,
  listTtlMs: 30_000,
  /** Maximum number of documents per write or load. */
  batchMax: 10_000,
  /** Documents per step when a version is retired. */
  clearStep: 500,
} as const;
