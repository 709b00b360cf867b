// A wait that ends by a wake-up, or by time: what a wake-up missed is found all the same.

import type { Clock } from '../foundation/clock.ts';
import type { Waiters } from '../store/waiters.ts';

export interface PollOptions {
  readonly clock: Clock;
  readonly pollMs: number;
  readonly signal: AbortSignal;
}

export async function waitWithPoll(
  waiters: Waiters,
  { clock, pollMs, signal }: PollOptions,
): Promise<void> {
  const either = new AbortController();
  const both = AbortSignal.any([signal, either.signal]);
  try {
    await Promise.race([waiters.wait(both, () => false), clock.sleep(pollMs, both)]);
  } finally {
    // Whichever is left must not outlive the wait: its rejection is nobody's any more.
    // A reason of its own: to make one, with its stack, takes longer than the rest.
    either.abort('over');
  }
}
