import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { openMemory } from '../../engines/memory/index.ts';
import type { EventStore, FeedItem } from '../../store/event-store.ts';
import { startPosition, toPosition, toSequence, type Position } from '../../store/position.ts';
import { newEvent } from '../../testing/conformance/store/fixture.ts';
import { propertyRuns } from '../../testing/property-runs.ts';
import { createRig, streamOf, until } from '../../testing/support/subscriptions/rig.ts';
import { shardOf } from '../rules/lane-of.ts';
import { startSubscription } from '../subscription-runner.ts';
import { subscription } from '../subscription.ts';
import { createSharedFeed } from './shared-feed.ts';

const pageSize = 10;

/** Counts the reads of the store. */
function counted<Store extends EventStore>(store: Store) {
  const reads = { pages: 0, open: 0 };
  const subscribe: EventStore['subscribe'] = async function* (options) {
    reads.open += 1;
    try {
      for await (const item of store.subscribe(options)) {
        if (item.kind === 'events') reads.pages += 1;
        yield item;
      }
    } finally {
      reads.open -= 1;
    }
  };
  return { store: { ...store, subscribe }, reads };
}

const streams = Array.from({ length: 64 }, (_, index) => streamOf(`s${index}`));

async function append(store: EventStore, count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    await store.append(streams[at % streams.length] ?? '', [newEvent({ payload: { at } })]);
  }
}

test('eight shards of one process read the store about as often as one', async () => {
  const { clock, db } = createRig();
  await append(db.store, 400);
  const { store, reads } = counted(db.store);
  let handled = 0;
  const each = subscription({
    name: 'sub:banking:shared:v1',
    shards: 8,
    handler: () => void (handled += 1),
  });
  await using runner = await startSubscription({ ...db, store }, each, { clock, pageSize });
  await until(clock, () => handled === 400);
  assert.ok(reads.pages <= 40 + 8, `${reads.pages} pages instead of 40`);
  const before = reads.pages;
  await append(db.store, 20);
  await until(clock, () => handled === 420);
  assert.ok(reads.pages - before <= 20, `${reads.pages - before} pages of 20 live events`);
  assert.equal(reads.open, 1);
  await runner.stop();
  assert.equal(reads.open, 0);
});

test('a stuck shard does not delay the others and rejoins them when it has caught up', async () => {
  const { clock, db } = createRig();
  await append(db.store, 600);
  const { store, reads } = counted(db.store);
  const stuck = Promise.withResolvers<void>();
  const handled = Array.from({ length: 8 }, () => 0);
  const each = subscription({
    name: 'sub:banking:stuck:v1',
    shards: 8,
    inFlightMax: 4,
    timeoutMs: 10_000_000,
    async handler({ stream }) {
      const shard = shardOf(stream, 8);
      if (shard === 3) await stuck.promise;
      handled[shard] = (handled[shard] ?? 0) + 1;
    },
  });
  await using runner = await startSubscription({ ...db, store }, each, { clock, pageSize });
  const total = (): number => handled.reduce((sum, count) => sum + count, 0);
  const stored = await db.store.readAll().toArray();
  const ofStuck = stored.filter(({ stream }) => shardOf(stream, 8) === 3).length;
  assert.ok(ofStuck > 8);
  await until(clock, () => total() === 600 - ofStuck);
  assert.equal(handled[3], 0);
  stuck.resolve();
  await until(clock, () => total() === 600);
  await append(db.store, 64);
  await until(clock, () => total() === 664);
  await until(clock, () => reads.open === 1);
  assert.equal(runner.status.shards.length, 8);
});

