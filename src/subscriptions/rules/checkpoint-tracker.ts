// The checkpoint is the highest position up to which all events are processed. Lanes finish out of order;
// the tracker knows the end of the gapless part and drops the entries below it.

import type { Position } from '../../store/position.ts';

export interface CheckpointTracker {
  /** Adds the next position, in ascending order, and returns its ticket for `done`. */
  add(position: Position): number;
  /** All events up to this position have been added. */
  pass(position: Position): void;
  done(ticket: number): void;
  /** The value of `position` once these tickets are done. */
  positionWith(tickets: readonly number[]): Position | undefined;
  /** The checkpoint; undefined before the first. */
  readonly position: Position | undefined;
  /** Entries from the oldest unprocessed event to the newest. */
  readonly size: number;
  readonly isIdle: boolean;
  /** The entry that holds the checkpoint back. */
  readonly oldest: { readonly position: Position; readonly ticket: number } | undefined;
}

/** Below this length, compaction costs more than it saves. */
const compactAt = 1_024;

/**
 * Starts after the position `after`.
 *
 * @example
 * import { parsePosition } from 'millrace/store';
 * import { createCheckpointTracker } from 'millrace/subscriptions';
 *
 * const tracker = createCheckpointTracker();
 * const first = tracker.add(parsePosition('0000000000000001'));
 * const second = tracker.add(parsePosition('0000000000000002'));
 * tracker.done(second);
 * console.log(tracker.position); // undefined: the first is not done yet
 * tracker.done(first);
 * console.log(tracker.position); // 0000000000000002
 */
export function createCheckpointTracker(after?: Position): CheckpointTracker {
  let position = after;
  let positions: Position[] = [];
  let isDone: boolean[] = [];
  /** Ticket of the first entry in the arrays. */
  let baseTicket = 0;
  let head = 0;

  function advance(): void {
    while (head < positions.length && isDone[head] === true) {
      position = positions[head];
      head += 1;
    }
    if (head === positions.length) {
      baseTicket += head;
      positions = [];
      isDone = [];
      head = 0;
    } else if (head >= compactAt && head * 2 >= positions.length) {
      positions = positions.slice(head);
      isDone = isDone.slice(head);
      baseTicket += head;
      head = 0;
    }
  }

  return {
    add(next) {
      positions.push(next);
      isDone.push(false);
      return baseTicket + positions.length - 1;
    },
    pass(next) {
      if (positions.length === 0) {
        if (position === undefined || next > position) position = next;
        return;
      }
      if (next <= (positions.at(-1) as Position)) return;
      positions.push(next);
      isDone.push(true);
    },
    done(ticket) {
      const at = ticket - baseTicket;
      if (at < head) return;
      isDone[at] = true;
      if (at === head) advance();
    },
    positionWith(tickets) {
      let ahead = position;
      const assumed = new Set(tickets);
      for (let at = head; at < positions.length; at += 1) {
        if (isDone[at] !== true && !assumed.has(baseTicket + at)) break;
        ahead = positions[at];
      }
      return ahead;
    },
    get position() {
      return position;
    },
    get size() {
      return positions.length - head;
    },
    get isIdle() {
      return positions.length === 0;
    },
    get oldest() {
      const oldest = positions[head];
      return oldest === undefined ? undefined : { position: oldest, ticket: baseTicket + head };
    },
  };
}
