// Subscriptions during concurrent appends, where stores tend to lose events silently.

import assert from 'node:assert/strict';
import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';
import type { EventStore } from '../../../store/event-store.ts';
import { startPosition } from '../../../store/position.ts';
import type { RecordedEvent } from '../../../store/recorded-event.ts';
import {
  assertAscending,
  assertDense,
  follow,
  idsOf,
  needs,
  newEvent,
  newEvents,
  newStream,
  turn,
  type StoreCases,
} from './fixture.ts';

export const subscribeConcurrentlyCases: StoreCases = {
  'delivers every event once while eight writers append': async ({ open, signal }) => {
    const store = await open();
    const end = newEvent();
    await using early = follow(store.subscribe({ signal, pageSize: 7 }));
    const writers = writeMuch(store, { writers: 8, rounds: 25, end });
    await using late = follow(store.subscribe({ signal, pageSize: 50 }));
    const [total, ...seen] = await Promise.all([
      writers,
      early.before(end.eventId),
      late.before(end.eventId),
    ]);
    assert.equal(total, 400);
    const all = await store.readAll({ filter: {}, limit: total }).toArray();
    for (const events of seen) {
      assert.deepEqual(idsOf(events), idsOf(all));
      assertAscending(events.map(({ position }) => position));
      assertDense(events);
    }
  },

  'delivers every event once while thirty-two writers share streams': async ({ open, signal }) => {
    const store = await open();
    const end = newEvent();
    await using follower = follow(store.subscribe({ signal }));
    const [total, events] = await Promise.all([
      writeMuch(store, { writers: 32, rounds: 10, shared: 3, end }),
      follower.before(end.eventId),
    ]);
    assert.equal(events.length, total);
    assertAscending(events.map(({ position }) => position));
    assertDense(events);
  },

  'delivers every event once when it repeatedly stops and resumes from its last position': async ({
    open,
    signal,
  }) => {
    const store = await open();
    const end = newEvent();
    const writers = writeMuch(store, { writers: 8, rounds: 20, end });
    const seen: RecordedEvent[] = [];
    let after = startPosition;
    const ended = (): boolean => seen.some(({ eventId }) => eventId === end.eventId);
    while (!ended()) {
      let items = 0;
      for await (const item of store.subscribe({ after, signal, pageSize: 6 })) {
        if (item.kind === 'events') seen.push(...item.events);
        after = item.position;
        items += 1;
        if (items === 3 || ended()) break;
      }
      await turn();
    }
    assert.equal(seen.length, (await writers) + 1);
    assert.deepEqual(idsOf(seen), idsOf(await store.readAll({ filter: {} }).toArray()));
    assertDense(seen);
  },

  'delivers every matching event once with a filter': async ({ open, signal }) => {
    const store = await open();
    const category = 'crm.contact.v1';
    const end = newEvent();
    await using follower = follow(store.subscribe({ filter: { category }, signal, pageSize: 5 }));
    const others = writeMuch(store, { writers: 8, rounds: 20, end: newEvent() });
    const [total, events] = await Promise.all([
      writeMuch(store, { writers: 8, rounds: 20, category, end }),
      follower.before(end.eventId),
      others,
    ]);
    assert.equal(events.length, total);
    assertDense(events);
    assert.ok(events.every(({ stream }) => stream.startsWith(`${category}-`)));
  },

  'delivers every event once with appends to several streams': needs(
    'multiStreamAppend',
    async ({ open, signal }) => {
      const store = await open();
      const end = newEvent();
      await using follower = follow(store.subscribe({ signal, pageSize: 9 }));
      const streams = Array.from({ length: 4 }, () => newStream());
      const writing = Array.from({ length: 8 }, async (_, writer) => {
        for (let round = 0; round < 10; round += 1) {
          const [a, b] = [streams[(writer + round) % 4] ?? '', streams[(writer + 2) % 4] ?? ''];
          await store.appendMany([
            { stream: a, events: newEvents(2) },
            { stream: b, events: newEvents(1) },
          ]);
        }
      });
      const [events] = await Promise.all([
        follower.before(end.eventId),
        Promise.all(writing).then(() => store.append(newStream(), [end])),
      ]);
      assert.equal(events.length, 240);
      assertDense(events);
    },
  ),
};

/** Appends one or three events at a time, then `end`; resolves to the number of events before it. */
async function writeMuch(
  store: EventStore,
  options: {
    readonly writers: number;
    readonly rounds: number;
    readonly shared?: number;
    readonly category?: string;
    readonly end: DomainEventEnvelope;
  },
): Promise<number> {
  const { writers, rounds, shared = 1, category, end } = options;
  const streams = Array.from({ length: shared }, () => newStream(category));
  let total = 0;
  await Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      const own = newStream(category);
      for (let round = 0; round < rounds; round += 1) {
        const both = streams[(writer + round) % shared] ?? own;
        const events = newEvents(1 + 2 * ((writer + round) % 2));
        await store.append(round % 3 === 0 ? both : own, events);
        total += events.length;
      }
    }),
  );
  await store.append(newStream(category), [end]);
  return total;
}
