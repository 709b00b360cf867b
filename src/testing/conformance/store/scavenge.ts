// Scavenging removes hidden events permanently; the other events keep their revisions and positions.

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
  'removes only truncated events': async ({ open }) => {
    const store = await open();
    const { stream, other } = await fill(store);
    await store.setStreamMetadata(stream, { truncateBefore: 3 });
    const before = await everything(store);
    const { eventsRemoved } = await store.scavenge();
    assert.equal(eventsRemoved, 3);
    const remaining = before.filter((event) => event.stream === other || event.revision >= 3);
    assert.deepEqual(await everything(store), remaining);
  },

  'removes events beyond the maximum count': async ({ open }) => {
    const store = await open();
    const { stream } = await fill(store);
    await store.setStreamMetadata(stream, { maxCount: 2 });
    assert.equal((await store.scavenge()).eventsRemoved, 3);
    assert.deepEqual(
      (await store.readStream(stream).toArray()).map(({ revision }) => revision),
      [3, 4],
    );
  },

  'removes expired events except the last one of the stream': async ({ open }) => {
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

  'removes a deleted stream, which can be restored and continues its revisions': async ({
    open,
  }) => {
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

  'removes the events under a tombstone and keeps the tombstone': async ({ open }) => {
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

  'a second run removes nothing': async ({ open }) => {
    const store = await open();
    const { stream } = await fill(store);
    await store.setStreamMetadata(stream, { maxCount: 1 });
    assert.equal((await store.scavenge()).eventsRemoved, 4);
    const before = await everything(store);
    assert.equal((await store.scavenge()).eventsRemoved, 0);
    assert.deepEqual(await everything(store), before);
  },

  'an empty store and a store without hidden events stay unchanged': async ({ open }) => {
    const store = await open();
    assert.equal((await store.scavenge()).eventsRemoved, 0);
    await fill(store);
    const before = await everything(store);
    assert.equal((await store.scavenge()).eventsRemoved, 0);
    assert.deepEqual(await everything(store), before);
  },

  'reports progress per stream': async ({ open }) => {
    const store = await open();
    await hideInStreams(store, 3);
    const reported: ScavengeProgress[] = [];
    const result = await store.scavenge({ onProgress: (progress) => reported.push(progress) });
    assert.equal(result.eventsRemoved, 6);
    assert.equal(result.streamsDone, result.streamsTotal);
    assert.ok(reported.length >= 3);
    assert.deepEqual(last(reported), result);
    for (const [index, progress] of reported.entries()) {
      const before = reported[index - 1];
      assert.ok(progress.streamsDone <= progress.streamsTotal);
      assert.ok(before === undefined || before.streamsDone <= progress.streamsDone);
      assert.ok(before === undefined || before.eventsRemoved <= progress.eventsRemoved);
    }
  },

  'an aborted run removes nothing': async ({ open }) => {
    const store = await open();
    await hideInStreams(store, 2);
    const before = await everything(store);
    await rejectsWith(() => store.scavenge({ signal: AbortSignal.abort() }), 'ABORTED');
    assert.deepEqual(await everything(store), before);
  },

  'an abort stops the run between two streams, and the next run completes it': async ({ open }) => {
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

  'reads skip removed events, in both directions and with any page size': async ({ open }) => {
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

  'a subscription skips removed events': async ({ open, signal }) => {
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

  'a removed event cannot be found': async ({ open }) => {
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

  'an engine without on-demand scavenging rejects it': async ({ store, capabilities }) => {
    if (capabilities.scavenge !== false) return;
    const { details } = await rejectsWith(() => store.scavenge(), 'NOT_SUPPORTED');
    assert.equal(details['capability'], 'scavenge');
  },
};

/** Appends a stream of five events, interleaved with a stream of three events. */
async function fill(
  store: EventStore,
): Promise<{ readonly stream: string; readonly other: string }> {
  const [stream, other] = [newStream(), newStream()];
  await store.append(stream, newEvents(2));
  await store.append(other, newEvents(3));
  await store.append(stream, newEvents(3));
  return { stream, other };
}

/** Appends streams of three events each, whose first two events are hidden. */
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
