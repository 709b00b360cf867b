// Defaults and bounds of projections, in one place.

export const projectionLimits = {
  /** Events that are folded and written together, and how many such batches at once. */
  batchSize: 1_000,
  lanes: 4,
  inFlightMax: 8_000,
  waitMs: 30_000,
  /** Events that a rebuild reads and writes at once. */
  rebuildPage: 5_000,
  /** Documents that a rebuild keeps in memory between batches, and how long they may be together. */
  rebuildDocuments: 20_000,
  rebuildChars: 32 * 1_048_576,
  rebuildCheckpointMs: 100,
  /** What goes to the store of read models at once is no longer than this. */
  writeChars: 8 * 1_048_576,
  leaseMs: 10_000,
} as const;

export const readModelLimits = {
  documentBytesMax: 1_048_576,
  /** A code, not a text: it is part of an index. */
  indexCharsMax: 255,
  /** Indexes, sets and ranges of one model, each. */
  entriesMax: 32,
  /** Groups that one document belongs to, in all. */
  groupsMax: 4_096,
  pageSize: 100,
  pageSizeMax: 1_000,
  /** Ids in one cached list. */
  listIdsMax: 10_000,
  listTtlMs: 30_000,
  /** Documents that one call may write or load. */
  batchMax: 10_000,
  /** Documents that one step removes of a version that is retired. */
  clearStep: 500,
} as const;
