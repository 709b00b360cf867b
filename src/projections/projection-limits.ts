// Defaults and bounds of projections, in one place.

export const projectionLimits = {
  /** Events that are folded and written together, and how many such batches at once. */
  batchSize: 1_000,
  lanes: 4,
  inFlightMax: 8_000,
  waitMs: 30_000,
  /** Events that a rebuild reads and writes at once. */
  rebuildPage: 5_000,
  /** Documents that a rebuild keeps in memory between batches. */
  rebuildDocuments: 20_000,
  leaseMs: 10_000,
} as const;
