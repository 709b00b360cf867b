// Reading one stream in both directions, from any revision, page by page.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';
import type { EventStore, ReadStreamOptions } from '../../../store/event-store.ts';
import type { RecordedEvent } from '../../../store/recorded-event.ts';
import {
  assertDense,
  idsOf,
  newEvent,
  newEvents,
  newStream,
  storedIds,
  type StoreCases,
} from './fixture.ts';

export const readStreamCases: StoreCases = {
  'forwards: returns all events, oldest first': async ({ store }) => {
    assert.deepEqual(await read(store, 7, {}), [0, 1, 2, 3, 4, 5, 6]);
  },

  'backwards: returns all events, newest first': async ({ store }) => {
    assert.deepEqual(await read(store, 7, { direction: 'backwards' }), [6, 5, 4, 3, 2, 1, 0]);
  },

  'forwards: starts at a revision, inclusive': async ({ store }) => {
    assert.deepEqual(await read(store, 6, { from: 4 }), [4, 5]);
    assert.deepEqual(await read(store, 6, { from: 0 }), [0, 1, 2, 3, 4, 5]);
    assert.deepEqual(await read(store, 6, { from: 5 }), [5]);
  },

  'backwards: starts at a revision, inclusive': async ({ store }) => {
    const direction = 'backwards';
    assert.deepEqual(await read(store, 6, { direction, from: 2 }), [2, 1, 0]);
    assert.deepEqual(await read(store, 6, { direction, from: 0 }), [0]);
  },

  'forwards: returns nothing from a revision above the last one': async ({ store }) => {
    assert.deepEqual(await read(store, 3, { from: 3 }), []);
    assert.deepEqual(await read(store, 3, { from: 1_000_000 }), []);
  },

  'backwards: starts with the last event from a revision above the last one': async ({ store }) => {
    assert.deepEqual(await read(store, 3, { direction: 'backwards', from: 99 }), [2, 1, 0]);
  },

  'forwards: returns no more events than the limit': async ({ store }) => {
    assert.deepEqual(await read(store, 6, { limit: 2 }), [0, 1]);
    assert.deepEqual(await read(store, 6, { from: 3, limit: 2 }), [3, 4]);
  },

  'backwards: returns no more events than the limit': async ({ store }) => {
    const direction = 'backwards';
    assert.deepEqual(await read(store, 6, { direction, limit: 2 }), [5, 4]);
    assert.deepEqual(await read(store, 6, { direction, from: 3, limit: 2 }), [3, 2]);
  },

  'a limit of 0 returns nothing, a limit above the length returns all events': async ({
    store,
  }) => {
    assert.deepEqual(await read(store, 3, { limit: 0 }), []);
    assert.deepEqual(await read(store, 3, { limit: 1_000 }), [0, 1, 2]);
  },

  'every page size returns the same events, in both directions': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(12));
    const forwards = Array.from({ length: 12 }, (_, revision) => revision);
    for (const pageSize of [1, 2, 3, 5, 6, 7, 11, 12, 13, 100]) {
      const options = { pageSize };
      assert.deepEqual(revisions(await store.readStream(stream, options).toArray()), forwards);
      assert.deepEqual(
        revisions(await store.readStream(stream, { ...options, direction: 'backwards' }).toArray()),
        forwards.toReversed(),
      );
    }
  },

  'a limit that is not a multiple of the page size cuts off the last page': async ({ store }) => {
    for (const [pageSize, limit] of [
      [3, 7],
      [4, 3],
      [5, 5],
      [2, 1],
    ] as const) {
      const expected = Array.from({ length: limit }, (_, revision) => revision + 1);
      assert.deepEqual(await read(store, 10, { from: 1, pageSize, limit }), expected);
    }
  },

  'pages never exceed the page size and are never empty': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(10));
    const sizes: number[] = [];
    for await (const page of store.readStream(stream, { pageSize: 4 }).pages()) {
      sizes.push(page.length);
    }
    assert.deepEqual(sizes, [4, 4, 2]);
    for await (const page of store.readStream(stream, { pageSize: 5 }).pages()) {
      assert.equal(page.length, 5);
    }
  },

  'a missing stream has no events': async ({ store }) => {
    const stream = newStream();
    for (const direction of ['forwards', 'backwards'] as const) {
      assert.deepEqual(await store.readStream(stream, { direction }).toArray(), []);
    }
    for await (const page of store.readStream(stream).pages()) {
      assert.fail(`a page of ${page.length} events`);
    }
    assert.equal(await store.streamInfo(stream), undefined);
  },

  'reads a stream of thousands of events completely by default': async ({ open }) => {
    const store = await open();
    const stream = newStream();
    for (let round = 0; round < 3; round += 1) await store.append(stream, newEvents(700));
    const events: RecordedEvent[] = [];
    for await (const event of store.readStream(stream)) events.push(event);
    assert.equal(events.length, 2_100);
    assertDense(events);
  },

  'streams do not mix, even if one name is a prefix of the other': async ({ store }) => {
    const stream = newStream();
    const names = [stream, `${stream}0`, `${stream}-1`, stream.slice(0, -1)];
    const stored = new Map<string, DomainEventEnvelope[]>();
    for (const name of names) stored.set(name, newEvents(3));
    for (const [name, events] of stored) await store.append(name, events);
    for (const [name, events] of stored) {
      assert.deepEqual(await storedIds(store, name), idsOf(events));
    }
  },

  'a reader can be reused and then returns new events': async ({ store }) => {
    const stream = newStream();
    const reader = store.readStream(stream);
    assert.equal((await reader.toArray()).length, 0);
    await store.append(stream, newEvents(2));
    assert.equal((await reader.toArray()).length, 2);
    await store.append(stream, newEvents(2));
    assert.equal((await reader.toArray()).length, 4);
  },

  'a reader can be stopped early without affecting the store': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(9));
    for await (const event of store.readStream(stream, { pageSize: 2 })) {
      if (event.revision === 4) break;
    }
    assert.equal((await store.append(stream, [newEvent()])).revision, 9);
  },

  'appends during a read neither repeat nor skip events': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(10));
    const events: RecordedEvent[] = [];
    let more = 5;
    for await (const event of store.readStream(stream, { pageSize: 3 })) {
      events.push(event);
      if (more > 0) await store.append(stream, [newEvent()]);
      more -= 1;
    }
    assert.ok(events.length >= 10);
    assertDense(events);
  },

  'a backwards read does not return events appended during it': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(6));
    const seen: number[] = [];
    const options = { direction: 'backwards', pageSize: 2 } as const;
    for await (const event of store.readStream(stream, options)) {
      seen.push(event.revision);
      await store.append(stream, [newEvent()]);
    }
    assert.deepEqual(seen, [5, 4, 3, 2, 1, 0]);
  },

  'rejects a read whose signal is aborted': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(2));
    const signal = AbortSignal.abort();
    await rejectsWith(() => store.readStream(stream, { signal }).toArray(), 'ABORTED');
  },

  'an abort during a read stops it after the current page': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(10));
    const leaving = new AbortController();
    const pages: number[] = [];
    await rejectsWith(async () => {
      const reader = store.readStream(stream, { pageSize: 2, signal: leaving.signal });
      for await (const page of reader.pages()) {
        pages.push(page.length);
        if (pages.length === 2) leaving.abort();
      }
    }, 'ABORTED');
    assert.deepEqual(pages, [2, 2]);
  },

  'finds an event by its id in its stream only': async ({ store }) => {
    const [stream, other] = [newStream(), newStream()];
    const events = newEvents(5);
    await store.append(stream, events);
    await store.append(other, newEvents(2));
    for (const [revision, { eventId }] of events.entries()) {
      assert.equal((await store.findEvent(stream, eventId))?.revision, revision);
      assert.equal(await store.findEvent(other, eventId), undefined);
      assert.equal(await store.findEvent(newStream(), eventId), undefined);
    }
    assert.equal(await store.findEvent(stream, 'unknown'), undefined);
  },
};

async function read(
  store: EventStore,
  count: number,
  options: ReadStreamOptions,
): Promise<number[]> {
  const stream = newStream();
  await store.append(stream, newEvents(count));
  return revisions(await store.readStream(stream, options).toArray());
}

function revisions(events: readonly RecordedEvent[]): number[] {
  return events.map(({ revision }) => revision);
}
