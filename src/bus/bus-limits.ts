// Defaults and limits of the bus, for all engines.

export const busLimits = {
  /** The encoded envelope. NATS accepts 1 MiB by default, including headers. */
  messageBytesMax: 1_000_000,
  publishMax: 1_000,
  headersMax: 64,
  headerCharsMax: 1_024,
  idCharsMax: 128,
  groupCharsMax: 64,
  /** How long a message id is remembered. */
  dedupeWindowMsDefault: 120_000,
  dedupeWindowMsMax: 86_400_000,
  /** The messages of a killed member are free again after this; consumers renew theirs. */
  leaseMsDefault: 15_000,
  leaseMsMin: 20,
  leaseMsMax: 86_400_000,
  maxDeliveriesDefault: 10,
  maxDeliveriesMax: 1_000,
  maxAckPendingDefault: 1_000,
  maxAckPendingMax: 50_000,
  maxInFlightDefault: 100,
  /** The bytes of leased messages that wait for a handler. */
  waitingBytesMax: 16 * 1_048_576,
  /** A fetch or a batch of a read ends with the message that reaches this size. */
  batchBytesMax: 8 * 1_048_576,
  fetchMax: 1_000,
  fetchWaitMsDefault: 5_000,
  delayMsMax: 7 * 86_400_000,
  requestTimeoutMsDefault: 10_000,
  requestTimeoutMsMax: 600_000,
  pageMax: 1_000,
  pageDefault: 100,
  reasonCharsMax: 2_000,
  /** The backoff of readers while the broker is unavailable. */
  retryMsFirst: 50,
  retryMsMax: 5_000,
} as const;
