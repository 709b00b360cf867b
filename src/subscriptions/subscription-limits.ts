// Defaults and limits of subscriptions.

export const subscriptionLimits = {
  lanesDefault: 8,
  lanesMax: 256,
  shardsMax: 256,
  timeoutMsDefault: 30_000,
  batchSizeDefault: 100,
  batchSizeMax: 10_000,
  /** Events in processing; beyond this number the reader waits. */
  inFlightDefault: 2_000,
  /** Events from the oldest unprocessed to the newest; beyond it, waiting events move to the database. */
  windowMax: 50_000,
  checkpointEvery: 5_000,
  pageSize: 1_000,
  /** Pages that the shards of a process share; a shard that lags further behind reads alone. */
  sharedPagesMax: 8,
  checkpointMs: 1_000,
  leaseMs: 10_000,
  /** How long a graceful stop waits for running handlers. */
  drainMs: 20_000,
  /** How often the owner polls for requested replays. */
  pollMs: 1_000,
  claimTtlMs: 7 * 24 * 60 * 60_000,
  /** Interval and batch size for removing expired claims. */
  sweepMs: 60_000,
  sweepMax: 1_000,
  historyMax: 50,
  errorCharsMax: 2_000,
} as const;
