// Defaults and limits of the outbox. The lengths are those of the ledger's columns.

export const outboxLimits = {
  sourceStreamIdMax: 200,
  sourceEventIdMax: 100,
  integrationTypeMax: 120,
  eventTypeMax: 120,
  tenantIdMax: 60,
  userIdMax: 60,
  correlationIdMax: 120,
  orderingKeyMax: 200,
  workerIdMax: 120,
  lastErrorMax: 5_000,
  /** Attempts that are kept per message that failed at least once; older attempts are removed. */
  attemptsKept: 20,
  /** Bytes of the response that are stored with an attempt. */
  answerBytesMax: 2_048,
  maxAttemptsDefault: 10,
  maxAttemptsMax: 1_000,
  enqueueMax: 1_000,
  claimBatchDefault: 100,
  claimBatchMax: 5_000,
  /** The claims of a killed process are free again after this; running attempts renew theirs. */
  leaseMsDefault: 15_000,
  leaseMsMax: 86_400_000,
  tickIntervalMsDefault: 1_000,
  concurrencyDefault: 50,
  timeoutMsDefault: 30_000,
  /** The payload bytes of claimed messages that wait to be sent. */
  waitingBytesMax: 16 * 1_048_576,
  drainMsDefault: 10_000,
  metricsIntervalMsDefault: 15_000,
  /** Jobs that may wait in one queue: bounds the delay of other tenants, and the memory of Redis. */
  waitingMaxDefault: 250,
  /** The number of lanes: all messages of one destination and tenant are in one lane. */
  lanes: 64,
  retryAfterMsMax: 24 * 3_600_000,
  listDefault: 100,
  listMax: 1_000,
  purgeBatchDefault: 1_000,
} as const;
