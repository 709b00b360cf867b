// Duplicate appends, by the rules of EventStoreDB. With an expected revision, the same ids at the same revisions are a
// duplicate. With `any` and `exists`, ids that the stream contains are a duplicate.

import assert from 'node:assert/strict';
import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';
import type { ExpectedRevision } from '../../../store/expected-revision.ts';
import {
  conflict,
  follow,
  idsOf,
  newEvent,
  newEvents,
  newStream,
  only,
  storedIds,
  unique,
  type StoreCases,
} from './fixture.ts';

export const idempotentAppendCases: StoreCases = {
  'none: a duplicate append returns the first result': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(3);
    const first = await store.append(stream, events, { expected: 'none' });
    const again = await store.append(stream, events, { expected: 'none' });
    assert.equal(first.isDuplicate, false);
    assert.deepEqual(again, { ...first, isDuplicate: true });
    assert.deepEqual(await storedIds(store, stream), idsOf(events));
  },

  'a revision: a duplicate append returns the first result': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(2);
    await store.append(stream, newEvents(5));
    const first = await store.append(stream, events, { expected: 4 });
    assert.deepEqual(await store.append(stream, events, { expected: 4 }), {
      ...first,
      isDuplicate: true,
    });
    assert.equal((await store.streamInfo(stream))?.revision, 6);
  },

  'any: a duplicate append returns the first result': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(3);
    const first = await store.append(stream, events);
    assert.deepEqual(await store.append(stream, events), { ...first, isDuplicate: true });
    assert.deepEqual(await storedIds(store, stream), idsOf(events));
  },

  'exists: a duplicate append returns the first result': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, [newEvent()]);
    const events = newEvents(2);
    const first = await store.append(stream, events, { expected: 'exists' });
    assert.deepEqual(await store.append(stream, events, { expected: 'exists' }), {
      ...first,
      isDuplicate: true,
    });
  },

  'detects a duplicate after many later appends': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(2);
    const first = await store.append(stream, events, { expected: 'none' });
    for (let round = 0; round < 5; round += 1) await store.append(stream, newEvents(30));
    for (const expected of ['none', 'any', 'exists'] as const) {
      assert.deepEqual(await store.append(stream, events, { expected }), {
        ...first,
        isDuplicate: true,
      });
    }
    assert.equal((await store.streamInfo(stream))?.revision, 151);
  },

  'ten duplicates leave one copy': async ({ store }) => {
    const stream = newStream();
    const event = newEvent();
    for (let round = 0; round < 10; round += 1) {
      const { revision, isDuplicate } = await store.append(stream, [event]);
      assert.deepEqual({ revision, isDuplicate }, { revision: 0, isDuplicate: round > 0 });
    }
    assert.deepEqual(await storedIds(store, stream), [event.eventId]);
  },

  'an append at a revision can be repeated with any, and vice versa': async ({ store }) => {
    const stream = newStream();
    const [a, b] = [newEvent(), newEvent()];
    await store.append(stream, [a], { expected: 'none' });
    await store.append(stream, [b]);
    assert.equal((await store.append(stream, [a])).isDuplicate, true);
    assert.equal((await store.append(stream, [b], { expected: 0 })).isDuplicate, true);
  },

  'a revision: the first events of an append are a duplicate': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(4);
    await store.append(stream, events, { expected: 'none' });
    const { revision, position, isDuplicate } = await store.append(stream, events.slice(0, 2), {
      expected: 'none',
    });
    const second = only(await store.readStream(stream, { from: 1, limit: 1 }).toArray());
    assert.deepEqual(
      { revision, position, isDuplicate },
      { revision: 1, position: second.position, isDuplicate: true },
    );
  },

  'a revision: the last events of an append are a duplicate at their own revisions': async ({
    store,
  }) => {
    const stream = newStream();
    const events = newEvents(4);
    const { position } = await store.append(stream, events, { expected: 'none' });
    assert.deepEqual(await store.append(stream, events.slice(2), { expected: 1 }), {
      stream,
      revision: 3,
      position,
      isDuplicate: true,
    });
  },

  'a revision: two appends can be repeated as one': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(4);
    await store.append(stream, events.slice(0, 1), { expected: 'none' });
    await store.append(stream, events.slice(1), { expected: 0 });
    const { isDuplicate, revision } = await store.append(stream, events, { expected: 'none' });
    assert.deepEqual({ isDuplicate, revision }, { isDuplicate: true, revision: 3 });
  },

  'any: an event that the stream has twice is a duplicate': async ({ store }) => {
    const stream = newStream();
    const [first, second] = newEvents(2) as [DomainEventEnvelope, DomainEventEnvelope];
    await store.append(stream, [first], { expected: 'none' });
    await store.append(stream, [second], { expected: 0 });
    await store.append(stream, [first], { expected: 1 });
    for (const again of [[first], [first, second]]) {
      assert.equal((await store.append(stream, again)).isDuplicate, true);
    }
    assert.equal((await storedIds(store, stream)).length, 3);
  },

  'any: a subset of known events is a duplicate': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(6);
    await store.append(stream, events);
    const { revision, isDuplicate } = await store.append(stream, events.slice(2, 4));
    assert.deepEqual({ revision, isDuplicate }, { revision: 3, isDuplicate: true });
  },

  'a revision: known events followed by new ones are a conflict': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(3);
    await store.append(stream, events.slice(0, 2), { expected: 'none' });
    await conflictsAt(store, stream, { events, expected: 'none', actual: 1 });
  },

  'a revision: a known event followed by a different one is a conflict': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(3);
    await store.append(stream, events, { expected: 'none' });
    const mixed = [...events.slice(0, 1), newEvent()];
    await conflictsAt(store, stream, { events: mixed, expected: 'none', actual: 2 });
  },

  'a revision: the same events in another order are a conflict': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(2);
    await store.append(stream, events, { expected: 'none' });
    await conflictsAt(store, stream, { events: events.toReversed(), expected: 'none', actual: 1 });
  },

  'a revision: the same events at other revisions are a conflict': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(4);
    await store.append(stream, events, { expected: 'none' });
    await conflictsAt(store, stream, { events: events.slice(0, 2), expected: 0, actual: 3 });
  },

  'a revision: a known event conflicts with a shorter stream': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(2);
    await store.append(stream, events, { expected: 'none' });
    await conflictsAt(store, stream, { events, expected: 5, actual: 1 });
  },

  'any: a known event followed by a new one is a conflict': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(2);
    await store.append(stream, events);
    const mixed = [...events, newEvent()];
    await conflictsAt(store, stream, { events: mixed, expected: 'any', actual: 1 });
    await conflictsAt(store, stream, { events: mixed, expected: 'exists', actual: 1 });
  },

  'any: a new first event makes all events new': async ({ store }) => {
    const stream = newStream();
    const known = newEvent();
    await store.append(stream, [known]);
    const { revision, isDuplicate } = await store.append(stream, [newEvent(), known]);
    assert.deepEqual({ revision, isDuplicate }, { revision: 2, isDuplicate: false });
  },

  'a revision: after the last event every event is new': async ({ store }) => {
    const stream = newStream();
    const event = newEvent();
    await store.append(stream, [event, newEvent()]);
    const { revision, isDuplicate } = await store.append(stream, [event], { expected: 1 });
    assert.deepEqual({ revision, isDuplicate }, { revision: 2, isDuplicate: false });
    assert.equal((await store.readStream(stream).toArray()).length, 3);
  },

  'the same events in another stream are not duplicates': async ({ store }) => {
    const events = newEvents(2);
    const streams = [newStream(), newStream()];
    for (const stream of streams) {
      assert.equal((await store.append(stream, events)).isDuplicate, false);
    }
    for (const stream of streams) assert.deepEqual(await storedIds(store, stream), idsOf(events));
  },

  'an event is identified by its id alone, and the first content stays': async ({ store }) => {
    const stream = newStream();
    const event = newEvent({ payload: { amount: 1 } });
    await store.append(stream, [event]);
    const other = { ...event, type: 'account.debited.v1', payload: { amount: 2 } };
    assert.equal((await store.append(stream, [other])).isDuplicate, true);
    const recorded = only(await store.readStream(stream).toArray());
    assert.deepEqual(
      { type: recorded.type, payload: recorded.payload },
      { type: event.type, payload: { amount: 1 } },
    );
  },

  'fifty concurrent identical appends store one event, and all return its result': async ({
    store,
  }) => {
    for (const expected of ['any', 'none'] as const) {
      const stream = newStream();
      const event = newEvent();
      const results = await Promise.all(
        Array.from({ length: 50 }, () => store.append(stream, [event], { expected })),
      );
      const recorded = only(await store.readStream(stream).toArray());
      assert.equal(results.filter(({ isDuplicate }) => !isDuplicate).length, 1);
      for (const { revision, position } of results) {
        assert.deepEqual({ revision, position }, { revision: 0, position: recorded.position });
      }
    }
  },

  'concurrent identical appends of several events store one copy of each': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(2));
    const events = newEvents(5);
    const results = await Promise.all(
      Array.from({ length: 20 }, () => store.append(stream, events, { expected: 1 })),
    );
    assert.deepEqual(new Set(results.map(({ revision }) => revision)), new Set([6]));
    assert.equal(new Set(results.map(({ position }) => position)).size, 1);
    assert.deepEqual((await storedIds(store, stream)).slice(2), idsOf(events));
  },

  'subscribers do not get duplicates': async ({ store, signal }) => {
    const category = unique('c');
    const stream = newStream(category);
    const [a, b] = [newEvent(), newEvent()];
    await using follower = follow(store.subscribe({ filter: { category }, after: 'end', signal }));
    await follower.caughtUp();
    for (let round = 0; round < 3; round += 1) await store.append(stream, [a]);
    await store.append(stream, [b]);
    assert.deepEqual(idsOf(await follower.count(2)), idsOf([a, b]));
  },
};

async function conflictsAt(
  store: Parameters<typeof storedIds>[0],
  stream: string,
  {
    events,
    expected,
    actual,
  }: {
    readonly events: Parameters<typeof store.append>[1];
    readonly expected: ExpectedRevision;
    readonly actual: number;
  },
): Promise<void> {
  const before = await storedIds(store, stream);
  await conflict(() => store.append(stream, events, { expected }), { expected, actual });
  assert.deepEqual(await storedIds(store, stream), before);
}
