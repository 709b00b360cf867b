// Defaults and bounds of subscriptions, in one place.

export const subscriptionLimits = {
  lanesDefault: 8,
  lanesMax: 256,
  shardsMax: 256,
  timeoutMsDefault: 30_000,
  batchSizeDefault: 100,
  batchSizeMax: 10_000,
  /** Events given to lanes and not done yet; the feed waits beyond it. */
  inFlightDefault: 2_000,
  /** From the oldest event that is not done to the newest: then the oldest waits in the database. */
  windowMax: 50_000,
  checkpointEvery: 5_000,
  pageSize: 1_000,
  /** Kept of what the shards of a process read together: who is further behind reads by itself. */
  sharedPagesMax: 8,
  checkpointMs: 1_000,
  leaseMs: 10_000,
  /** How long a graceful stop waits for handlers under way. */
  drainMs: 20_000,
  /** How often the owner looks for replays that others asked for. */
  pollMs: 1_000,
  claimTtlMs: 7 * 24 * 60 * 60_000,
  /** Claims that have outlived their time are removed so often, so many at once. */
  sweepMs: 60_000,
  sweepMax: 1_000,
  historyMax: 50,
  errorCharsMax: 2_000,
} as const;
