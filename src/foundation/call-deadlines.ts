// The time limits of many calls with one timer: all have the same length, so that they end in the order
// in which they began. A timer and its signals for each call would cost more than most calls.

import type { Clock } from './clock.ts';

export interface CallDeadlines {
  /** Calls `expire` when the time is up, or nobody may wait any longer, unless the result was called before. */
  begin(expire: Expire): () => void;
}

type Expire = (why: 'late' | 'stopped') => void;

interface Call {
  readonly dueMs: number;
  readonly expire: Expire;
}

/** Taken once: a test that fakes the timers later must not stop it. */
const immediate = globalThis.setImmediate;

export function createCallDeadlines(
  clock: Clock,
  timeoutMs: number,
  /** Fires when the process cannot wait any longer. One listener for all calls, as one timer. */
  stopping?: AbortSignal,
): CallDeadlines {
  const calls = new Set<Call>();
  let waiting: AbortController | undefined;
  let isLeaving = false;

  stopping?.addEventListener(
    'abort',
    () => {
      for (const call of calls) if (calls.delete(call)) call.expire('stopped');
      leave();
    },
    { once: true },
  );

  function leave(): void {
    isLeaving = false;
    if (calls.size > 0) return;
    waiting?.abort();
    waiting = undefined;
  }

  async function watch(own: AbortController): Promise<void> {
    for (const first of calls) {
      const waitMs = first.dueMs - clock.now();
      if (waitMs > 0) await clock.sleep(waitMs, own.signal);
      // It ended meanwhile, and so did perhaps others: the next one that is left is looked at.
      if (calls.delete(first)) first.expire('late');
    }
    // In the same step as the end of the loop: whoever begins behind it must find nobody watching.
    if (waiting === own) waiting = undefined;
  }

  return {
    begin(expire) {
      if (stopping?.aborted === true) {
        expire('stopped');
        return () => undefined;
      }
      const call = { dueMs: clock.now() + timeoutMs, expire };
      calls.add(call);
      if (waiting === undefined) {
        const own = new AbortController();
        waiting = own;
        // It rejects only when it was told to end.
        watch(own).catch(() => undefined);
      }
      return () => {
        calls.delete(call);
        if (calls.size > 0 || isLeaving) return;
        // Calls that follow each other share the timer; without any, it would only hold the process.
        isLeaving = true;
        immediate(leave);
      };
    },
  };
}
