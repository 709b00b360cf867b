// Computes the progress, speed and remaining time of a rebuild.

import { positionDistance, startPosition, type Position } from '../../store/position.ts';

export interface RebuildProgress {
  /** Number of events that this run folded. */
  readonly events: number;
  readonly position: Position;
  readonly head: Position;
  /** Share of the store, from 0 to 1. */
  readonly done: number;
  /** Average of the last seconds. */
  readonly eventsPerSecond: number;
  /** Undefined until it can be estimated. */
  readonly secondsLeft: number | undefined;
}

interface Moment {
  readonly atMs: number;
  readonly events: number;
  /** The distance from the start of the store. */
  readonly distance: number;
}

/** Time window of the speed measurement. */
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
      const now: Moment = { atMs, events, distance: positionDistance(startPosition, position) };
      moments.push(now);
      // Keep one moment from before the window as the start of the measurement.
      const first = moments.findLastIndex((each) => each.atMs <= atMs - windowMs);
      if (first > 0) moments = moments.slice(first);
      const since = moments[0] ?? now;
      const seconds = (atMs - since.atMs) / 1_000;
      const end = Math.max(positionDistance(startPosition, head), now.distance);
      const pace = seconds === 0 ? 0 : (now.distance - since.distance) / seconds;
      return {
        events,
        position,
        head,
        done: end === 0 ? 1 : now.distance / end,
        eventsPerSecond: seconds === 0 ? 0 : (events - since.events) / seconds,
        secondsLeft: pace > 0 ? (end - now.distance) / pace : end === now.distance ? 0 : undefined,
      };
    },
  };
}
