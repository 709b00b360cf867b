// Concurrent writers: checks have one winner, and no acknowledged event is lost.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import { hasCode } from '../../../foundation/error.ts';
import type { AppendResult } from '../../../store/event-store.ts';
import {
  assertAscending,
  assertDense,
  idsOf,
  needs,
  newEvent,
  newEvents,
  newStream,
  turn,
  unique,
  type StoreCases,
} from './fixture.ts';

export const concurrentAppendCases: StoreCases = {
  'exactly one of twenty writers at one revision wins': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, newEvents(3));
    const { winners, losers } = await race(20, () =>
      store.append(stream, [newEvent()], { expected: 2 }),
    );
    assert.deepEqual(
      winners.map(({ revision }) => revision),
      [3],
    );
    for (const { details } of losers) {
      assert.deepEqual(details, { stream, expected: 2, actual: 3 });
    }
    assert.equal((await store.readStream(stream).toArray()).length, 4);
  },

  'exactly one of twenty writers that create a stream wins': async ({ store }) => {
    const stream = newStream();
    const { winners, losers } = await race(20, () =>
      store.append(stream, newEvents(2), { expected: 'none' }),
    );
    assert.deepEqual(
      winners.map(({ revision }) => revision),
      [1],
    );
    for (const { details } of losers) {
      assert.deepEqual(details, { stream, expected: 'none', actual: 1 });
    }
    assert.equal((await store.readStream(stream).toArray()).length, 2);
  },

  'appends without a check never fail, lose nothing and leave no gaps': async ({ store }) => {
    const stream = newStream();
    const batches = Array.from({ length: 40 }, () => newEvents(3));
    const results = await Promise.all(batches.map((events) => store.append(stream, events)));
    const recorded = await store.readStream(stream).toArray();
    assertDense(recorded);
    assert.equal(recorded.length, 120);
    for (const [index, { revision, position }] of results.entries()) {
      const together = recorded.slice(revision - 2, revision + 1);
      assert.deepEqual(idsOf(together), idsOf(batches[index] ?? []));
      assert.equal(together.at(-1)?.position, position);
    }
  },

  'appends that create a stream without a check never fail': async ({ store }) => {
    const streams = Array.from({ length: 10 }, () => newStream());
    await Promise.all(
      streams.flatMap((stream) =>
        Array.from({ length: 5 }, () => store.append(stream, [newEvent()])),
      ),
    );
    for (const stream of streams) {
      const events = await store.readStream(stream).toArray();
      assert.equal(events.length, 5);
      assertDense(events);
    }
  },

  'writers that read, decide and retry lose no update': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, [newEvent({ payload: { total: 0 } })]);
    const increment = async (): Promise<void> => {
      for (;;) {
        const [latest] = await store
          .readStream(stream, { direction: 'backwards', limit: 1 })
          .toArray();
        assert.ok(latest !== undefined);
        const { total } = latest.payload as { readonly total: number };
        const event = newEvent({ payload: { total: total + 1 } });
        try {
          await store.append(stream, [event], { expected: latest.revision });
          return;
        } catch (error) {
          if (!hasCode(error, 'VERSION_CONFLICT')) throw error;
        }
      }
    };
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        for (let round = 0; round < 5; round += 1) await increment();
      }),
    );
    const events = await store.readStream(stream).toArray();
    assert.deepEqual(
      events.map(({ payload }) => (payload as { readonly total: number }).total),
      Array.from({ length: 41 }, (_, index) => index),
    );
  },

  'positions ascend with the revisions of every stream': async ({ store }) => {
    const category = unique('c');
    const streams = Array.from({ length: 4 }, () => newStream(category));
    const results = await Promise.all(
      Array.from({ length: 80 }, (_, index) =>
        store.append(streams[index % streams.length] ?? '', newEvents(1 + (index % 2))),
      ),
    );
    const all = await store.readAll({ filter: { category } }).toArray();
    assert.equal(all.length, 120);
    assertAscending(all.map(({ position }) => position));
    assertDense(all);
    const known = new Set(all.map(({ position }) => position));
    assert.ok(results.every(({ position }) => known.has(position)));
  },

  'a reader sees complete appends only and never a gap': async ({ store }) => {
    const stream = newStream();
    let writing = true;
    const writers = Promise.all(
      Array.from({ length: 30 }, () => store.append(stream, newEvents(5))),
    ).finally(() => (writing = false));
    do {
      const events = await store.readStream(stream).toArray();
      assertDense(events);
      assert.equal(events.length % 5, 0);
      await turn();
    } while (writing);
    await writers;
    assert.equal((await store.readStream(stream).toArray()).length, 150);
  },

  'a concurrent append and deletion never hide an acknowledged event': async ({ store }) => {
    for (let round = 0; round < 10; round += 1) {
      const stream = newStream();
      const event = newEvent();
      await store.append(stream, [newEvent()]);
      const [appended] = await Promise.allSettled([
        store.append(stream, [event], { expected: 0 }),
        store.deleteStream(stream, { expected: 0 }),
      ]);
      assert.equal(appended.status, 'fulfilled');
      const seen = idsOf(await store.readStream(stream).toArray());
      assert.ok(seen.includes(event.eventId), 'the append was acknowledged and is hidden');
    }
  },

  'appends to the same streams in different order do not block each other': needs(
    'multiStreamAppend',
    async ({ store }) => {
      const [a, b] = [newStream(), newStream()];
      await Promise.all(
        Array.from({ length: 30 }, (_, index) =>
          store.appendMany(
            (index % 2 === 0 ? [a, b] : [b, a]).map((stream) => ({ stream, events: newEvents(2) })),
          ),
        ),
      );
      for (const stream of [a, b]) {
        const events = await store.readStream(stream).toArray();
        assert.equal(events.length, 60);
        assertDense(events);
      }
    },
  ),

  'exactly one of several appends to many streams that share one stream wins': needs(
    'multiStreamAppend',
    async ({ store }) => {
      const shared = newStream();
      const others = Array.from({ length: 10 }, () => newStream());
      const { winners } = await race(10, (index) =>
        store.appendMany([
          { stream: others[index] ?? '', events: [newEvent()], expected: 'none' },
          { stream: shared, events: [newEvent()], expected: 'none' },
        ]),
      );
      assert.equal(winners.length, 1);
      const infos = await Promise.all(others.map((stream) => store.streamInfo(stream)));
      assert.equal(infos.filter((info) => info !== undefined).length, 1);
    },
  ),
};

interface Loser {
  readonly details: Readonly<Record<string, unknown>>;
}

/** Starts all appends concurrently; every append that loses must fail with a conflict. */
async function race<T extends AppendResult | readonly AppendResult[]>(
  writers: number,
  write: (index: number) => Promise<T>,
): Promise<{ readonly winners: readonly T[]; readonly losers: readonly Loser[] }> {
  const outcomes = await Promise.allSettled(
    Array.from({ length: writers }, (_, index) => write(index)),
  );
  const winners: T[] = [];
  const losers: Loser[] = [];
  for (const outcome of outcomes) {
    if (outcome.status === 'fulfilled') winners.push(outcome.value);
    else {
      losers.push(
        await rejectsWith(() => Promise.reject(outcome.reason as Error), 'VERSION_CONFLICT'),
      );
    }
  }
  return { winners, losers };
}
