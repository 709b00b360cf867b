// The wait of a claim, the same in the engines that wake their claims in the process.

import { aborted, sleepMsMax, type Clock } from '../foundation/clock.ts';
import type { Waiters } from '../foundation/async/waiters.ts';
import type { ClaimRequest, ClaimWait } from './task-engine.ts';
import type { StoredTask } from './task-job.ts';

export interface ClaimAnswer {
  readonly claimed: readonly StoredTask[];
  /** When the next job may be claimed: when one becomes due, or a rate allows it. `Infinity`: unknown. */
  readonly freeAtMs: number;
}

/** Repeats `claim` at each wake-up and at `freeAtMs`, until it returns a job or the wait is over. */
export async function claimUntilFound(
  claim: (request: ClaimRequest) => ClaimAnswer | Promise<ClaimAnswer>,
  request: ClaimRequest,
  {
    waitMs,
    signal,
    aroundClaim = (search) => search(),
    clock,
    waiters,
  }: ClaimWait & { readonly clock: Clock; readonly waiters: Waiters },
): Promise<readonly StoredTask[]> {
  const leaseMs = request.aliveUntilMs - request.nowMs;
  const untilMs = clock.now() + waitMs;
  for (let nowMs = request.nowMs; ; nowMs = clock.now()) {
    if (signal.aborted) throw aborted(signal);
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    // Registered before the claim: a job that is enqueued in between ends the wait.
    const woken = waiters.wait(either, () => false);
    // The claim may fail before it awaits `woken`.
    woken.catch(() => undefined);
    try {
      const found = await aroundClaim(async () =>
        claim({ ...request, nowMs, aliveUntilMs: nowMs + leaseMs }),
      );
      const leftMs = untilMs - clock.now();
      if (found.claimed.length > 0 || leftMs <= 0) return found.claimed;
      const sleepMs = Math.max(0, Math.min(leftMs, found.freeAtMs - clock.now(), sleepMsMax));
      await Promise.race([woken, clock.sleep(sleepMs, either)]);
    } finally {
      over.abort('over');
      await woken.catch(() => undefined);
    }
  }
}
