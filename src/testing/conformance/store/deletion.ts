// Deleting a stream, which can be restored, and tombstoning it, which is permanent.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import type { EventStore } from '../../../store/event-store.ts';
import type { ExpectedRevision } from '../../../store/expected-revision.ts';
import type { RecordedEvent } from '../../../store/recorded-event.ts';
import {
  conflict,
  follow,
  idsOf,
  newEvent,
  newEvents,
  newStream,
  storedIds,
  unique,
  type StoreCases,
} from './fixture.ts';

export const deletionCases: StoreCases = {
  'deleted: the stream reads like a missing one': async ({ store }) => {
    const stream = await deleted(store, 3);
    for (const direction of ['forwards', 'backwards'] as const) {
      assert.deepEqual(await store.readStream(stream, { direction }).toArray(), []);
    }
    const info = await store.streamInfo(stream);
    assert.equal(info?.deleted, 'soft');
    assert.equal(info?.revision, 2);
    assert.deepEqual(info?.metadata, {});
  },

  'deleted: readAll still returns the events': async ({ store }) => {
    const category = unique('c');
    const stream = newStream(category);
    const events = newEvents(3);
    await store.append(stream, events);
    await store.deleteStream(stream);
    const all = await store.readAll({ filter: { category } }).toArray();
    assert.deepEqual(idsOf(all), idsOf(events));
  },

  'deleted: an append with any restores the stream and continues its revisions': async ({
    store,
  }) => {
    const stream = await deleted(store, 3);
    const events = newEvents(2);
    const { revision, isDuplicate } = await store.append(stream, events.slice(0, 1));
    assert.deepEqual({ revision, isDuplicate }, { revision: 3, isDuplicate: false });
    await store.append(stream, events.slice(1), { expected: 3 });
    assert.deepEqual(await storedIds(store, stream), idsOf(events));
    assert.equal((await store.streamInfo(stream))?.deleted, 'no');
  },

  'deleted: an append with none restores the stream once': async ({ store }) => {
    const stream = await deleted(store, 3);
    const event = newEvent();
    assert.equal((await store.append(stream, [event], { expected: 'none' })).revision, 3);
    await conflict(() => store.append(stream, [newEvent()], { expected: 'none' }), {
      expected: 'none',
      actual: 3,
    });
    assert.deepEqual(await storedIds(store, stream), [event.eventId]);
  },

  'deleted: an append at the last revision restores the stream, an append at another revision conflicts':
    async ({ store }) => {
      const stream = await deleted(store, 3);
      for (const expected of [0, 1, 3]) {
        await conflict(() => store.append(stream, [newEvent()], { expected }), {
          expected,
          actual: 2,
        });
      }
      assert.equal((await store.streamInfo(stream))?.deleted, 'soft');
      assert.equal((await store.append(stream, [newEvent()], { expected: 2 })).revision, 3);
    },

  'deleted: an append with exists conflicts': async ({ store }) => {
    const stream = await deleted(store, 2);
    const { details } = await rejectsWith(
      () => store.append(stream, [newEvent()], { expected: 'exists' }),
      'STREAM_DELETED',
    );
    assert.equal(details['stream'], stream);
    assert.equal((await store.streamInfo(stream))?.deleted, 'soft');
  },

  'deleted: a late duplicate of an old append does not restore the stream': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(2);
    const first = await store.append(stream, events, { expected: 'none' });
    await store.deleteStream(stream);
    for (const expected of ['any', 'none'] as const) {
      assert.deepEqual(await store.append(stream, events, { expected }), {
        ...first,
        isDuplicate: true,
      });
    }
    await conflict(
      () => store.append(stream, [...events.slice(0, 1), newEvent()], { expected: 'none' }),
      { expected: 'none', actual: 1 },
    );
    assert.equal((await store.streamInfo(stream))?.deleted, 'soft');
    assert.deepEqual(await storedIds(store, stream), []);
  },

  'deleted: a stream can be deleted and restored repeatedly': async ({ store }) => {
    const stream = newStream();
    for (let round = 0; round < 4; round += 1) {
      const event = newEvent();
      const { revision } = await store.append(stream, [event], { expected: 'none' });
      assert.equal(revision, round);
      assert.deepEqual(await storedIds(store, stream), [event.eventId]);
      await store.deleteStream(stream);
      await store.deleteStream(stream);
      assert.deepEqual(await storedIds(store, stream), []);
    }
  },

  'deleted: other metadata stays, before and after the restore': async ({ store }) => {
    const stream = newStream();
    const metadata = { maxCount: 5, custom: { owner: 'jane' } };
    await store.append(stream, newEvents(3));
    await store.setStreamMetadata(stream, { ...metadata, truncateBefore: 1 });
    await store.deleteStream(stream);
    assert.deepEqual((await store.streamInfo(stream))?.metadata, metadata);
    await store.append(stream, newEvents(7));
    assert.deepEqual((await store.streamInfo(stream))?.metadata, {
      ...metadata,
      truncateBefore: 3,
    });
    assert.equal((await storedIds(store, stream)).length, 5);
  },

  'deleted: a deletion can drop the other metadata': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(3));
    await store.setStreamMetadata(stream, { maxCount: 1, custom: { owner: 'jane' } });
    await store.deleteStream(stream, { keepsMetadata: false });
    assert.deepEqual((await store.streamInfo(stream))?.metadata, {});
    await store.append(stream, newEvents(7));
    assert.deepEqual((await store.streamInfo(stream))?.metadata, { truncateBefore: 3 });
    assert.equal((await storedIds(store, stream)).length, 7);
  },

  'visibility: hidden and deleted events are not visible': async ({ store }) => {
    const whole = newStream();
    const [counted, truncated, softly, removed] = [0, 1, 2, 3].map(() => newStream()) as [
      string,
      string,
      string,
      string,
    ];
    const streams = [whole, counted, truncated, softly, removed];
    const events: RecordedEvent[] = [];
    for (const stream of streams) {
      await store.append(stream, newEvents(3));
      events.push(...(await store.readStream(stream).toArray()));
    }
    assert.ok((await store.areVisible(events)).every((isVisible) => isVisible));
    await store.setStreamMetadata(counted, { maxCount: 1 });
    await store.setStreamMetadata(truncated, { truncateBefore: 1 });
    await store.deleteStream(softly);
    await store.tombstoneStream(removed);
    const visible = await store.areVisible(events);
    const of = (stream: string): boolean[] =>
      visible.filter((_, index) => events[index]?.stream === stream);
    assert.deepEqual(streams.map(of), [
      [true, true, true],
      [false, false, true],
      [false, true, true],
      [false, false, false],
      [false, false, false],
    ]);
    await store.append(softly, newEvents(1));
    assert.deepEqual(await store.areVisible(await store.readStream(softly).toArray()), [true]);
    assert.deepEqual(await store.areVisible([]), []);
  },

  'deleted: new metadata does not reveal the deleted events': async ({ store }) => {
    const stream = await deleted(store, 3);
    await store.setStreamMetadata(stream, { custom: { owner: 'jane' } });
    assert.deepEqual(await storedIds(store, stream), []);
    const event = newEvent();
    assert.equal((await store.append(stream, [event])).revision, 3);
    assert.deepEqual(await storedIds(store, stream), [event.eventId]);
    assert.deepEqual((await store.streamInfo(stream))?.metadata.custom, { owner: 'jane' });
  },

  'deleting: checks the expected revision': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(3));
    for (const expected of ['none', 0, 1, 3] as const) {
      const error = await conflict(() => store.deleteStream(stream, { expected }), {
        expected,
        actual: 2,
      });
      assert.equal(error.details['stream'], stream);
    }
    assert.equal((await storedIds(store, stream)).length, 3);
    await store.deleteStream(stream, { expected: 2 });
    assert.equal((await store.streamInfo(stream))?.deleted, 'soft');
  },

  'deleting: requires the stream with exists': async ({ store }) => {
    const stream = newStream();
    const expected = 'exists';
    await conflict(() => store.deleteStream(stream, { expected }), { expected, actual: -1 });
    assert.equal(await store.streamInfo(stream), undefined);
    await store.append(stream, [newEvent()]);
    await store.deleteStream(stream, { expected });
    await rejectsWith(() => store.deleteStream(stream, { expected }), 'STREAM_DELETED');
  },

  'deleting: a missing stream causes no error': async ({ store }) => {
    for (const expected of ['any', 'none'] as const) {
      const stream = newStream();
      await store.deleteStream(stream, { expected });
      assert.deepEqual(await storedIds(store, stream), []);
      assert.equal((await store.append(stream, [newEvent()], { expected: 'none' })).revision, 0);
      assert.equal((await storedIds(store, stream)).length, 1);
    }
  },

  'a subscription to a deleted stream gets the restoring events and nothing older': async ({
    store,
    signal,
  }) => {
    const stream = await deleted(store, 3);
    await using follower = follow(store.subscribeToStream(stream, { signal }));
    await follower.caughtUp();
    assert.deepEqual(follower.events, []);
    const event = newEvent();
    await store.append(stream, [event]);
    assert.deepEqual(idsOf(await follower.count(1)), [event.eventId]);
  },

  'tombstone: rejects every append, with any expected revision': async ({ store }) => {
    const stream = await tombstoned(store, 2);
    for (const expected of ['any', 'none', 'exists', 0, 1, 2, 3] as ExpectedRevision[]) {
      const { details, retryable } = await rejectsWith(
        () => store.append(stream, [newEvent()], { expected }),
        'STREAM_DELETED',
      );
      assert.equal(details['stream'], stream);
      assert.equal(retryable, false);
    }
  },

  'tombstone: rejects even a duplicate append': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(2);
    await store.append(stream, events);
    await store.tombstoneStream(stream);
    await rejectsWith(() => store.append(stream, events), 'STREAM_DELETED');
  },

  'tombstone: rejects every kind of read': async ({ store }) => {
    const stream = await tombstoned(store, 2);
    for (const options of [{}, { direction: 'backwards' }, { from: 1 }, { limit: 1 }] as const) {
      await rejectsWith(() => store.readStream(stream, options).toArray(), 'STREAM_DELETED');
    }
  },

  'tombstone: streamInfo reports the tombstone': async ({ store }) => {
    const stream = await tombstoned(store, 2);
    const info = await store.streamInfo(stream);
    assert.equal(info?.deleted, 'tombstone');
  },

  'tombstone: rejects metadata and deletion': async ({ store }) => {
    const stream = await tombstoned(store, 2);
    await rejectsWith(() => store.setStreamMetadata(stream, { maxCount: 1 }), 'STREAM_DELETED');
    await rejectsWith(() => store.deleteStream(stream), 'STREAM_DELETED');
    await rejectsWith(() => store.tombstoneStream(stream), 'STREAM_DELETED');
    assert.equal((await store.streamInfo(stream))?.deleted, 'tombstone');
  },

  'tombstone: checks the expected revision': async ({ store }) => {
    const stream = newStream();
    await conflict(() => store.tombstoneStream(stream, { expected: 'exists' }), {
      expected: 'exists',
      actual: -1,
    });
    await store.append(stream, newEvents(3));
    for (const expected of ['none', 0, 3] as const) {
      await conflict(() => store.tombstoneStream(stream, { expected }), { expected, actual: 2 });
    }
    assert.equal((await storedIds(store, stream)).length, 3);
    await store.tombstoneStream(stream, { expected: 2 });
    await rejectsWith(() => store.readStream(stream).toArray(), 'STREAM_DELETED');
  },

  'tombstone: applies to missing and deleted streams': async ({ store }) => {
    const streams = [newStream(), await deleted(store, 2)];
    for (const stream of streams) {
      await store.tombstoneStream(stream);
      await rejectsWith(() => store.append(stream, [newEvent()]), 'STREAM_DELETED');
      await rejectsWith(() => store.readStream(stream).toArray(), 'STREAM_DELETED');
    }
  },

  'tombstone: readAll still returns the events': async ({ store }) => {
    const category = unique('c');
    const stream = newStream(category);
    const events = newEvents(2);
    await store.append(stream, events);
    await store.tombstoneStream(stream);
    const all = await store.readAll({ filter: { category } }).toArray();
    assert.deepEqual(idsOf(all), idsOf(events));
    const system = await store.readAll({ filter: { category, system: true } }).toArray();
    assert.equal(system.at(-1)?.type, '$streamDeleted');
  },

  'tombstone: other streams are unaffected': async ({ store }) => {
    const stream = newStream();
    await store.append(`${stream}0`, newEvents(2));
    await store.tombstoneStream(stream);
    assert.equal((await store.append(`${stream}0`, [newEvent()], { expected: 1 })).revision, 2);
    assert.equal((await storedIds(store, `${stream}0`)).length, 3);
  },
};

async function deleted(store: EventStore, events: number): Promise<string> {
  const stream = newStream();
  await store.append(stream, newEvents(events));
  await store.deleteStream(stream);
  return stream;
}

async function tombstoned(store: EventStore, events: number): Promise<string> {
  const stream = newStream();
  await store.append(stream, newEvents(events));
  await store.tombstoneStream(stream);
  return stream;
}
