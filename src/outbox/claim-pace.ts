// Pure decisions about the size of a claim. Sending must never wait for a claim. But a dispatcher claims no more than
// it sends within moments, because newer messages of other tenants queue after claimed ones.

import type { ClaimLoad } from '../loops/next-claim-step.ts';

export interface ClaimPace {
  /** The size of the next claim. */
  readonly limit: number;
  /** No claim is made while at least this many claimed messages wait to be sent. */
  readonly enough: number;
}

export interface PaceLimits {
  readonly batchSize: number;
  readonly concurrency: number;
}

/** When a claim returned: messages that waited to be sent, and messages that were being sent. */
export interface ClaimReport extends Pick<ClaimLoad, 'waiting' | 'running'> {
  /** Undefined: not measured yet. */
  readonly sentPerMs: number | undefined;
}

/** Claimed messages are sent within this time. */
const aheadMs = 50;

/** The number of batches that may wait to be settled, because their leases keep running. */
const unsettledBatchesMax = 4;

export function firstPace({ batchSize, concurrency }: PaceLimits): ClaimPace {
  return { limit: Math.min(batchSize, 2 * concurrency), enough: concurrency };
}

export function nextPace(
  pace: ClaimPace,
  { waiting, running, sentPerMs }: ClaimReport,
  { batchSize, concurrency }: PaceLimits,
): ClaimPace {
  const isHungry = waiting === 0 && running < concurrency;
  if (isHungry) {
    const limit = Math.min(batchSize, 2 * pace.limit);
    // While one batch is sent, the next one is claimed.
    return { limit, enough: 2 * limit + concurrency };
  }
  if (sentPerMs === undefined) return { limit: pace.limit, enough: concurrency };
  const sentWithin = (ms: number): number =>
    Math.max(1, Math.min(batchSize, Math.ceil(sentPerMs * ms)));
  return { limit: sentWithin(aheadMs), enough: sentWithin(aheadMs / 2) };
}

/** The size of a claim that fits now: what is sent within moments, and all that can start at once. 0: none. */
export function claimRoom(
  pace: ClaimPace,
  { waiting, running, unsettled }: Omit<ClaimLoad, 'waitingBytes'>,
  { batchSize, concurrency }: PaceLimits,
): number {
  const isFull = unsettled >= unsettledBatchesMax * batchSize;
  if (waiting >= pace.enough || isFull) return 0;
  return Math.min(batchSize, Math.max(pace.limit, concurrency - running - waiting));
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
