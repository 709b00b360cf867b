// Limits the concurrent calls of one destination. As many messages as there are slots wait a moment for one; the
// others return to the ledger, each with a different due time, so that a slow destination does not occupy the dispatcher.

import type { Clock } from '../foundation/clock.ts';

type SlotResult =
  /** Only an attempted call counts for the average duration. */
  | { readonly kind: 'acquired'; readonly release: (call: { readonly isTried: boolean }) => void }
  | { readonly kind: 'full'; readonly backInMs: number };

export interface CallSlots {
  /** Rejects when the signal fires. */
  acquire(key: string, slotsMax: number, signal: AbortSignal): Promise<SlotResult>;
  /** The number of destinations in memory. */
  readonly size: number;
}

interface CallQueue {
  running: number;
  readonly waiting: Set<() => void>;
  /** A moving average of the duration of calls. */
  tookMs: number;
  /** The return time of the last postponed message. */
  lastReturnMs: number;
}

const slotLimits = {
  /** The assumed duration before the first call has ended. */
  tookMsFirst: 100,
  /** The longest delay, because the estimate may be wrong. */
  backInMsMax: 5_000,
} as const;

export function createCallSlots(clock: Clock, waitMsMax: number): CallSlots {
  const queues = new Map<string, CallQueue>();

  function queueOf(key: string): CallQueue {
    const known = queues.get(key);
    if (known !== undefined) return known;
    const queue = {
      running: 0,
      waiting: new Set<() => void>(),
      lastReturnMs: 0,
      tookMs: slotLimits.tookMsFirst,
    };
    queues.set(key, queue);
    return queue;
  }

  function slotOf(key: string, queue: CallQueue): SlotResult {
    const sinceMs = clock.now();
    return {
      kind: 'acquired',
      release({ isTried }) {
        if (isTried) queue.tookMs += (clock.now() - sinceMs - queue.tookMs) / 8;
        const [next] = queue.waiting;
        // The slot goes to the first waiting message.
        if (next !== undefined) return next();
        queue.running -= 1;
        if (queue.running === 0) queues.delete(key);
      },
    };
  }

  /** Each postponed message gets a later return time than the one before. */
  function postpone(queue: CallQueue, slotsMax: number): SlotResult {
    const nowMs = clock.now();
    const endMs = Math.max(queue.lastReturnMs, nowMs) + queue.tookMs / slotsMax;
    queue.lastReturnMs = Math.min(endMs, nowMs + slotLimits.backInMsMax);
    return { kind: 'full', backInMs: Math.ceil(queue.lastReturnMs - nowMs) };
  }

  return {
    get size() {
      return queues.size;
    },
    async acquire(key, slotsMax, signal) {
      const queue = queueOf(key);
      if (queue.running < slotsMax) {
        queue.running += 1;
        return slotOf(key, queue);
      }
      if (queue.waiting.size >= slotsMax) return postpone(queue, slotsMax);
      const woken = new AbortController();
      let hasSlot = false;
      const wake = (): void => {
        hasSlot = true;
        queue.waiting.delete(wake);
        woken.abort();
      };
      queue.waiting.add(wake);
      try {
        await clock.sleep(waitMsMax, AbortSignal.any([signal, woken.signal]));
      } catch (error) {
        if (!hasSlot) throw error;
      } finally {
        queue.waiting.delete(wake);
      }
      return hasSlot ? slotOf(key, queue) : postpone(queue, slotsMax);
    },
  };
}
