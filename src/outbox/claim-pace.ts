// How much a dispatcher claims: so much that sending never waits for a claim, and no more than is sent in a
// moment, because what another tenant enqueues meanwhile waits behind it.

export interface ClaimPace {
  /** Of the next claim. */
  readonly limit: number;
  /** The next claim is made once fewer than this wait for their turn. */
  readonly enough: number;
}

export interface PaceContext {
  readonly batchSize: number;
  readonly concurrency: number;
  /** Everything that was claimed had begun before the next came: sending is faster than claiming. */
  readonly isHungry: boolean;
  /** Undefined: not known yet. */
  readonly sentPerMs: number | undefined;
}

/** What waits in a process is sent within this time. */
const aheadMs = 50;

export function firstPace({
  batchSize,
  concurrency,
}: Pick<PaceContext, 'batchSize' | 'concurrency'>): ClaimPace {
  return { limit: Math.min(batchSize, 2 * concurrency), enough: concurrency };
}

export function nextPace(pace: ClaimPace, context: PaceContext): ClaimPace {
  const { batchSize, concurrency, isHungry, sentPerMs } = context;
  if (isHungry) {
    const limit = Math.min(batchSize, 2 * pace.limit);
    // While one batch is being sent, the next one is read, and the one behind it claimed.
    return { limit, enough: 2 * limit + concurrency };
  }
  if (sentPerMs === undefined) return { limit: pace.limit, enough: concurrency };
  const within = (ms: number, most: number): number =>
    Math.max(1, Math.min(most, Math.ceil(sentPerMs * ms)));
  return { limit: within(aheadMs, batchSize), enough: within(aheadMs / 2, concurrency) };
}

export interface SendRate {
  sent(): void;
  /** Undefined until something was counted for long enough. */
  perMs(nowMs: number): number | undefined;
}

/** Counted over times that are as long as what is claimed ahead: shorter ones say little. */
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
