// Appends: results and expected revisions.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import { storeLimits } from '../../../store/prepare-append.ts';
import {
  assertAscending,
  assertDense,
  conflict,
  idsOf,
  last,
  newEvent,
  newEvents,
  newStream,
  only,
  storedIds,
  unique,
  type CaseBody,
  type CaseWithNeeds,
  type StoreCases,
} from './fixture.ts';

export const appendCases: StoreCases = {
  'the first event of a stream has revision 0, and the result contains its position': async ({
    store,
  }) => {
    const stream = newStream();
    const result = await store.append(stream, [newEvent()]);
    const recorded = only(await store.readStream(stream).toArray());
    assert.deepEqual(result, {
      stream,
      revision: 0,
      position: recorded.position,
      isDuplicate: false,
    });
    assert.equal(recorded.revision, 0);
    assert.equal(recorded.stream, stream);
  },

  'the result of several events contains the revision and position of the last one': async ({
    store,
  }) => {
    const stream = newStream();
    const result = await store.append(stream, newEvents(4));
    const recorded = last(await store.readStream(stream).toArray());
    assert.equal(result.revision, 3);
    assert.equal(recorded.revision, 3);
    assert.equal(result.position, recorded.position);
  },

  'revisions have no gaps, for any append sizes': async ({ store }) => {
    const stream = newStream();
    let total = 0;
    for (const count of [1, 3, 2, 10, 1, 1, 7]) {
      total += count;
      const { revision } = await store.append(stream, newEvents(count));
      assert.equal(revision, total - 1);
    }
    const events = await store.readStream(stream).toArray();
    assert.equal(events.length, total);
    assertDense(events);
  },

  'events keep the order of the append': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(100);
    await store.append(stream, events.slice(0, 60));
    await store.append(stream, events.slice(60));
    assert.deepEqual(await storedIds(store, stream), idsOf(events));
  },

  'positions ascend from append to append, over all streams': async ({ store }) => {
    const streams = [newStream(), newStream(), newStream('crm.contact.v1')];
    const positions: string[] = [];
    for (let round = 0; round < 12; round += 1) {
      const stream = streams[round % streams.length] ?? '';
      positions.push((await store.append(stream, newEvents(1 + (round % 3)))).position);
    }
    assertAscending(positions);
  },

  'positions ascend within an append': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(50));
    const events = await store.readStream(stream).toArray();
    assertAscending(events.map(({ position }) => position));
  },

  'a position is the same in the result, in the stream and among all events': async ({ store }) => {
    const category = unique('c');
    const results = [];
    for (let index = 0; index < 5; index += 1) {
      results.push(await store.append(newStream(category), [newEvent()]));
    }
    const all = await store.readAll({ filter: { category } }).toArray();
    assert.deepEqual(
      all.map(({ stream, position }) => ({ stream, position })),
      results.map(({ stream, position }) => ({ stream, position })),
    );
  },

  'one event id can be in several streams': async ({ store }) => {
    const event = newEvent();
    const streams = [newStream(), newStream()];
    for (const stream of streams) {
      const { isDuplicate } = await store.append(stream, [event], { expected: 'none' });
      assert.equal(isDuplicate, false);
      assert.deepEqual(await storedIds(store, stream), [event.eventId]);
    }
  },

  'any: appends to an existing and to a missing stream': async ({ store }) => {
    const stream = newStream();
    assert.equal((await store.append(stream, [newEvent()], { expected: 'any' })).revision, 0);
    assert.equal((await store.append(stream, [newEvent()], { expected: 'any' })).revision, 1);
    assert.equal((await store.append(stream, [newEvent()])).revision, 2);
  },

  'none: appends to a missing stream': async ({ store }) => {
    const stream = newStream();
    const { revision } = await store.append(stream, newEvents(2), { expected: 'none' });
    assert.equal(revision, 1);
  },

  'none: conflicts with an existing stream': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(3);
    await store.append(stream, events);
    await conflict(() => store.append(stream, [newEvent()], { expected: 'none' }), {
      expected: 'none',
      actual: 2,
    });
    assert.deepEqual(await storedIds(store, stream), idsOf(events));
  },

  'exists: appends to an existing stream': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, [newEvent()]);
    const { revision } = await store.append(stream, [newEvent()], { expected: 'exists' });
    assert.equal(revision, 1);
  },

  'exists: conflicts with a missing stream': async ({ store }) => {
    const stream = newStream();
    await conflict(() => store.append(stream, [newEvent()], { expected: 'exists' }), {
      expected: 'exists',
      actual: -1,
    });
    assert.equal(await store.streamInfo(stream), undefined);
  },

  'a revision: appends directly after it': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(2));
    const { revision } = await store.append(stream, newEvents(3), { expected: 1 });
    assert.equal(revision, 4);
    assertDense(await store.readStream(stream).toArray());
  },

  'a revision: conflicts with a longer stream': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(4);
    await store.append(stream, events);
    for (const expected of [0, 1, 2]) {
      await conflict(() => store.append(stream, [newEvent()], { expected }), {
        expected,
        actual: 3,
      });
    }
    assert.deepEqual(await storedIds(store, stream), idsOf(events));
  },

  'a revision: conflicts with a shorter stream': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, [newEvent()]);
    for (const expected of [1, 2, 1_000_000]) {
      await conflict(() => store.append(stream, [newEvent()], { expected }), {
        expected,
        actual: 0,
      });
    }
  },

  'a revision: conflicts with a missing stream': async ({ store }) => {
    const stream = newStream();
    for (const expected of [0, 5]) {
      await conflict(() => store.append(stream, [newEvent()], { expected }), {
        expected,
        actual: -1,
      });
    }
    assert.equal(await store.streamInfo(stream), undefined);
  },

  'a conflict names the stream and is retryable': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, [newEvent()]);
    const error = await conflict(() => store.append(stream, [newEvent()], { expected: 4 }), {
      expected: 4,
      actual: 0,
    });
    assert.equal(error.details['stream'], stream);
    assert.equal(error.retryable, true);
  },

  'the actual revision of a conflict is valid for the next attempt': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(7));
    const error = await rejectsWith(
      () => store.append(stream, [newEvent()], { expected: 2 }),
      'VERSION_CONFLICT',
    );
    const expected = Number(error.details['actual']);
    assert.equal((await store.append(stream, [newEvent()], { expected })).revision, 7);
  },

  'a conflict uses no revision and does not affect the order of others': async ({ store }) => {
    const category = unique('c');
    const [stream, other] = [newStream(category), newStream(category)];
    const events = newEvents(3);
    await store.append(stream, events.slice(0, 1));
    await rejectsWith(
      () => store.append(stream, newEvents(5), { expected: 9 }),
      'VERSION_CONFLICT',
    );
    await store.append(other, events.slice(1, 2));
    await rejectsWith(
      () => store.append(other, newEvents(5), { expected: 'none' }),
      'VERSION_CONFLICT',
    );
    await store.append(stream, events.slice(2), { expected: 0 });
    const all = await store.readAll({ filter: { category } }).toArray();
    assert.deepEqual(idsOf(all), idsOf(events));
    assertDense(all);
  },

  'stores the largest append completely': async ({ open }) => {
    const store = await open();
    const stream = newStream();
    const events = newEvents(storeLimits.eventsPerAppendMax);
    const { revision } = await store.append(stream, events, { expected: 'none' });
    assert.equal(revision, events.length - 1);
    assert.deepEqual(await storedIds(store, stream), idsOf(events));
  },

  'changing the list after the call has no effect': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(3);
    const expected = idsOf(events);
    const appending = store.append(stream, events);
    events.length = 0;
    assert.equal((await appending).revision, 2);
    assert.deepEqual(await storedIds(store, stream), expected);
  },

  'an aborted append writes nothing': async ({ store }) => {
    const stream = newStream();
    const signal = AbortSignal.abort();
    await rejectsWith(() => store.append(stream, [newEvent()], { signal }), 'ABORTED');
    assert.equal(await store.streamInfo(stream), undefined);
  },

  'an interrupted append can be repeated and is stored once': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(3);
    const leaving = new AbortController();
    const appending = store.append(stream, events, { signal: leaving.signal });
    leaving.abort();
    const [outcome] = await Promise.allSettled([appending]);
    if (outcome.status === 'rejected') {
      await rejectsWith(() => Promise.reject(outcome.reason as Error), 'ABORTED');
    }
    assert.equal((await store.append(stream, events)).revision, 2);
    assert.deepEqual(await storedIds(store, stream), idsOf(events));
  },

  'names that differ in case, accents or blanks are different streams': async ({ store }) => {
    const base = newStream();
    const names = ['x', 'X', '\u00e9', 'e\u0301', ' ', '  ', 'x ', '\u00df', 'ss'];
    const streams = names.map((name) => `${base}.${name}`);
    for (const [index, stream] of streams.entries()) {
      await store.append(stream, newEvents(index + 1), { expected: 'none' });
    }
    for (const [index, stream] of streams.entries()) {
      const events = await store.readStream(stream).toArray();
      assert.equal(events.length, index + 1);
      assert.ok(events.every((event) => event.stream === stream));
    }
  },

  'special characters in stream names have no meaning': async ({ store }) => {
    const base = newStream();
    for (const name of [
      `'; drop table events; --`,
      '%_*?[a-z]',
      '../../etc/passwd',
      '\\x00\\',
      '"quoted"',
      '{core}:a',
      '\u{1f4b6}\u05e9\u05dc\u05d5\u05dd',
      'constructor',
      '__proto__',
    ]) {
      const stream = `${base}.${name}`;
      const event = newEvent();
      await store.append(stream, [event], { expected: 'none' });
      assert.deepEqual(await storedIds(store, stream), [event.eventId], stream);
      assert.equal((await store.streamInfo(stream))?.stream, stream);
    }
  },

  'a name may have 200 characters': async ({ store }) => {
    const stream = newStream().padEnd(200, '\u20ac');
    await store.append(stream, [newEvent()]);
    assert.equal(only(await store.readStream(stream).toArray()).stream, stream);
  },
};

