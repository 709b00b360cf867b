// Appends after a given event id, for callers that decide on a cached state of the stream.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import {
  conflict,
  idsOf,
  newEvent,
  newEvents,
  newStream,
  storedIds,
  type CaseBody,
  type CaseWithNeeds,
  type StoreCases,
} from './fixture.ts';

const following = (run: CaseBody): CaseWithNeeds => ({ needs: ['followingAppend'], run });

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
