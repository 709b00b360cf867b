// How far a rebuild is, how fast, and how long it will still take: plain arithmetic over moments.

import { toSequence, type Position } from '../../store/position.ts';

export interface RebuildProgress {
  /** Events that this run has folded. */
  readonly events: number;
  readonly position: Position;
  readonly head: Position;
  /** From 0 to 1, of all events that the store holds. */
  readonly done: number;
  /** Of the last seconds. */
  readonly eventsPerSecond: number;
  /** Undefined until it can be told. */
  readonly secondsLeft: number | undefined;
}

interface Moment {
  readonly atMs: number;
  readonly events: number;
  readonly sequence: number;
}

/** Over so long the speed is measured. */
const windowMs = 5_000;

export interface ProgressMeter {
  at(moment: {
    readonly atMs: number;
    readonly events: number;
    readonly position: Position;
    readonly head: Position;
  }): RebuildProgress;
}

export function createProgressMeter(): ProgressMeter {
  let moments: Moment[] = [];
  return {
    at({ atMs, events, position, head }) {
      const now: Moment = { atMs, events, sequence: toSequence(position) };
      moments.push(now);
      // One from before the window stays, to measure from.
      const first = moments.findLastIndex((each) => each.atMs <= atMs - windowMs);
      if (first > 0) moments = moments.slice(first);
      const since = moments[0] ?? now;
      const seconds = (atMs - since.atMs) / 1_000;
      const end = Math.max(toSequence(head), now.sequence);
      const pace = seconds === 0 ? 0 : (now.sequence - since.sequence) / seconds;
      return {
        events,
        position,
        head,
        done: end === 0 ? 1 : now.sequence / end,
        eventsPerSecond: seconds === 0 ? 0 : (events - since.events) / seconds,
        secondsLeft: pace > 0 ? (end - now.sequence) / pace : end === now.sequence ? 0 : undefined,
      };
    },
  };
}
