// Defaults and bounds of read models, in one place.

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
