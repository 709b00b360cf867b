// Time limits of many concurrent calls with one timer per length: calls of the same length expire in the order
// in which they began. A timer and its signals for each call would cost more than most calls.

import type { Clock } from '../clock.ts';

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
interface TimerGroup {
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
  const groups = new Map<number, TimerGroup>();

  stopping?.addEventListener(
    'abort',
    () => {
      for (const group of groups.values()) {
        for (const call of group.calls) if (group.calls.delete(call)) call.expire('stopped');
        leave(group);
      }
    },
    { once: true },
  );

  function groupOf(timeoutMs: number): TimerGroup {
    const known = groups.get(timeoutMs);
    if (known !== undefined) return known;
    const group: TimerGroup = { timeoutMs, calls: new Set(), timer: undefined, isLeaving: false };
    groups.set(timeoutMs, group);
    return group;
  }

  function leave(group: TimerGroup): void {
    group.isLeaving = false;
    if (group.calls.size > 0) return;
    group.timer?.abort();
    drop(group);
  }

  /** Callers may choose any length, so a group without calls must not stay. */
  function drop(group: TimerGroup): void {
    group.timer = undefined;
    if (groups.get(group.timeoutMs) === group) groups.delete(group.timeoutMs);
  }

  async function watch(group: TimerGroup, timer: AbortController): Promise<void> {
    for (const first of group.calls) {
      const waitMs = first.dueMs - clock.now();
      if (waitMs > 0) await clock.sleep(waitMs, timer.signal);
      // False: the call ended during the sleep.
      if (group.calls.delete(first)) first.expire('late');
    }
    // In the same step as the end of the loop: a call that begins later must start a new timer.
    if (group.timer === timer) drop(group);
  }

  return {
    begin(timeoutMs, expire) {
      if (stopping?.aborted === true) {
        expire('stopped');
        return () => undefined;
      }
      const group = groupOf(timeoutMs);
      const call = { dueMs: clock.now() + timeoutMs, expire };
      group.calls.add(call);
      if (group.timer === undefined) {
        const timer = new AbortController();
        group.timer = timer;
        // Rejects only when `leave` aborts its sleep.
        watch(group, timer).catch(() => undefined);
      }
      return () => {
        group.calls.delete(call);
        if (group.calls.size > 0 || group.isLeaving) return;
        // Calls that follow each other share the timer; without a call it would only keep the process alive.
        group.isLeaving = true;
        immediate(() => leave(group));
      };
    },
  };
}
