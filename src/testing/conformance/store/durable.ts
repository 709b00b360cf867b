// A durable store keeps everything when it is reopened.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';
import { isForgotten, subjectHeader } from '../../../store/erasure.ts';
import {
  conflict,
  follow,
  idsOf,
  needs,
  newEvent,
  newEvents,
  newStream,
  storedIds,
  unique,
  type CaseBody,
  type StoreCases,
} from './fixture.ts';

const durable = (run: CaseBody) => needs('durable', run);

export const durableCases: StoreCases = {
  'every event is unchanged, in the same order and at the same position': durable(
    async ({ open, reopen }) => {
      const store = await open();
      const category = unique('c');
      const filter = { system: true, streamPrefixes: [category, `$$${category}`] };
      for (let round = 0; round < 5; round += 1) {
        await store.append(
          newStream(category),
          newEvents(3, { payload: { text: '\u0000€👩‍👧', round } }),
        );
      }
      await store.setStreamMetadata(newStream(category), { maxCount: 5 });
      const before = await store.readAll({ filter }).toArray();
      const again = await reopen(store);
      assert.equal(before.length, 16);
      assert.deepEqual(await again.readAll({ filter }).toArray(), before);
    },
  ),

  'appends continue after the existing events': durable(async ({ open, reopen }) => {
    const store = await open();
    const stream = newStream();
    const { position } = await store.append(stream, newEvents(3));
    const head = await store.head();
    const again = await reopen(store);
    assert.ok((await again.head()) >= position);
    await conflict(() => again.append(stream, [newEvent()], { expected: 'none' }), {
      expected: 'none',
      actual: 2,
    });
    const next = await again.append(stream, [newEvent()], { expected: 2 });
    assert.equal(next.revision, 3);
    assert.ok(next.position > position);
    assert.ok(next.position > head);
  }),

  'a duplicate append still returns the first result': durable(async ({ open, reopen }) => {
    const store = await open();
    const stream = newStream();
    const events = newEvents(3);
    const first = await store.append(stream, events, { expected: 'none' });
    const again = await reopen(store);
    for (const expected of ['any', 'none', 'exists'] as const) {
      assert.deepEqual(await again.append(stream, events, { expected }), {
        ...first,
        isDuplicate: true,
      });
    }
    assert.deepEqual(await storedIds(again, stream), idsOf(events));
  }),

  'metadata, deletions and tombstones still apply': durable(async ({ open, reopen }) => {
    const store = await open();
    const [truncated, deleted, dead, alone] = [newStream(), newStream(), newStream(), newStream()];
    for (const stream of [truncated, deleted, dead]) await store.append(stream, newEvents(4));
    await store.setStreamMetadata(truncated, { maxCount: 2, custom: { owner: 'jane' } });
    await store.deleteStream(deleted);
    await store.tombstoneStream(dead);
    await store.setStreamMetadata(alone, { truncateBefore: 7 });
    const streams = [truncated, deleted, dead, alone];
    const infos = await Promise.all(streams.map((stream) => store.streamInfo(stream)));
    const again = await reopen(store);
    assert.deepEqual(await Promise.all(streams.map((stream) => again.streamInfo(stream))), infos);
    assert.equal((await storedIds(again, truncated)).length, 2);
    assert.deepEqual(await storedIds(again, deleted), []);
    await rejectsWith(() => again.append(dead, [newEvent()]), 'STREAM_DELETED');
    assert.equal((await again.append(deleted, [newEvent()], { expected: 'none' })).revision, 4);
    assert.equal((await storedIds(again, deleted)).length, 1);
  }),

  'personal data stays readable, and forgotten people stay forgotten': durable(
    async ({ open, reopen }) => {
      const store = await open();
      const stream = newStream();
      const [jane, john] = [unique('person-'), unique('person-')];
      await store.append(stream, [about(jane), about(john)]);
      await store.forget(jane);
      const before = await store.readStream(stream).toArray();
      const again = await reopen(store);
      const after = await again.readStream(stream).toArray();
      assert.deepEqual(after, before);
      assert.deepEqual(
        after.map(({ payload }) => isForgotten(payload)),
        [true, false],
      );
      await rejectsWith(() => again.append(stream, [about(jane)]), 'SUBJECT_FORGOTTEN');
      await again.append(stream, [about(john)]);
      assert.equal((await again.readStream(stream).toArray()).length, 3);
    },
  ),

  'a subscription resumes from a stored position': durable(async ({ open, reopen, signal }) => {
    const store = await open();
    const events = newEvents(8);
    const stream = newStream();
    await store.append(stream, events.slice(0, 5));
    const follower = follow(store.subscribe({ signal, pageSize: 2 }));
    const { position } = await follower.next();
    await follower[Symbol.asyncDispose]();
    const again = await reopen(store);
    await using resumed = follow(again.subscribe({ after: position, signal }));
    await resumed.caughtUp();
    await again.append(stream, events.slice(5));
    assert.deepEqual(idsOf(await resumed.count(6)), idsOf(events.slice(2)));
  }),

  'scavenged events stay removed': needs(['durable', 'scavenge'], async ({ open, reopen }) => {
    const store = await open();
    const stream = newStream();
    await store.append(stream, newEvents(5));
    await store.setStreamMetadata(stream, { maxCount: 1 });
    await store.scavenge();
    const before = await store.readAll({ filter: {} }).toArray();
    const again = await reopen(store);
    assert.deepEqual(await again.readAll({ filter: {} }).toArray(), before);
    assert.equal((await again.append(stream, [newEvent()], { expected: 4 })).revision, 5);
  }),

  'acknowledged events are stored, and rejected ones are not': durable(async ({ open, reopen }) => {
    const store = await open();
    const events = newEvents(30);
    const streams = events.map(() => newStream());
    const appends = Promise.allSettled(
      events.map((event, index) => store.append(streams[index] ?? '', [event])),
    );
    const again = await reopen(store);
    for (const [index, { status }] of (await appends).entries()) {
      const stored = await storedIds(again, streams[index] ?? '');
      assert.equal(stored.length, status === 'fulfilled' ? 1 : 0);
    }
  }),

  'filters find old and new events alike': durable(async ({ open, reopen }) => {
    const store = await open();
    const append = async (into: typeof store): Promise<void> => {
      for (const tenant of ['core', 'demo']) {
        const event = newEvent({ tenant, type: 'contact.added.v1' });
        await into.append(newStream('crm.contact.v1', tenant), [newEvent({ tenant }), event]);
      }
    };
    await append(store);
    const again = await reopen(store);
    await append(again);
    for (const [filter, count] of [
      [{ tenant: 'demo' }, 4],
      [{ types: ['contact.added.v1'] }, 4],
      [{ category: 'crm.contact.v1' }, 8],
      [{ category: 'crm.contact.v1', tenant: 'core', types: ['contact.added.v1'] }, 2],
    ] as const) {
      assert.equal((await again.readAll({ filter }).toArray()).length, count);
    }
  }),
};

function about(subject: string): DomainEventEnvelope {
  return newEvent({ payload: { name: 'Jane' }, headers: { [subjectHeader]: subject } });
}
