// The checkpoint is the highest position below which everything is done. Lanes finish out of order;
// this knows how far the unbroken part reaches, and forgets what lies below it.

import type { Position } from '../../store/position.ts';

export interface CheckpointTracker {
  /** The next position, in ascending order; the ticket says later that it is done. */
  add(position: Position): number;
  /** Nothing up to here is left to be given out. */
  pass(position: Position): void;
  done(ticket: number): void;
  /** What `position` will be once these are done as well. */
  positionWith(tickets: readonly number[]): Position | undefined;
  /** Safe to keep; undefined before the first. */
  readonly position: Position | undefined;
  /** From the oldest that is not done to the newest: what memory and a restart have to bear. */
  readonly size: number;
  readonly isIdle: boolean;
  /** The position and the ticket that hold the checkpoint back. */
  readonly oldest: { readonly position: Position; readonly ticket: number } | undefined;
}

/** Below it, moving the rest down costs more than the room is worth. */
const compactAt = 1_024;

/**
 * Starts above `after`, everything up to which is done.
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
  /** Of the first entry in the arrays. */
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
      const these = new Set(tickets);
      for (let at = head; at < positions.length; at += 1) {
        if (isDone[at] !== true && !these.has(baseTicket + at)) break;
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