const following = (run: CaseBody): CaseWithNeeds => ({ needs: ['followingAppend'], run });

/** Appends after a given event id, for callers that decide on a cached state of the stream. */
export const followingAppendCases: StoreCases = {
  'appends if the event at the expected revision has the id': following(async ({ store }) => {
    const stream = newStream();
    const events = newEvents(3);
    const [first, second, third] = events.map(({ eventId }) => eventId);
    await store.append(stream, events.slice(0, 2));
    const behind = { expected: 1, follows: second ?? '' };
    assert.equal((await store.append(stream, events.slice(2), behind)).revision, 2);
    await conflict(
      () => store.append(stream, [newEvent()], { expected: 2, follows: first ?? '' }),
      { expected: 2, actual: 2 },
    );
    const several = [{ stream, events: [newEvent()], expected: 2, follows: third ?? '' }];
    assert.equal((await store.appendMany(several))[0]?.revision, 3);
  }),

  'a second append is a duplicate, and an append after another revision conflicts': following(
    async ({ store }) => {
      const stream = newStream();
      const [first, second] = newEvents(2);
      assert.ok(first && second);
      await store.append(stream, [first]);
      const behind = { expected: 0, follows: first.eventId };
      const appended = await store.append(stream, [second], behind);
      assert.deepEqual(await store.append(stream, [second], behind), {
        ...appended,
        isDuplicate: true,
      });
      await conflict(() => store.append(stream, [newEvent()], behind), { expected: 0, actual: 1 });
    },
  ),

  'conflicts with a deleted stream and a stream whose last events are hidden': following(
    async ({ store }) => {
      const hide = [
        (stream: string) => store.deleteStream(stream),
        (stream: string) => store.setStreamMetadata(stream, { truncateBefore: 2 }),
        (stream: string) => store.setStreamMetadata(stream, { maxAgeSeconds: 3_600 }),
      ];
      for (const each of hide) {
        const stream = newStream();
        const events = newEvents(2);
        await store.append(stream, events);
        await each(stream);
        const follows = events[1]?.eventId ?? '';
        await conflict(() => store.append(stream, [newEvent()], { expected: 1, follows }), {
          expected: 1,
          actual: 1,
        });
      }
    },
  ),

  'appends to a stream whose first events are hidden': following(async ({ store }) => {
    const stream = newStream();
    const events = newEvents(3);
    await store.append(stream, events.slice(0, 2));
    await store.setStreamMetadata(stream, { truncateBefore: 1, maxCount: 5 });
    const behind = { expected: 1, follows: events[1]?.eventId ?? '' };
    await store.append(stream, events.slice(2), behind);
    assert.deepEqual(await storedIds(store, stream), idsOf(events.slice(1)));
  }),

  'knows the ids of events that another process appended': {
    needs: ['followingAppend', 'crossProcess'],
    async run({ store, second }) {
      const stream = newStream();
      const other = await second(store);
      const [one, two] = newEvents(2);
      assert.ok(one && two);
      await store.append(stream, [one]);
      await other.append(stream, [two], { expected: 0, follows: one.eventId });
      await conflict(
        () => store.append(stream, [newEvent()], { expected: 1, follows: one.eventId }),
        { expected: 1, actual: 1 },
      );
      await store.append(stream, [newEvent()], { expected: 1, follows: two.eventId });
    },
  },

  'requires an id and a revision': following(async ({ store }) => {
    for (const wrong of [{ expected: 'any' }, { expected: 0, follows: '' }] as const) {
      const behind = { follows: 'e1', ...wrong };
      await rejectsWith(() => store.append(newStream(), [newEvent()], behind), 'APPEND_INVALID');
    }
  }),
};
