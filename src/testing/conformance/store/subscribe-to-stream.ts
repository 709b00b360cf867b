// Live reading of one stream.

import assert from 'node:assert/strict';
import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';
import type { EventStore } from '../../../store/event-store.ts';
import { rejectsWith } from '../../assertions.ts';
import {
  assertDense,
  follow,
  idsOf,
  newEvent,
  newEvents,
  newStream,
  turn,
  type StoreCases,
} from './fixture.ts';

export const subscribeToStreamCases: StoreCases = {
  'catches up with the stream, then delivers new events': async ({ store, signal }) => {
    const stream = newStream();
    const events = newEvents(5);
    await store.append(stream, events.slice(0, 3));
    await using follower = follow(store.subscribeToStream(stream, { signal }));
    await follower.caughtUp();
    assert.deepEqual(idsOf(follower.events), idsOf(events.slice(0, 3)));
    for (const event of events.slice(3)) await store.append(stream, [event]);
    assert.deepEqual(idsOf(await follower.count(5)), idsOf(events));
  },

  'does not deliver events of other streams': async ({ store, signal }) => {
    const stream = newStream();
    await using follower = follow(store.subscribeToStream(stream, { signal }));
    await follower.caughtUp();
    const events = newEvents(3);
    for (const event of events) {
      await store.append(newStream(), newEvents(2));
      await store.append(`${stream}0`, newEvents(2));
      await store.append(stream, [event]);
    }
    assert.deepEqual(idsOf(await follower.count(3)), idsOf(events));
  },

  'waits for a stream that does not exist yet': async ({ store, signal }) => {
    const stream = newStream();
    await using follower = follow(store.subscribeToStream(stream, { signal }));
    const items = await follower.caughtUp();
    assert.equal(items.length, 1);
    const next = follower.count(1);
    const event = newEvent();
    await store.append(stream, [event], { expected: 'none' });
    assert.deepEqual(idsOf(await next), [event.eventId]);
  },

  'from a revision: starts after its event': async ({ store, signal }) => {
    const stream = newStream();
    const events = newEvents(6);
    await store.append(stream, events.slice(0, 5));
    await using follower = follow(store.subscribeToStream(stream, { after: 2, signal }));
    await follower.caughtUp();
    assert.deepEqual(idsOf(follower.events), idsOf(events.slice(3, 5)));
    await store.append(stream, events.slice(5));
    assert.deepEqual(idsOf(await follower.count(3)), idsOf(events.slice(3)));
  },

  'from a revision that the stream has not reached: starts after that revision once it exists':
    async ({ store, signal }) => {
      const stream = newStream();
      const events = newEvents(6);
      await store.append(stream, events.slice(0, 2));
      await using follower = follow(store.subscribeToStream(stream, { after: 3, signal }));
      await follower.caughtUp();
      await store.append(stream, events.slice(2));
      assert.deepEqual(idsOf(await follower.count(2)), idsOf(events.slice(4)));
    },

  'from the end: delivers new events only': async ({ store, signal }) => {
    for (const there of [0, 4]) {
      const stream = newStream();
      if (there > 0) await store.append(stream, newEvents(there));
      await using follower = follow(store.subscribeToStream(stream, { after: 'end', signal }));
      await follower.caughtUp();
      assert.deepEqual(follower.events, []);
      const events = newEvents(2);
      await store.append(stream, events);
      assert.deepEqual(idsOf(await follower.count(2)), idsOf(events));
    }
  },

  'every page size delivers every event once': async ({ store, signal }) => {
    const stream = newStream();
    await store.append(stream, newEvents(12));
    for (const pageSize of [1, 5, 11, 12, 13]) {
      await using follower = follow(store.subscribeToStream(stream, { signal, pageSize }));
      await follower.caughtUp();
      assert.equal(follower.events.length, 12);
      assertDense(follower.events);
    }
  },

  'reports falling behind at a burst of more than a page': async ({ store, signal }) => {
    const stream = newStream();
    await using follower = follow(store.subscribeToStream(stream, { signal, pageSize: 4 }));
    await follower.caughtUp();
    await store.append(stream, newEvents(15));
    const items = await follower.caughtUp();
    assert.equal(items[0]?.kind, 'fellBehind');
    assert.equal(follower.events.length, 15);
    assertDense(follower.events);
  },

  'misses nothing while eight writers append to this and other streams': async ({
    open,
    signal,
  }) => {
    const store = await open();
    const stream = newStream();
    await using follower = follow(store.subscribeToStream(stream, { signal, pageSize: 3 }));
    const end = newEvent();
    const writing = Array.from({ length: 8 }, async () => {
      for (let round = 0; round < 10; round += 1) {
        await store.append(stream, newEvents(1 + (round % 2)));
        await store.append(newStream(), [newEvent()]);
      }
    });
    const [events] = await Promise.all([
      follower.before(end.eventId),
      Promise.all(writing).then(() => store.append(stream, [end])),
    ]);
    assert.equal(events.length, 120);
    assertDense(events);
  },

  'an aborted signal ends a waiting and a reading subscription without an error': async ({
    store,
  }) => {
    const stream = newStream();
    await store.append(stream, newEvents(20));
    const leaving = new AbortController();
    const { signal } = leaving;
    const waiting = follow(store.subscribeToStream(stream, { signal }));
    const reading = follow(store.subscribeToStream(stream, { signal, pageSize: 4 }));
    await waiting.caughtUp();
    await reading.count(8);
    const ended = waiting.ended();
    await turn();
    leaving.abort();
    await ended;
    await reading.ended();
    assert.equal(reading.events.length, 8);
    const late = follow(store.subscribeToStream(stream, { signal }));
    await late.ended();
    assert.deepEqual(late.events, []);
  },

  'a tombstone ends the subscription with STREAM_DELETED': async ({ store, signal }) => {
    const stream = newStream();
    await store.append(stream, newEvents(2));
    await using follower = follow(store.subscribeToStream(stream, { signal }));
    await follower.caughtUp();
    const ended = rejectsWith(() => follower.next(), 'STREAM_DELETED');
    await store.tombstoneStream(stream);
    await ended;
    await rejectsWith(
      () => follow(store.subscribeToStream(stream, { signal })).next(),
      'STREAM_DELETED',
    );
  },

  'a live reader gets each event although the stream keeps only the last one': async ({
    store,
    signal,
  }) => {
    for (const [way, appendAll] of Object.entries(waysToAppend)) {
      const stream = newStream();
      await store.append(stream, [newEvent()]);
      await store.setStreamMetadata(stream, { maxCount: 1 });
      await using fromStart = follow(store.subscribeToStream(stream, { signal, pageSize: 7 }));
      await fromStart.caughtUp();
      await using fromEnd = follow(
        store.subscribeToStream(stream, { after: 'end', signal, pageSize: 7 }),
      );
      await fromEnd.caughtUp();
      const events = newEvents(40);
      await appendAll(store, stream, events);
      const end = newEvent();
      await store.append(stream, [end]);
      const seen = await fromStart.before(end.eventId);
      assertDense(seen);
      assert.deepEqual(idsOf(seen.slice(1)).toSorted(), idsOf(events).toSorted(), way);
      assert.deepEqual(idsOf(await fromEnd.before(end.eventId)), idsOf(seen.slice(1)), way);
    }
  },

  'a live reader gets each event although the stream is truncated ahead of its end': async ({
    store,
    signal,
  }) => {
    const stream = newStream();
    await store.append(stream, newEvents(2));
    await store.setStreamMetadata(stream, { truncateBefore: 1_000 });
    await using follower = follow(store.subscribeToStream(stream, { signal }));
    await follower.caughtUp();
    assert.deepEqual(follower.events, []);
    const events = newEvents(12);
    await store.append(stream, events);
    await store.setStreamMetadata(stream, {});
    const end = newEvent();
    await store.append(stream, [end]);
    assert.deepEqual(idsOf(await follower.before(end.eventId)), idsOf(events));
  },

  'a live reader gets the events that were stored before a deletion': async ({ store, signal }) => {
    for (const remove of ['deleteStream', 'tombstoneStream'] as const) {
      const stream = newStream();
      await using follower = follow(store.subscribeToStream(stream, { signal }));
      await follower.caughtUp();
      const events = newEvents(3);
      await store.append(stream, events);
      await store[remove](stream);
      if (remove === 'tombstoneStream') {
        await rejectsWith(() => follower.count(4), 'STREAM_DELETED');
      } else {
        const end = newEvent();
        await store.append(stream, [end]);
        await follower.before(end.eventId);
      }
      assert.deepEqual(idsOf(follower.events.slice(0, 3)), idsOf(events));
    }
  },

  'a reader that is behind by less than the retention gets each event': async ({
    store,
    signal,
  }) => {
    const stream = newStream();
    const events = newEvents(30);
    await store.append(stream, events);
    await store.setStreamMetadata(stream, { maxCount: 10 });
    await using follower = follow(store.subscribeToStream(stream, { after: 20, signal }));
    await follower.caughtUp();
    assert.deepEqual(idsOf(follower.events), idsOf(events.slice(21)));
    await using late = follow(store.subscribeToStream(stream, { after: 2, signal }));
    await late.caughtUp();
    assert.deepEqual(idsOf(late.events), idsOf(events.slice(20)));
  },

  'closing the store ends the subscription with an error': async ({ open, signal }) => {
    const store = await open();
    const follower = follow(store.subscribeToStream(newStream(), { signal }));
    await follower.caughtUp();
    const ended = rejectsWith(() => follower.next(), 'STORE_CLOSED');
    await turn();
    await store[Symbol.asyncDispose]();
    await ended;
  },
};

/** How the events of a burst may arrive. */
const waysToAppend: Readonly<
  Record<
    string,
    (store: EventStore, stream: string, events: readonly DomainEventEnvelope[]) => Promise<unknown>
  >
> = {
  async 'one by one'(store, stream, events) {
    for (const event of events) await store.append(stream, [event]);
  },
  concurrently: (store, stream, events) =>
    Promise.all(events.map((event) => store.append(stream, [event]))),
  async 'in batches of 5'(store, stream, events) {
    for (let at = 0; at < events.length; at += 5) {
      await store.append(stream, events.slice(at, at + 5));
    }
  },
};
