// Fills stores for reading: one account with 10,000 events, and others with 1,000.

import { sampleEvent, streamOf } from './sample-events.ts';
import type { Appending } from './subject-store.ts';

export const bigAccount = { id: 'big', events: 10_000 } as const;
export const readAccount = { id: 'thousand', events: 1_000 } as const;
const appendEvents = 1_000;

/** Appends events 0 to `total` − 1, in this order. */
export async function fill(store: Appending, total: number): Promise<void> {
  let number = 0;
  const fillAccount = async (id: string, events: number): Promise<void> => {
    for (let there = 0; there < events;) {
      const count = Math.min(appendEvents, events - there, total - number);
      if (count === 0) return;
      const batch = Array.from({ length: count }, (_event, at) => sampleEvent(number + at, id));
      await store.append(streamOf(id), there, batch);
      there += count;
      number += count;
    }
  };
  await fillAccount(bigAccount.id, bigAccount.events);
  await fillAccount(readAccount.id, readAccount.events);
  for (let account = 0; number < total; account += 1) {
    await fillAccount(`other-${account}`, readAccount.events);
  }
}