test('a reader one page ahead joins the others, however large the events are', async () => {
  await using db = openMemory();
  await append(db.store, 400);
  const events = await db.store.readAll().toArray();
  const bytesPerEvent = 50_000;
  let pages = 0;
  const store: Pick<EventStore, 'subscribe'> = {
    async *subscribe({ after = startPosition } = {}) {
      const from = toSequence(after as Position) / bytesPerEvent;
      for (let at = from; at < events.length; at += pageSize) {
        const page = events.slice(at, at + pageSize);
        const position = toPosition((at + page.length) * bytesPerEvent);
        pages += 1;
        yield { kind: 'events', events: page, bytes: 0, position };
      }
      yield { kind: 'caughtUp', position: toPosition(events.length * bytesPerEvent) };
    },
  };
  const feed = createSharedFeed({ store, filter: undefined, shards: 2, pageSize, pagesMax: 4 });
  const read = async (shard: number): Promise<void> => {
    const after = toPosition(shard * pageSize * bytesPerEvent);
    const { signal } = new AbortController();
    for await (const item of feed.read({ shard, after, signal })) {
      if (item.kind === 'caughtUp') return;
    }
  };
  await Promise.all([read(0), read(1)]);
  assert.ok(pages < 50, `${pages} pages instead of 40`);
});

test('for any pace and start positions, each reader receives its shard once and in order', async () => {
  const plan = fc.record({
    events: fc.integer({ min: 0, max: 120 }),
    late: fc.integer({ min: 0, max: 40 }),
    pagesMax: fc.integer({ min: 1, max: 4 }),
    readers: fc.array(
      fc.record({ after: fc.nat({ max: 60 }), pauses: fc.array(fc.nat({ max: 12 })) }),
      { minLength: 1, maxLength: 4 },
    ),
  });
  await fc.assert(
    fc.asyncProperty(plan, async ({ events, late, pagesMax, readers }) => {
      await using db = openMemory();
      await append(db.store, events);
      const { store, reads } = counted(db.store);
      const feed = createSharedFeed({
        store,
        filter: undefined,
        shards: readers.length,
        pageSize: 5,
        pagesMax,
      });
      const ending = new AbortController();
      const all = events + late;
      const got = readers.map((): string[] => []);
      const positions = readers.map(({ after }) => toPosition(after));
      const done = readers.map(async ({ after, pauses }, shard) => {
        let turn = 0;
        const options = { shard, after: toPosition(after), signal: ending.signal };
        for await (const item of feed.read(options)) {
          note(item, shard);
          const waits = pauses[turn % Math.max(1, pauses.length)] ?? 0;
          for (let count = 0; count < waits; count += 1) await new Promise(setImmediate);
          turn += 1;
        }
      });
      function note(item: FeedItem, shard: number): void {
        assert.ok(item.position >= (positions[shard] ?? startPosition), 'it went back');
        positions[shard] = item.position;
        if (item.kind === 'events') {
          got[shard]?.push(...item.events.map(({ position }) => position));
        }
        if (positions.every((position) => position >= toPosition(all))) ending.abort();
      }
      await append(db.store, late);
      if (positions.every((position) => position >= toPosition(all))) ending.abort();
      await Promise.all(done);
      const stored = await db.store.readAll().toArray();
      for (const [shard, { after }] of readers.entries()) {
        const expected: Position[] = stored
          .filter(({ stream }) => shardOf(stream, readers.length) === shard)
          .map(({ position }) => position)
          .filter((position) => position > toPosition(after));
        assert.deepEqual(got[shard], expected);
      }
      for (let turn = 0; turn < 10 && reads.open > 0; turn += 1) await new Promise(setImmediate);
      assert.equal(reads.open, 0);
    }),
    { numRuns: propertyRuns(100) },
  );
});

test('a failed read of the store fails every shard, and the next read starts again', async () => {
  const db = openMemory();
  await append(db.store, 20);
  let isBroken = true;
  const store: Pick<EventStore, 'subscribe'> = {
    async *subscribe(options) {
      for await (const item of db.store.subscribe(options)) {
        yield item;
        if (isBroken) throw new Error('broken');
      }
    },
  };
  const feed = createSharedFeed({ store, filter: undefined, shards: 2, pageSize, pagesMax: 4 });
  const { signal } = new AbortController();
  const read = async (shard: number): Promise<void> => {
    for await (const item of feed.read({ shard, after: startPosition, signal })) {
      if (item.kind === 'caughtUp') return;
    }
  };
  await Promise.all([0, 1].map((shard) => assert.rejects(read(shard), /broken/)));
  isBroken = false;
  await Promise.all([read(0), read(1)]);
});
