// Time limits of many concurrent calls with one timer per length: calls of the same length expire in the order
// in which they began. A timer and its signals for each call would cost more than most calls.

import type { Clock } from './clock.ts';

export interface CallDeadlines {
  /** Calls `expire` after `timeoutMs`, or when the process stops, unless the returned function was called before. */
  begin(timeoutMs: number, expire: Expire): () => void;
}

type Expire = (why: 'late' | 'stopped') => void;

interface Call {
  readonly dueMs: number;
  readonly expire: Expire;
}

/** The calls of one length; it exists while it has calls or a timer. */
interface Lane {
  readonly timeoutMs: number;
  readonly calls: Set<Call>;
  timer: AbortController | undefined;
  isLeaving: boolean;
}

/** Read at load time, because a test that fakes the timers later must not affect it. */
const immediate = globalThis.setImmediate;

export function createCallDeadlines(
  clock: Clock,
  /** Fires when the process can wait no longer: one listener for all calls. */
  stopping?: AbortSignal,
): CallDeadlines {
  const lanes = new Map<number, Lane>();

  stopping?.addEventListener(
    'abort',
    () => {
      for (const lane of lanes.values()) {
        for (const call of lane.calls) if (lane.calls.delete(call)) call.expire('stopped');
        leave(lane);
      }
    },
    { once: true },
  );

  function laneOf(timeoutMs: number): Lane {
    const known = lanes.get(timeoutMs);
    if (known !== undefined) return known;
    const lane: Lane = { timeoutMs, calls: new Set(), timer: undefined, isLeaving: false };
    lanes.set(timeoutMs, lane);
    return lane;
  }

  function leave(lane: Lane): void {
    lane.isLeaving = false;
    if (lane.calls.size > 0) return;
    lane.timer?.abort();
    drop(lane);
  }

  /** Callers may choose any length, so a lane without calls must not stay. */
  function drop(lane: Lane): void {
    lane.timer = undefined;
    if (lanes.get(lane.timeoutMs) === lane) lanes.delete(lane.timeoutMs);
  }

  async function watch(lane: Lane, timer: AbortController): Promise<void> {
    for (const first of lane.calls) {
      const waitMs = first.dueMs - clock.now();
      if (waitMs > 0) await clock.sleep(waitMs, timer.signal);
      // False: the call ended during the sleep.
      if (lane.calls.delete(first)) first.expire('late');
    }
    // In the same step as the end of the loop: a call that begins later must start a new timer.
    if (lane.timer === timer) drop(lane);
  }

  return {
    begin(timeoutMs, expire) {
      if (stopping?.aborted === true) {
        expire('stopped');
        return () => undefined;
      }
      const lane = laneOf(timeoutMs);
      const call = { dueMs: clock.now() + timeoutMs, expire };
      lane.calls.add(call);
      if (lane.timer === undefined) {
        const timer = new AbortController();
        lane.timer = timer;
        // Rejects only when `leave` aborts its sleep.
        watch(lane, timer).catch(() => undefined);
      }
      return () => {
        lane.calls.delete(call);
        if (lane.calls.size > 0 || lane.isLeaving) return;
        // Calls that follow each other share the timer; without a call it would only keep the process alive.
        lane.isLeaving = true;
        immediate(() => leave(lane));
      };
    },
  };
}
