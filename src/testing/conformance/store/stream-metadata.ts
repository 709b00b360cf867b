// Stream metadata: custom fields, and retention that hides events.

import assert from 'node:assert/strict';
import { fakeClock } from '../../fake-clock.ts';
import type { EventStore, StreamMetadata } from '../../../store/event-store.ts';
import {
  conflict,
  follow,
  idsOf,
  last,
  needs,
  newEvent,
  newEvents,
  newStream,
  only,
  storedIds,
  unique,
  type StoreCases,
} from './fixture.ts';

export const streamMetadataCases: StoreCases = {
  'a missing stream has no info': async ({ store }) => {
    assert.equal(await store.streamInfo(newStream()), undefined);
  },

  'a stream without metadata has its revision': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(3));
    assert.deepEqual(await store.streamInfo(stream), {
      stream,
      revision: 2,
      deleted: 'no',
      metadata: {},
    });
  },

  'returns all metadata as set': async ({ store }) => {
    const stream = newStream();
    const metadata: StreamMetadata = {
      truncateBefore: 3,
      maxCount: 100,
      maxAgeSeconds: 86_400,
      custom: { owner: 'Jané', tags: ['a', 1, null], nested: { $acl: { $r: ['$admins'] } } },
    };
    await store.append(stream, newEvents(5));
    await store.setStreamMetadata(stream, metadata);
    assert.deepEqual((await store.streamInfo(stream))?.metadata, metadata);
  },

  'setting metadata replaces the previous metadata': async ({ store }) => {
    const stream = newStream();
    await store.setStreamMetadata(stream, { maxCount: 1, custom: { a: 1 } });
    await store.setStreamMetadata(stream, { maxAgeSeconds: 60, custom: { b: 2 } });
    assert.deepEqual((await store.streamInfo(stream))?.metadata, {
      maxAgeSeconds: 60,
      custom: { b: 2 },
    });
    await store.setStreamMetadata(stream, {});
    assert.deepEqual((await store.streamInfo(stream))?.metadata, {});
  },

  'metadata does not change the revisions of the stream': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(2));
    for (let round = 0; round < 3; round += 1) {
      await store.setStreamMetadata(stream, { custom: { round } });
    }
    assert.equal((await store.streamInfo(stream))?.revision, 1);
    assert.equal((await store.append(stream, [newEvent()], { expected: 1 })).revision, 2);
  },

  'metadata is an event of a separate stream': async ({ store }) => {
    const stream = newStream();
    await store.setStreamMetadata(stream, { maxCount: 7, custom: { a: 1 } });
    const event = last(await store.readStream(`$$${stream}`).toArray());
    assert.equal(event.type, '$metadata');
    assert.deepEqual(event.payload, { $maxCount: 7, a: 1 });
  },

  'metadata alone makes a stream exist': async ({ store }) => {
    const stream = newStream();
    await store.setStreamMetadata(stream, { custom: { a: 1 } });
    assert.deepEqual(await store.streamInfo(stream), {
      stream,
      revision: -1,
      deleted: 'no',
      metadata: { custom: { a: 1 } },
    });
    assert.deepEqual(await store.readStream(stream).toArray(), []);
    await conflict(() => store.append(stream, [newEvent()], { expected: 0 }), {
      expected: 0,
      actual: -1,
    });
    assert.equal((await store.append(stream, [newEvent()], { expected: 'exists' })).revision, 0);
  },

  'metadata alone does not use the first revision': async ({ store }) => {
    const stream = newStream();
    await store.setStreamMetadata(stream, { custom: { a: 1 } });
    assert.equal((await store.append(stream, [newEvent()], { expected: 'none' })).revision, 0);
  },

  'truncate before: hides lower revisions from every kind of read': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(6));
    await store.setStreamMetadata(stream, { truncateBefore: 4 });
    assert.deepEqual(await visible(store, stream), [4, 5]);
    const read = async (options: Parameters<EventStore['readStream']>[1]): Promise<number[]> =>
      (await store.readStream(stream, options).toArray()).map(({ revision }) => revision);
    assert.deepEqual(await read({ direction: 'backwards' }), [5, 4]);
    assert.deepEqual(await read({ direction: 'backwards', pageSize: 1 }), [5, 4]);
    assert.deepEqual(await read({ direction: 'backwards', from: 3 }), []);
    assert.deepEqual(await read({ from: 1, limit: 1 }), [4]);
    assert.deepEqual(await read({ pageSize: 1 }), [4, 5]);
  },

  'truncate before: a value above the last revision hides all events until the stream reaches it':
    async ({ store }) => {
      const stream = newStream();
      await store.append(stream, newEvents(2));
      await store.setStreamMetadata(stream, { truncateBefore: 3 });
      assert.deepEqual(await visible(store, stream), []);
      await store.append(stream, newEvents(3), { expected: 1 });
      assert.deepEqual(await visible(store, stream), [3, 4]);
    },

  'truncate before: can be reverted until a scavenge': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(3));
    await store.setStreamMetadata(stream, { truncateBefore: 2 });
    assert.deepEqual(await visible(store, stream), [2]);
    await store.setStreamMetadata(stream, {});
    assert.deepEqual(await visible(store, stream), [0, 1, 2]);
  },

  'maximum count: only the last events are visible, also after appends': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(5));
    await store.setStreamMetadata(stream, { maxCount: 2 });
    assert.deepEqual(await visible(store, stream), [3, 4]);
    await store.append(stream, newEvents(2));
    assert.deepEqual(await visible(store, stream), [5, 6]);
    const direction = 'backwards';
    const backwards = await store.readStream(stream, { direction, pageSize: 1 }).toArray();
    assert.deepEqual(
      backwards.map(({ revision }) => revision),
      [6, 5],
    );
    await store.setStreamMetadata(stream, { maxCount: 100 });
    assert.equal((await visible(store, stream)).length, 7);
  },

  'maximum count and truncate before: the stricter one applies': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(6));
    await store.setStreamMetadata(stream, { maxCount: 3, truncateBefore: 5 });
    assert.deepEqual(await visible(store, stream), [5]);
    await store.setStreamMetadata(stream, { maxCount: 3, truncateBefore: 1 });
    assert.deepEqual(await visible(store, stream), [3, 4, 5]);
  },

  'maximum age: an event is visible until it is too old': needs('ownServer', async ({ open }) => {
    const clock = fakeClock({ nowMs: Date.now() });
    const store = await open({ clock });
    const stream = newStream();
    await store.append(stream, newEvents(2));
    await store.setStreamMetadata(stream, { maxAgeSeconds: 3_600 });
    assert.deepEqual(await visible(store, stream), [0, 1]);
    await clock.advance(1_800_000);
    assert.deepEqual(await visible(store, stream), [0, 1]);
    await clock.advance(3_600_000);
    assert.deepEqual(await visible(store, stream), []);
    const direction = 'backwards';
    assert.deepEqual(await store.readStream(stream, { direction }).toArray(), []);
    assert.equal((await store.streamInfo(stream))?.revision, 1);
  }),

  'maximum age: hides the older of two events first': needs('exactTimes', async ({ open }) => {
    const clock = fakeClock({ nowMs: Date.now() });
    const store = await open({ clock });
    const stream = newStream();
    await store.append(stream, [newEvent()]);
    const old = Date.parse(only(await store.readStream(stream).toArray()).recordedAt);
    // Wait a millisecond for engines that use the clock of their server.
    let young = old;
    while (young === old) {
      await clock.advance(1);
      await store.append(stream, [newEvent()]);
      young = Date.parse(last(await store.readStream(stream).toArray()).recordedAt);
    }
    const { revision: lastRevision = 0 } = (await store.streamInfo(stream)) ?? {};
    await store.setStreamMetadata(stream, { maxAgeSeconds: 3_600 });
    await clock.advance(old + 3_600_000 - clock.now());
    assert.deepEqual(await visible(store, stream), [lastRevision]);
    await clock.advance(young - old);
    assert.deepEqual(await visible(store, stream), []);
  }),

  'readAll returns events that are hidden in their stream': async ({ store }) => {
    const category = unique('c');
    const stream = newStream(category);
    const events = newEvents(4);
    await store.append(stream, events);
    await store.setStreamMetadata(stream, { truncateBefore: 3, maxCount: 1 });
    const all = await store.readAll({ filter: { category } }).toArray();
    assert.deepEqual(idsOf(all), idsOf(events));
    assert.equal((await store.findEvent(stream, events[0]?.eventId ?? ''))?.revision, 0);
  },

  'hidden events keep their revisions and are detected as duplicates': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(3);
    await store.append(stream, events);
    await store.setStreamMetadata(stream, { truncateBefore: 3 });
    await conflict(() => store.append(stream, [newEvent()], { expected: 'none' }), {
      expected: 'none',
      actual: 2,
    });
    assert.equal((await store.append(stream, events)).isDuplicate, true);
    assert.equal((await store.append(stream, events, { expected: 'none' })).isDuplicate, true);
    assert.equal((await store.append(stream, [newEvent()], { expected: 2 })).revision, 3);
    assert.deepEqual(await visible(store, stream), [3]);
  },

  'a stream subscription skips hidden events': async ({ store, signal }) => {
    const stream = newStream();
    await store.append(stream, newEvents(5));
    await store.setStreamMetadata(stream, { truncateBefore: 3 });
    await using follower = follow(store.subscribeToStream(stream, { signal, pageSize: 1 }));
    await follower.caughtUp();
    await store.append(stream, [newEvent()]);
    assert.deepEqual(
      (await follower.count(3)).map(({ revision }) => revision),
      [3, 4, 5],
    );
  },

  'metadata of one stream does not affect another': async ({ store }) => {
    const [stream, other] = [newStream(), newStream()];
    await store.append(stream, newEvents(3));
    await store.append(other, newEvents(3));
    await store.setStreamMetadata(stream, { maxCount: 1 });
    assert.equal((await storedIds(store, other)).length, 3);
    assert.deepEqual((await store.streamInfo(other))?.metadata, {});
  },

  'in an open store, an append to the metadata stream sets the metadata': async ({ open }) => {
    const store = await open({ names: 'open' });
    const stream = newStream();
    await store.append(stream, newEvents(5));
    const metadata = { $maxCount: 2, owner: 'jane' };
    await store.append(`$$${stream}`, [newEvent({ type: '$metadata', payload: metadata })]);
    assert.deepEqual(await visible(store, stream), [3, 4]);
    assert.deepEqual((await store.streamInfo(stream))?.metadata, {
      maxCount: 2,
      custom: { owner: 'jane' },
    });
  },

  'in an open store, the truncation value of EventStoreDB deletes the stream': async ({ open }) => {
    const store = await open({ names: 'open' });
    const stream = newStream();
    await store.append(stream, newEvents(2));
    const payload: unknown = JSON.parse('{"$tb":9223372036854775807}');
    await store.append(`$$${stream}`, [newEvent({ type: '$metadata', payload })]);
    assert.equal((await store.streamInfo(stream))?.deleted, 'soft');
    assert.deepEqual(await visible(store, stream), []);
    assert.equal((await store.append(stream, [newEvent()])).revision, 2);
    assert.deepEqual(await visible(store, stream), [2]);
  },
};

async function visible(store: EventStore, stream: string): Promise<number[]> {
  return (await store.readStream(stream).toArray()).map(({ revision }) => revision);
}
