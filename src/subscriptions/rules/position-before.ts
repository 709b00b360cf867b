// Finds the position of a time by bisection, because events are numbered in the order of recording. The
// result is as precise as the clocks of the appending processes.

import type { EventStore } from '../../store/event-store.ts';
import { startPosition, toPosition, toSequence, type Position } from '../../store/position.ts';

/** The position of the last event recorded before this time. */
export async function positionBefore(
  store: Pick<EventStore, 'readAll' | 'head'>,
  atMs: number,
): Promise<Position> {
  // Events up to `low` were recorded before `atMs`; events after `high` were not.
  let low = toSequence(startPosition);
  let high = toSequence(await store.head());
  while (low < high) {
    const middle = low + Math.floor((high - low) / 2);
    const [next] = await store.readAll({ after: toPosition(middle), limit: 1 }).toArray();
    if (next === undefined || Date.parse(next.recordedAt) >= atMs) high = middle;
    else low = toSequence(next.position);
  }
  return toPosition(low);
}
