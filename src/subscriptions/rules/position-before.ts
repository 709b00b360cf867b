// Where in the store a time lies: events are numbered as they are recorded, so bisecting finds it in a
// few reads. Clocks of appending processes may differ a little, and so may the answer.

import type { EventStore } from '../../store/event-store.ts';
import { startPosition, toPosition, toSequence, type Position } from '../../store/position.ts';

/** Behind the last event that was recorded before this time. */
export async function positionBefore(
  store: Pick<EventStore, 'readAll' | 'head'>,
  atMs: number,
): Promise<Position> {
  // Everything up to `low` was recorded before; what follows `high` was not.
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
