import assert from 'node:assert/strict';
import { assertLost, at, acquireShard, takeOverShard, type StorageCases } from './fixture.ts';
import type { WaitingEvent } from '../../../subscriptions/subscription-storage.ts';

const stream = 'banking.account.v1-core-a-1';
const event = (position: number, failures = 0): WaitingEvent => ({
  position: at(position),
  eventId: `e${position}`,
  failures,
  history: failures === 0 ? [] : [{ at: '2025-09-30T10:00:00.000Z', error: 'no: "x"' }],
});

export const waitingCases: StorageCases = {
  async 'parks events in order and finds them when the first one is due'({ storage }) {
    const fence = await acquireShard(storage);
    const { waiting } = storage;
    await waiting.park(fence, [{ stream, due: 1_000, events: [event(7, 2)] }]);
    await waiting.park(fence, [{ stream, due: 'queued', events: [event(12), event(9)] }]);
    assert.deepEqual(await waiting.due(fence, 999, 10), []);
    assert.deepEqual(await waiting.due(fence, 1_000, 10), [stream]);
    assert.deepEqual(await waiting.next(fence, stream, 2), [event(7, 2), event(9)]);
    assert.deepEqual((await storage.checkpoints.load(fence)).blocked, [stream]);
    assert.equal(await waiting.count(fence.subscription), 3);
  },

  async 'counts and pages the events of one stream'({ storage }) {
    const fence = await acquireShard(storage);
    const { waiting } = storage;
    const other = `${stream}-2`;
    const streams = [stream, other].map((each) => ({
      stream: each,
      due: 5,
      events: [event(7, 1), event(8), event(9), event(300)],
    }));
    await waiting.park(fence, streams);
    assert.deepEqual(await waiting.next(fence, stream, 2, at(7)), [event(8), event(9)]);
    assert.deepEqual(await waiting.next(fence, stream, 9, at(9)), [event(300)]);
    assert.deepEqual(await waiting.next(fence, other, 9, at(300)), []);
    assert.equal(await waiting.countOf(fence, stream), 4);
    assert.equal(await waiting.countOf(fence, `${stream}-3`), 0);
    const shard = await acquireShard(storage, fence.subscription, 1);
    assert.equal(await waiting.countOf(shard, stream), 0);
  },

  async 'parking an event again updates its attempts only if it is the first'({ storage }) {
    const fence = await acquireShard(storage);
    const { waiting } = storage;
    await waiting.park(fence, [{ stream, due: 5, events: [event(7, 1), event(8)] }]);
    await waiting.park(fence, [{ stream, due: 'queued', events: [event(8, 4)] }]);
    await waiting.park(fence, [{ stream, due: 99, events: [event(7, 2)] }]);
    assert.deepEqual(await waiting.next(fence, stream, 9), [event(7, 2), event(8)]);
    assert.deepEqual(await waiting.due(fence, 98, 9), []);
    assert.deepEqual(await waiting.due(fence, 99, 9), [stream]);
  },

  async 'draining completes events, and the last one unblocks its aggregate'({ storage }) {
    const fence = await acquireShard(storage);
    const { waiting } = storage;
    await waiting.park(fence, [{ stream, due: 0, events: [event(7), event(8)] }]);
    const drain = (position: number) =>
      storage.settle(fence, {
        kind: 'drained',
        stream,
        position: at(position),
        eventId: `e${position}`,
        atMs: 1,
      });
    assert.equal(await drain(7), 'settled');
    assert.equal(await drain(7), 'duplicate');
    assert.equal(await waiting.unblock(fence, stream), false);
    assert.equal(await drain(8), 'settled');
    assert.equal(await waiting.unblock(fence, stream), true);
    const { blocked, done } = await storage.checkpoints.load(fence);
    assert.deepEqual([blocked, done.toSorted()], [[], [at(7), at(8)]]);
  },

  async 'does not park a drained event again'({ storage }) {
    const fence = await acquireShard(storage);
    const { waiting } = storage;
    await waiting.park(fence, [{ stream, due: 0, events: [event(7), event(8)] }]);
    await storage.settle(fence, {
      kind: 'drained',
      stream,
      position: at(7),
      eventId: 'e7',
      atMs: 1,
    });
    await waiting.park(fence, [{ stream, due: 'queued', events: [event(7), event(9)] }]);
    assert.deepEqual(await waiting.next(fence, stream, 9), [event(8), event(9)]);
  },

  async 'parks many events of many aggregates in one call'({ storage }) {
    const fence = await acquireShard(storage);
    const streams = Array.from({ length: 50 }, (_, index) => ({
      stream: `${stream}-${index}`,
      due: index,
      events: Array.from({ length: 20 }, (_unused, each) => event(index * 100 + each)),
    }));
    await storage.waiting.park(fence, streams);
    assert.equal(await storage.waiting.count(fence.subscription), 1_000);
    assert.equal((await storage.waiting.due(fence, 24, 100)).length, 25);
    assert.equal((await storage.waiting.due(fence, 24, 7)).length, 7);
  },

  async 'a former owner drains no event'({ storage }) {
    const late = await acquireShard(storage);
    const { waiting } = storage;
    await waiting.park(late, [{ stream, due: 0, events: [event(7)] }]);
    await takeOverShard(storage, late);
    const drained = { kind: 'drained', stream, position: at(7), eventId: 'e7', atMs: 1 } as const;
    await assertLost(() => storage.settle(late, drained));
    assert.deepEqual(await waiting.next(late, stream, 9), [event(7)]);
  },

  async 'a former owner neither parks nor unblocks events'({ storage }) {
    const late = await acquireShard(storage);
    const fence = await takeOverShard(storage, late);
    const { waiting } = storage;
    await assertLost(() => waiting.park(late, [{ stream, due: 0, events: [event(7)] }]));
    await assertLost(() => waiting.unblock(late, stream));
    assert.equal(await waiting.count(fence.subscription), 0);
  },
};
