// Appends to several streams are all or nothing.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import { storeLimits } from '../../../store/prepare-append.ts';
import {
  assertDense,
  conflict,
  idsOf,
  needs,
  newEvent,
  newEvents,
  newStream,
  storedIds,
  unique,
  type StoreCases,
} from './fixture.ts';

const multi = 'multiStreamAppend';

export const multiStreamAppendCases: StoreCases = {
  'accepts a single stream with every engine': async ({ store }) => {
    const stream = newStream();
    const results = await store.appendMany([{ stream, events: newEvents(2), expected: 'none' }]);
    assert.deepEqual(
      results.map(({ revision }) => revision),
      [1],
    );
  },

  'an engine without multi-stream appends rejects them and writes nothing': async ({
    store,
    capabilities,
  }) => {
    if (capabilities.multiStreamAppend) return;
    const streams = [newStream(), newStream()];
    const appends = streams.map((stream) => ({ stream, events: [newEvent()] }));
    const { details } = await rejectsWith(() => store.appendMany(appends), 'NOT_SUPPORTED');
    assert.equal(details['capability'], multi);
    for (const stream of streams) assert.equal(await store.streamInfo(stream), undefined);
  },

  'appends to all streams, with results in the given order': needs(multi, async ({ store }) => {
    const category = unique('c');
    const streams = [newStream(category), newStream(category), newStream(category)];
    const appends = streams.map((stream, index) => ({ stream, events: newEvents(index + 1) }));
    const results = await store.appendMany(appends);
    assert.deepEqual(
      results.map(({ stream, revision, isDuplicate }) => ({ stream, revision, isDuplicate })),
      streams.map((stream, revision) => ({ stream, revision, isDuplicate: false })),
    );
    const all = await store.readAll({ filter: { category } }).toArray();
    assert.deepEqual(idsOf(all), idsOf(appends.flatMap(({ events }) => events)));
    const lastOf = (stream: string) => all.findLast((event) => event.stream === stream);
    // A server that counts bytes returns one position, that of the last event of all streams.
    const isShared = store.capabilities.positionUnit === 'bytes';
    for (const { stream, position } of results) {
      assert.equal((isShared ? all.at(-1) : lastOf(stream))?.position, position);
    }
  }),

  'appends to a hundred streams at once': needs(multi, async ({ store }) => {
    const streams = Array.from({ length: 100 }, () => newStream());
    const results = await store.appendMany(
      streams.map((stream) => ({ stream, events: [newEvent()], expected: 'none' as const })),
    );
    assert.deepEqual(
      results.map(({ stream, revision }) => ({ stream, revision })),
      streams.map((stream) => ({ stream, revision: 0 })),
    );
    const positions = new Set(results.map(({ position }) => position));
    assert.equal(positions.size, store.capabilities.positionUnit === 'bytes' ? 1 : 100);
  }),

  'checks every expected revision against its stream': needs(multi, async ({ store }) => {
    const [a, b, c] = [newStream(), newStream(), newStream()];
    await store.append(a, newEvents(3));
    await store.append(b, newEvents(1));
    const results = await store.appendMany([
      { stream: a, events: [newEvent()], expected: 2 },
      { stream: b, events: [newEvent()], expected: 'exists' },
      { stream: c, events: [newEvent()], expected: 'none' },
    ]);
    assert.deepEqual(
      results.map(({ revision }) => revision),
      [3, 1, 0],
    );
  }),

  'one conflict prevents all writes': needs(multi, async ({ store }) => {
    for (const at of [0, 1, 2]) {
      const streams = [newStream(), newStream(), newStream()];
      const bad = streams[at] ?? '';
      await store.append(bad, newEvents(2));
      const error = await conflict(
        () =>
          store.appendMany(
            streams.map((stream) => ({ stream, events: newEvents(2), expected: 'none' as const })),
          ),
        { expected: 'none', actual: 1 },
      );
      assert.equal(error.details['stream'], bad);
      for (const stream of streams) {
        assert.equal((await storedIds(store, stream)).length, stream === bad ? 2 : 0);
        if (stream !== bad) assert.equal(await store.streamInfo(stream), undefined);
      }
    }
  }),

  'one tombstoned stream prevents all writes': needs(multi, async ({ store }) => {
    const [fine, dead] = [newStream(), newStream()];
    await store.tombstoneStream(dead);
    const { details } = await rejectsWith(
      () =>
        store.appendMany([
          { stream: fine, events: [newEvent()] },
          { stream: dead, events: [newEvent()] },
        ]),
      'STREAM_DELETED',
    );
    assert.equal(details['stream'], dead);
    assert.equal(await store.streamInfo(fine), undefined);
  }),

  'one invalid event at the end prevents all writes': needs(multi, async ({ store }) => {
    const streams = [newStream(), newStream()];
    await rejectsWith(
      () =>
        store.appendMany([
          { stream: streams[0] ?? '', events: newEvents(2) },
          { stream: streams[1] ?? '', events: [newEvent(), newEvent({ payload: [Number.NaN] })] },
        ]),
      'PAYLOAD_NOT_JSON',
    );
    for (const stream of streams) assert.equal(await store.streamInfo(stream), undefined);
  }),

  'one stream twice: the second write continues after the first': needs(
    multi,
    async ({ store }) => {
      const stream = newStream();
      const events = newEvents(5);
      const results = await store.appendMany([
        { stream, events: events.slice(0, 2), expected: 'none' },
        { stream: newStream(), events: [newEvent()] },
        { stream, events: events.slice(2, 4), expected: 1 },
        { stream, events: events.slice(4), expected: 'exists' },
      ]);
      assert.deepEqual(
        results.map(({ revision }) => revision),
        [1, 0, 3, 4],
      );
      const recorded = await store.readStream(stream).toArray();
      assert.deepEqual(idsOf(recorded), idsOf(events));
      assertDense(recorded);
    },
  ),

  'one stream twice: an expected revision that the first write outdated conflicts': needs(
    multi,
    async ({ store }) => {
      const stream = newStream();
      await conflict(
        () =>
          store.appendMany([
            { stream, events: newEvents(2), expected: 'none' },
            { stream, events: [newEvent()], expected: 'none' },
          ]),
        { expected: 'none', actual: 1 },
      );
      assert.equal(await store.streamInfo(stream), undefined);
    },
  ),

  'one stream twice: rejects one event id in both writes': needs(multi, async ({ store }) => {
    const stream = newStream();
    const event = newEvent();
    await rejectsWith(
      () =>
        store.appendMany([
          { stream, events: [event] },
          { stream, events: [event] },
        ]),
      'APPEND_INVALID',
    );
    assert.equal(await store.streamInfo(stream), undefined);
  }),

  'one stream twice: a deleted stream is restored once': needs(multi, async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(2));
    await store.deleteStream(stream);
    await conflict(
      () =>
        store.appendMany([
          { stream, events: [newEvent()], expected: 'none' },
          { stream, events: [newEvent()], expected: 'none' },
        ]),
      { expected: 'none', actual: 2 },
    );
    const events = newEvents(2);
    await store.appendMany([
      { stream, events: events.slice(0, 1), expected: 'none' },
      { stream, events: events.slice(1), expected: 'exists' },
    ]);
    assert.deepEqual(await storedIds(store, stream), idsOf(events));
  }),

  'a duplicate append returns the first results': needs(multi, async ({ store }) => {
    const [a, b] = [newStream(), newStream()];
    const appends = [
      { stream: a, events: newEvents(2), expected: 'none' as const },
      { stream: b, events: newEvents(1) },
    ];
    const first = await store.appendMany(appends);
    await store.append(a, newEvents(3));
    const again = await store.appendMany(appends);
    assert.deepEqual(
      again,
      first.map((result) => ({ ...result, isDuplicate: true })),
    );
    assert.equal((await store.streamInfo(b))?.revision, 0);
  }),

  'a duplicate in one stream does not prevent writes to another': needs(
    multi,
    async ({ store }) => {
      const [a, b] = [newStream(), newStream()];
      const known = newEvents(2);
      await store.append(a, known);
      const results = await store.appendMany([
        { stream: a, events: known },
        { stream: b, events: newEvents(1) },
      ]);
      assert.deepEqual(
        results.map(({ isDuplicate }) => isDuplicate),
        [true, false],
      );
      assert.equal((await store.streamInfo(a))?.revision, 1);
      assert.equal((await store.streamInfo(b))?.revision, 0);
    },
  ),

  'the event limit counts over all streams': needs(multi, async ({ store }) => {
    const half = storeLimits.eventsPerAppendMax / 2;
    const streams = [newStream(), newStream()];
    await rejectsWith(
      () => store.appendMany(streams.map((stream) => ({ stream, events: newEvents(half + 1) }))),
      'APPEND_INVALID',
    );
    for (const stream of streams) assert.equal(await store.streamInfo(stream), undefined);
  }),

  'rejects an append without streams': async ({ store }) => {
    await rejectsWith(() => store.appendMany([]), 'APPEND_INVALID');
  },

  'an aborted append writes nothing': needs(multi, async ({ store }) => {
    const streams = [newStream(), newStream()];
    const appends = streams.map((stream) => ({ stream, events: [newEvent()] }));
    const signal = AbortSignal.abort();
    await rejectsWith(() => store.appendMany(appends, { signal }), 'ABORTED');
    for (const stream of streams) assert.equal(await store.streamInfo(stream), undefined);
  }),
};
