// Pure decisions about the size of a claim. Sending must never wait for a claim. But a dispatcher claims no more than
// it sends within moments, because newer messages of other tenants queue after claimed ones.

export interface ClaimPace {
  /** The size of the next claim. */
  readonly limit: number;
  /** No claim is made while at least this many claimed messages wait to be sent. */
  readonly enough: number;
  /** Sending is faster than claiming, and more messages are due than one claim returns. */
  readonly isBehind: boolean;
  /** One claim at a time cannot keep up: a second concurrent one is needed. */
  readonly needsSecondClaim: boolean;
}

export interface PaceLimits {
  readonly batchSize: number;
  readonly concurrency: number;
}

/** Measurements of the last claim. */
export interface ClaimReport {
  /** The size that was requested, and what was returned. */
  readonly limit: number;
  readonly claimed: number;
  /** When the claim returned: messages that waited to be sent, and messages that were being sent. */
  readonly waiting: number;
  readonly inFlight: number;
  /** Messages sent while the claim was running. */
  readonly sent: number;
  /** Undefined: not measured yet. */
  readonly sentPerMs: number | undefined;
}

/** Claimed messages are sent within this time. */
const aheadMs = 50;

/** The number of batches that may wait to be settled, because their leases keep running. */
const unsettledBatchesMax = 4;

export function firstPace({ batchSize, concurrency }: PaceLimits): ClaimPace {
  const limit = Math.min(batchSize, 2 * concurrency);
  return { limit, enough: concurrency, isBehind: false, needsSecondClaim: false };
}

export function nextPace(
  pace: ClaimPace,
  report: ClaimReport,
  { batchSize, concurrency }: PaceLimits,
): ClaimPace {
  const { claimed, waiting, inFlight, sent, sentPerMs } = report;
  const hasRunDry = waiting === 0 && inFlight < concurrency;
  // With two claims at a time one returns before the other's messages are sent: both are needed while
  // those would be sent before the next claim returns.
  const isHungry = hasRunDry || (pace.isBehind && waiting <= 2 * sent);
  const isBehind = isHungry && claimed >= report.limit;
  const flags = { isBehind, needsSecondClaim: isBehind && sent > 0 };
  if (isHungry) {
    const limit = Math.min(batchSize, 2 * pace.limit);
    // While one batch is sent, the next one is read and the one after that is claimed.
    return { limit, enough: 2 * limit + concurrency, ...flags };
  }
  if (sentPerMs === undefined) return { limit: pace.limit, enough: concurrency, ...flags };
  const within = (ms: number, most: number): number =>
    Math.max(1, Math.min(most, Math.ceil(sentPerMs * ms)));
  const limit = within(aheadMs, batchSize);
  return { limit, enough: within(aheadMs / 2, concurrency), ...flags };
}

/** After a failed call: one claim at a time, settled together with it. */
export function paceAfterFailure(pace: ClaimPace): ClaimPace {
  return { ...pace, isBehind: false, needsSecondClaim: false };
}

/** The size of a claim that fits now: what is sent within moments, and all that can start at once. 0: none. */
export function claimRoom(
  pace: ClaimPace,
  now: {
    readonly waiting: number;
    readonly inFlight: number;
    /** Messages that running claims may return. */
    readonly requested: number;
    /** Outcomes that are being stored, and those that wait for that. */
    readonly unsettled: number;
  },
  { batchSize, concurrency }: PaceLimits,
): number {
  const coming = now.waiting + now.requested;
  const isFull = now.unsettled + now.requested >= unsettledBatchesMax * batchSize;
  if (coming >= pace.enough || isFull) return 0;
  return Math.min(batchSize, Math.max(pace.limit, concurrency - now.inFlight - coming));
}

export interface SendRate {
  sent(): void;
  /** Undefined until messages were counted for long enough. */
  perMs(nowMs: number): number | undefined;
}

/** Measured over intervals as long as what is claimed ahead: shorter ones are too inaccurate. */
export function createSendRate(nowMs: number): SendRate {
  let sinceMs = nowMs;
  let count = 0;
  let rate: number | undefined;
  return {
    sent() {
      count += 1;
    },
    perMs(atMs) {
      const elapsedMs = atMs - sinceMs;
      if (elapsedMs >= aheadMs) {
        rate = count / elapsedMs;
        sinceMs = atMs;
        count = 0;
      }
      return rate;
    },
  };
}
