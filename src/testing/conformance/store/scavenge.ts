// Removing for good what retention hides; whatever stays keeps its place.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import { fakeClock } from '../../fake-clock.ts';
import type { EventStore } from '../../../store/event-store.ts';
import type { ScavengeProgress } from '../../../store/store-engine.ts';
import {
  follow,
  idsOf,
  last,
  needs,
  newEvent,
  newEvents,
  newStream,
  storedIds,
  type CaseBody,
  type StoreCases,
} from './fixture.ts';

const cases: Readonly<Record<string, CaseBody>> = {
  'removes what truncation hides, and nothing else': async ({ open }) => {
    const store = await open();
    const { stream, other } = await fill(store);
    await store.setStreamMetadata(stream, { truncateBefore: 3 });
    const before = await everything(store);
    const { eventsRemoved } = await store.scavenge();
    assert.equal(eventsRemoved, 3);
    const kept = before.filter((event) => event.stream === other || event.revision >= 3);
    assert.deepEqual(await everything(store), kept);
  },

  'removes what the maximal count hides': async ({ open }) => {
    const store = await open();
    const { stream } = await fill(store);
    await store.setStreamMetadata(stream, { maxCount: 2 });
    assert.equal((await store.scavenge()).eventsRemoved, 3);
    assert.deepEqual(
      (await store.readStream(stream).toArray()).map(({ revision }) => revision),
      [3, 4],
    );
  },

  'removes what is too old, but for the event that the stream is known by': async ({ open }) => {
    const clock = fakeClock({ nowMs: Date.now() });
    const store = await open({ clock });
    const { stream } = await fill(store);
    await store.setStreamMetadata(stream, { maxAgeSeconds: 60 });
    assert.equal((await store.scavenge()).eventsRemoved, 0);
    await clock.advance(3_600_000);
    assert.equal((await store.scavenge()).eventsRemoved, 4);
    assert.deepEqual(await storedIds(store, stream), []);
    assert.equal((await store.append(stream, [newEvent()], { expected: 4 })).revision, 5);
  },

  'removes a deleted stream, which can still come back and go on counting': async ({ open }) => {
    const store = await open();
    const { stream } = await fill(store);
    await store.deleteStream(stream);
    assert.ok((await store.scavenge()).eventsRemoved >= 4);
    const left = (await everything(store)).filter((event) => event.stream === stream);
    assert.ok(left.length <= 1);
    assert.deepEqual(await storedIds(store, stream), []);
    const event = newEvent();
    assert.equal((await store.append(stream, [event], { expected: 'none' })).revision, 5);
    assert.deepEqual(await storedIds(store, stream), [event.eventId]);
  },

  'removes what is under a tombstone, which stays for ever': async ({ open }) => {
    const store = await open();
    const { stream } = await fill(store);
    await store.tombstoneStream(stream);
    assert.equal((await store.scavenge()).eventsRemoved, 5);
    assert.deepEqual(
      (await everything(store)).filter((event) => event.stream === stream),
      [],
    );
    await rejectsWith(() => store.append(stream, [newEvent()]), 'STREAM_DELETED');
    await rejectsWith(() => store.readStream(stream).toArray(), 'STREAM_DELETED');
  },

  'there is nothing left to do the second time': async ({ open }) => {
    const store = await open();
    const { stream } = await fill(store);
    await store.setStreamMetadata(stream, { maxCount: 1 });
    assert.equal((await store.scavenge()).eventsRemoved, 4);
    const before = await everything(store);
    assert.equal((await store.scavenge()).eventsRemoved, 0);
    assert.deepEqual(await everything(store), before);
  },

  'an empty store, or one without anything hidden, stays as it is': async ({ open }) => {
    const store = await open();
    assert.equal((await store.scavenge()).eventsRemoved, 0);
    await fill(store);
    const before = await everything(store);
    assert.equal((await store.scavenge()).eventsRemoved, 0);
    assert.deepEqual(await everything(store), before);
  },

  'tells how far it is, stream by stream': async ({ open }) => {
    const store = await open();
    await hideInStreams(store, 3);
    const told: ScavengeProgress[] = [];
    const result = await store.scavenge({ onProgress: (progress) => told.push(progress) });
    assert.equal(result.eventsRemoved, 6);
    assert.equal(result.streamsDone, result.streamsTotal);
    assert.ok(told.length >= 3);
    assert.deepEqual(last(told), result);
    for (const [index, progress] of told.entries()) {
      const before = told[index - 1];
      assert.ok(progress.streamsDone <= progress.streamsTotal);
      assert.ok(before === undefined || before.streamsDone <= progress.streamsDone);
      assert.ok(before === undefined || before.eventsRemoved <= progress.eventsRemoved);
    }
  },

  'a signal that has fired, and nothing is removed': async ({ open }) => {
    const store = await open();
    await hideInStreams(store, 2);
    const before = await everything(store);
    await rejectsWith(() => store.scavenge({ signal: AbortSignal.abort() }), 'ABORTED');
    assert.deepEqual(await everything(store), before);
  },

  'a signal stops it between two streams, and the next time does the rest': async ({ open }) => {
    const store = await open();
    await hideInStreams(store, 6);
    const leaving = new AbortController();
    let removed = 0;
    await rejectsWith(
      () =>
        store.scavenge({
          signal: leaving.signal,
          onProgress(progress) {
            removed = progress.eventsRemoved;
            if (removed > 0) leaving.abort();
          },
        }),
      'ABORTED',
    );
    assert.ok(removed < 12);
    const rest = await store.scavenge();
    assert.equal(removed + rest.eventsRemoved, 12);
  },

  'reading goes over what was removed, in both directions and in any pages': async ({ open }) => {
    const store = await open();
    await hideInStreams(store, 5);
    const before = await store.readAll({ filter: {} }).toArray();
    await store.scavenge();
    const left = before.filter(({ revision }) => revision >= 2);
    for (const pageSize of [1, 2, 3, 100]) {
      const forwards = await store.readAll({ pageSize, filter: {} }).toArray();
      assert.deepEqual(idsOf(forwards), idsOf(left));
      const direction = 'backwards';
      const backwards = await store.readAll({ pageSize, direction, filter: {} }).toArray();
      assert.deepEqual(idsOf(backwards), idsOf(left.toReversed()));
    }
    const removed = before.find(({ revision }) => revision === 0);
    assert.ok(removed !== undefined);
    const behind = left.filter(({ position }) => position > removed.position);
    const after = await store.readAll({ after: removed.position, filter: {} }).toArray();
    assert.deepEqual(idsOf(after), idsOf(behind));
  },

  'a subscription goes over what was removed': async ({ open, signal }) => {
    const store = await open();
    await hideInStreams(store, 4);
    await using follower = follow(store.subscribe({ signal, pageSize: 2 }));
    await follower.next();
    await store.scavenge();
    await follower.caughtUp();
    const event = newEvent();
    await store.append(newStream(), [event]);
    await follower.until(({ kind }) => kind === 'events');
    assert.equal(last(follower.events).eventId, event.eventId);
    assert.equal(new Set(idsOf(follower.events)).size, follower.events.length);
  },

  'what was removed cannot be found any more': async ({ open }) => {
    const store = await open();
    const stream = newStream();
    const events = newEvents(3);
    await store.append(stream, events);
    await store.setStreamMetadata(stream, { truncateBefore: 2 });
    await store.scavenge();
    assert.equal(await store.findEvent(stream, events[0]?.eventId ?? ''), undefined);
    assert.equal((await store.findEvent(stream, events[2]?.eventId ?? ''))?.revision, 2);
    assert.equal((await store.append(stream, [newEvent()], { expected: 2 })).revision, 3);
  },
};

export const scavengeCases: StoreCases = {
  ...Object.fromEntries(
    Object.entries(cases).map(([sentence, run]) => [sentence, needs('scavenge', run)]),
  ),

  'an engine that is not scavenged on demand says so': async ({ store, capabilities }) => {
    if (capabilities.scavenge !== false) return;
    const { details } = await rejectsWith(() => store.scavenge(), 'NOT_SUPPORTED');
    assert.equal(details['capability'], 'scavenge');
  },
};

/** A stream of five events, and one of three between them. */
async function fill(
  store: EventStore,
): Promise<{ readonly stream: string; readonly other: string }> {
  const [stream, other] = [newStream(), newStream()];
  await store.append(stream, newEvents(2));
  await store.append(other, newEvents(3));
  await store.append(stream, newEvents(3));
  return { stream, other };
}

/** Streams of three events each, the first two of them hidden. */
async function hideInStreams(store: EventStore, streams: number): Promise<void> {
  for (let index = 0; index < streams; index += 1) {
    const stream = newStream();
    await store.append(stream, newEvents(3));
    await store.setStreamMetadata(stream, { truncateBefore: 2 });
  }
}

function everything(store: EventStore) {
  return store.readAll({ filter: {} }).toArray();
}
