// The adapter on fakes of EventStoreDB: each one does what Millrace's own server never does.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { KurrentDBClient } from '@kurrent/kurrentdb-client';
import { openKurrent } from '../../src/engines/kurrentdb/index.ts';
import { openMemory } from '../../src/engines/memory/index.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import { rejectsWith } from '../../src/testing/assertions.ts';
import {
  follow,
  idsOf,
  newEvent,
  newEvents,
  newStream,
  only,
  storedIds,
  turn,
  unique,
} from '../../src/testing/conformance/store/fixture.ts';
import { startSubscription, subscription } from '../../src/subscriptions/index.ts';
import { clientError, fakeServer } from './fake-client.ts';

const timeout = 60_000;

test(
  'fake that skips the first event after a scavenged position: a subscription resumes without a gap',
  { timeout },
  async ({ signal }) => {
    await using server = await fakeServer();
    const { store: backing } = server.backing;
    const [a, b] = [newStream(unique('a')), newStream(unique('b'))];
    const type = 'order.placed.v1';
    await backing.append(a, newEvents(10, { type }));
    const [last] = await backing.readAll({ direction: 'backwards', limit: 1 }).toArray();
    const later = newEvents(200, { type });
    await backing.append(b, later);
    await backing.append(a, [newEvent({ type })]);
    // So many that the reader is far behind.
    for (let round = 0; round < 7; round += 1) {
      await backing.append(newStream(), newEvents(1_000, { type: 'other.happened.v1' }));
    }
    await backing.setStreamMetadata(a, { maxCount: 1 });
    await backing.scavenge();
    const db = await server.open((client) => ({
      subscribeToAll: skippingFirst(client, last?.position),
    }));
    const filter = { types: [type], category: b.slice(0, b.indexOf('-')) };
    await using follower = follow(db.store.subscribe({ after: last?.position, filter, signal }));
    await follower.caughtUp();
    assert.deepEqual(idsOf(follower.events), idsOf(later));
  },
);

test(
  'fake of two nodes, of which the one that is read lags: no event is missed',
  { timeout },
  async ({ signal }) => {
    await using server = await fakeServer();
    const node = laggingNode();
    const db = await server.open(node.methods);
    const { store } = db;
    const stream = newStream(unique('c'));
    const filter = { category: stream.slice(0, stream.indexOf('-')) };
    await using filtered = follow(store.subscribe({ filter, signal, pageSize: 3 }));
    await using all = follow(store.subscribe({ signal, pageSize: 3 }));
    await Promise.all([filtered.caughtUp(), all.caughtUp()]);
    const events = newEvents(40);
    const reading = Promise.all([filtered.count(40), all.count(41)]);
    for (let at = 0; at < events.length; at += 4) {
      // The reading node has the events before this round only; the subscription reports those of this round.
      node.freezeAt(await server.backing.store.head());
      const { position } = await store.append(stream, events.slice(at, at + 4));
      await node.whenRead(position);
      if (at % 8 === 0) node.catchUp();
    }
    node.catchUp();
    await store.append(newStream(), [newEvent()]);
    const [ofCategory, ofAll] = await reading;
    assert.deepEqual(idsOf(ofCategory), idsOf(events));
    assert.deepEqual(idsOf(ofAll.slice(0, 40)), idsOf(events));
  },
);

test(
  'fake whose answer is late: an equal append that finds the event is the duplicate, not the first one',
  { timeout },
  async () => {
    await using server = await fakeServer();
    const stored = Promise.withResolvers<void>();
    const found = Promise.withResolvers<void>();
    const db = await server.open((client) => ({
      appendToStream: async (...args: Parameters<KurrentDBClient['appendToStream']>) => {
        const answer = await client.appendToStream(...args);
        stored.resolve();
        await found.promise;
        return answer;
      },
    }));
    const [stream, event] = [newStream(), newEvent()];
    const first = db.store.append(stream, [event]);
    await stored.promise;
    const second = await db.store.append(stream, [event]);
    found.resolve();
    assert.deepEqual([(await first).isDuplicate, second.isDuplicate], [false, true]);
    assert.deepEqual((await first).position, second.position);
  },
);

test(
  'fake whose answer and search are late: exactly one of three equal appends is not a duplicate',
  { timeout },
  async () => {
    await using server = await fakeServer();
    const [stored, found, answered] = [
      Promise.withResolvers<void>(),
      Promise.withResolvers<void>(),
      Promise.withResolvers<void>(),
    ];
    let [appends, searches] = [0, 0];
    const db = await server.open((client) => ({
      appendToStream: async (...args: Parameters<KurrentDBClient['appendToStream']>) => {
        appends += 1;
        const isFirst = appends === 1;
        const answer = await client.appendToStream(...args);
        stored.resolve();
        if (isFirst) await answered.promise;
        return answer;
      },
      // The first search was before the event, but its answer comes after that of the second search.
      readStream: async function* (...args: Parameters<KurrentDBClient['readStream']>) {
        searches += 1;
        if (searches === 1) await found.promise;
        else yield* client.readStream(...args);
      } as never,
    }));
    const [stream, event] = [newStream(), newEvent()];
    const append = () => db.store.append(stream, [event]);
    const [first, second] = [append(), append()];
    await stored.promise;
    const third = await append();
    found.resolve();
    const results = [third, await second];
    answered.resolve();
    results.push(await first);
    assert.deepEqual([appends, searches], [2, 2]);
    assert.equal(results.filter(({ isDuplicate }) => !isDuplicate).length, 1);
  },
);

test(
  'an append that begins with the event of an earlier append, and was stored, has its own last revision',
  { timeout },
  async () => {
    await using server = await fakeServer();
    const db = await server.open(() => ({}));
    const [stream, events] = [newStream(), newEvents(3)];
    await db.store.append(stream, events.slice(0, 1));
    await db.store.append(stream, events.slice(1));
    const { isDuplicate, revision } = await db.store.append(stream, events, { expected: 'exists' });
    assert.deepEqual([isDuplicate, revision], [true, 2]);
  },
);

test(
  'fake of two nodes: waitFor does not pass before the event is processed',
  { timeout },
  async () => {
    await using server = await fakeServer();
    await using side = openMemory();
    const node = laggingNode();
    const db = await server.open(node.methods);
    const handled: string[] = [];
    const roles = { store: db.store, subscriptions: side.subscriptions };
    await using runner = await startSubscription(
      roles,
      subscription({
        name: 'sub:banking:lagging:v1',
        handler: ({ eventId }) => void handled.push(eventId),
      }),
    );
    await db.store.append(newStream(), [newEvent()]);
    await runner.whenCaughtUp();
    node.freezeAt(await server.backing.store.head());
    const event = newEvent();
    const { position } = await db.store.append(newStream(), [event]);
    let isPassed = false;
    const waiting = (async () => {
      await runner.waitFor(position);
      isPassed = true;
    })();
    for (let turns = 0; turns < 50; turns += 1) await turn();
    assert.equal(isPassed, false);
    node.catchUp();
    await waiting;
    assert.equal(handled.at(-1), event.eventId);
  },
);

test(
  'fake with checkpoints at the start position and at 2^64−1: scans end, and positions are those of events',
  { timeout },
  async ({ signal }) => {
    await using server = await fakeServer();
    for (let round = 0; round < 7; round += 1) {
      await server.backing.store.append(newStream(), newEvents(1_000));
    }
    let subscriptions = 0;
    const db = await server.open((client) => ({
      subscribeToAll(options = {}, readable) {
        subscriptions += 1;
        const { filter, fromPosition } = options;
        const start = typeof fromPosition === 'object' ? fromPosition : { commit: 0n, prepare: 0n };
        const highest = { commit: 2n ** 64n - 1n, prepare: 2n ** 64n - 1n };
        const opened = client.subscribeToAll(options, readable);
        opened.once('confirmation', () => {
          void filter?.checkpointReached?.(opened, start);
          void filter?.checkpointReached?.(opened, highest);
        });
        return opened;
      },
    }));
    const filter = { category: unique('nothing'), types: ['x.y.v1'] };
    await using follower = follow(db.store.subscribe({ filter, signal }));
    const items = await follower.caughtUp();
    const head = await db.store.head();
    assert.ok(items.every(({ position }) => position <= head));
    assert.deepEqual(await db.store.readAll({ filter }).toArray(), []);
    assert.ok(subscriptions <= 1, `${subscriptions} subscriptions`);
  },
);

test(
  'fake that refuses reads of all events: a stored append is acknowledged',
  { timeout },
  async () => {
    await using server = await fakeServer();
    for (const refusal of ['access-denied', 'not-leader']) {
      let isRefusing = false;
      const db = await server.open((client) => ({
        readAll: (...args) => (isRefusing ? refusing(refusal) : (client.readAll(...args) as never)),
        readStream: (...args) =>
          isRefusing ? refusing(refusal) : (client.readStream(...args) as never),
      }));
      isRefusing = true;
      const stream = newStream();
      const { revision, isDuplicate } = await db.store.append(stream, newEvents(2));
      assert.deepEqual({ revision, isDuplicate }, { revision: 1, isDuplicate: false });
      assert.equal((await server.backing.store.readStream(stream).toArray()).length, 2);
    }
  },
);

test(
  'fake that forgets the ids of appends: a repeated append with any is stored once',
  { timeout },
  async () => {
    await using server = await fakeServer();
    let loses = false;
    const db = await server.open((client) => ({
      async appendToStream(stream, events, options) {
        const list = Array.isArray(events) ? events : [events];
        // A restarted server does not know the ids: the same events are new to it.
        const known = await hasAll(
          client,
          stream,
          list.map(({ id }) => id),
        );
        const sent = known ? list.map((each) => ({ ...each, id: randomUUID() })) : list;
        const result = await client.appendToStream(stream, sent, options);
        if (loses) throw clientError('unavailable', 'the reply was lost');
        return result;
      },
    }));
    for (const expected of ['any', 'exists'] as const) {
      const stream = newStream();
      await db.store.append(stream, newEvents(3));
      const events = newEvents(2);
      loses = true;
      for (let attempt = 0; attempt < 2; attempt += 1) {
        const failed = () => db.store.append(stream, events, { expected });
        if (attempt === 0) await rejectsWith(failed, 'STORE_UNAVAILABLE');
      }
      loses = false;
      await db.store.append(stream, newEvents(1));
      // More than the search reads in any case.
      const others = newEvents(1_200);
      await server.backing.store.append(stream, others);
      const again = await db.store.append(stream, events, { expected });
      const all = await server.backing.store.readStream(stream).toArray();
      assert.equal(all.length, 3 + 2 + 1 + others.length);
      assert.deepEqual(
        { revision: again.revision, position: again.position, isDuplicate: again.isDuplicate },
        { revision: 4, position: all[4]?.position, isDuplicate: true },
      );
    }
  },
);

test(
  'fake that does not answer an append while it writes an equal one: all succeed',
  { timeout },
  async () => {
    await using server = await fakeServer();
    const inFlight = new Set<string>();
    let unanswered = 0;
    const db = await server.open((client) => ({
      async appendToStream(stream, events, options) {
        const [first] = Array.isArray(events) ? events : [events];
        const id = first?.id ?? '';
        if (inFlight.has(id)) {
          unanswered += 1;
          // The deadline of a real client ends long after the write.
          while (inFlight.has(id)) await turn();
          throw clientError('deadline-exceeded');
        }
        inFlight.add(id);
        // The first one is written while an equal one waits.
        while (unanswered === 0) await turn();
        const result = await client.appendToStream(stream, events, options);
        inFlight.delete(id);
        return result;
      },
    }));
    const stream = newStream();
    const event = newEvent();
    const results = await Promise.all(
      Array.from({ length: 50 }, () => db.store.append(stream, [event])),
    );
    assert.ok(unanswered > 0);
    assert.equal(results.filter(({ isDuplicate }) => !isDuplicate).length, 1);
    assert.equal(new Set(results.map(({ position }) => position)).size, 1);
    assert.deepEqual(await storedIds(db.store, stream), [event.eventId]);
  },
);

test(
  'fake that restores a deleted stream when its metadata is written: a second deletion has no effect',
  { timeout },
  async () => {
    await using server = await fakeServer();
    const db = await server.open((client) => ({
      async appendToStream(stream, events, options) {
        const isDeleted = stream.startsWith('$$') && (await isSoftDeleted(client, stream));
        const [event] = Array.isArray(events) ? events : [events];
        if (!isDeleted || event === undefined)
          return client.appendToStream(stream, events, options);
        const restored = { ...event, data: { ...(event.data as object), $tb: 3 } };
        return client.appendToStream(stream, restored as never, options);
      },
      async deleteStream(stream, options) {
        const info = await server.backing.store.streamInfo(stream);
        if (info === undefined) throw clientError('wrong-expected-version');
        return client.deleteStream(stream, options);
      },
    }));
    const { store } = db;
    for (const expected of ['any', 2] as const) {
      for (const metadata of [{}, { custom: { owner: 'jane' } }]) {
        const stream = newStream();
        await store.append(stream, newEvents(3));
        await store.setStreamMetadata(stream, metadata);
        await store.deleteStream(stream, { expected });
        await store.deleteStream(stream, { expected });
        assert.deepEqual(await storedIds(store, stream), []);
        assert.equal((await store.streamInfo(stream))?.deleted, 'soft');
      }
    }
    for (const expected of ['any', 'none'] as const) {
      await store.deleteStream(newStream(), { expected });
    }
  },
);

test('fake that accepts metadata of a tombstone: the adapter rejects it', { timeout }, async () => {
  await using server = await fakeServer();
  let written = 0;
  const db = await server.open((client) => ({
    appendToStream(stream, events, options) {
      if (!stream.startsWith('$$')) return client.appendToStream(stream, events, options);
      written += 1;
      return Promise.resolve({ success: true, nextExpectedRevision: 0n });
    },
  }));
  const stream = newStream();
  await db.store.append(stream, newEvents(1));
  await db.store.tombstoneStream(stream);
  await rejectsWith(() => db.store.setStreamMetadata(stream, { maxCount: 1 }), 'STREAM_DELETED');
  assert.equal(written, 0);
});

test(
  'fake that returns no position for a duplicate of a deleted stream: the position is that of the event',
  { timeout },
  async () => {
    await using server = await fakeServer();
    let isWithout = false;
    const db = await server.open((client) => ({
      async appendToStream(...args) {
        const { position, ...result } = await client.appendToStream(...args);
        return isWithout || position === undefined ? result : { ...result, position };
      },
    }));
    const stream = newStream();
    const events = newEvents(2);
    const first = await db.store.append(stream, events, { expected: 'none' });
    await db.store.deleteStream(stream);
    isWithout = true;
    const again = await db.store.append(stream, events, { expected: 'none' });
    assert.deepEqual(again, { ...first, isDuplicate: true });
  },
);

test(
  'fake that is not ready: opening waits, and an append may be retried',
  { timeout },
  async () => {
    await using server = await fakeServer();
    let rejections = 5;
    const notReady = (): Error => clientError('unknown', '2 UNKNOWN: Server Is Not Ready');
    const db = await server.open(
      (client) => ({
        readAll(...args) {
          rejections -= 1;
          return rejections < 0 ? client.readAll(...args) : rejecting(notReady());
        },
        appendToStream: () => Promise.reject(notReady()),
      }),
      { clock: { ...systemClock, sleep: () => Promise.resolve() } },
    );
    assert.ok(rejections < 0);
    const failed = () => db.store.append(newStream(), [newEvent()], { expected: 'none' });
    assert.equal((await rejectsWith(failed, 'STORE_UNAVAILABLE')).retryable, true);
  },
);

test(
  'fake of an old explicit transaction: events that share a position are read once and together',
  { timeout },
  async ({ signal }) => {
    await using server = await fakeServer();
    const stream = newStream();
    const events = newEvents(9);
    await server.backing.store.append(stream, events);
    const [third] = await server.backing.store.readStream(stream, { from: 2 }).toArray();
    const shared = BigInt(`0x${third?.position ?? ''}`);
    const db = await server.open((client) => ({
      // The events from the third to the seventh have the position of the seventh.
      readAll: (options = {}) =>
        transaction(client, options, { from: shared, to: shared + 4n }) as never,
    }));
    await using follower = follow(db.store.subscribe({ signal, pageSize: 2 }));
    assert.deepEqual(idsOf(await follower.count(9)), idsOf(events));
    const pages = await Array.fromAsync(db.store.readAll({ pageSize: 4 }).pages());
    assert.deepEqual(idsOf(pages.flat()), idsOf(events));
  },
);

test(
  'an event whose envelope is no JSON does not end a subscription',
  { timeout },
  async ({ signal }) => {
    await using server = await fakeServer();
    await using db = await openKurrent(server.served.url);
    const streams = ['{not json', '"text"', '[1]', '7', 'null'].map((envelope) => {
      const stream = unique('foreign-');
      return { stream, metadata: { $millrace: envelope } };
    });
    for (const { stream, metadata } of streams) {
      const id = randomUUID();
      const contentType = 'application/json';
      await server.client.appendToStream(stream, {
        id,
        type: 'x',
        contentType,
        data: {},
        metadata,
      });
    }
    const event = newEvent();
    await db.store.append(newStream(), [event]);
    await using follower = follow(db.store.subscribe({ signal }));
    const read = await follower.count(streams.length + 1);
    assert.equal(read.at(-1)?.eventId, event.eventId);
    assert.deepEqual(
      read.slice(0, -1).map(({ stream, headers }) => ({ stream, metadata: headers })),
      streams,
    );
  },
);

test(
  'an event has the same recording time in every kind of read',
  { timeout },
  async ({ signal }) => {
    await using server = await fakeServer();
    await using db = await openKurrent(server.served.url);
    const stream = newStream();
    await db.store.append(stream, [newEvent()]);
    const read = only(await db.store.readStream(stream).toArray());
    await using follower = follow(db.store.subscribe({ signal }));
    const followed = await follower.count(1);
    for await (const { event, ack } of db.store.consume({ group: unique('g'), stream, signal })) {
      await ack();
      assert.deepEqual(
        [event.recordedAt, followed[0]?.recordedAt],
        [read.recordedAt, read.recordedAt],
      );
      break;
    }
  },
);

type ReadAll = KurrentDBClient['readAll'];
type SubscribeOptions = NonNullable<Parameters<KurrentDBClient['subscribeToAll']>[0]>;

function refusing(kind: string): never {
  return rejecting(clientError(kind)) as never;
}

function rejecting(error: Error): AsyncIterableIterator<never> {
  const iterator: AsyncIterableIterator<never> = {
    async next() {
      throw error;
    },
    [Symbol.asyncIterator]: () => iterator,
  };
  return iterator;
}

/** A node that has the events up to a position; notifications and appends use another node. */
function laggingNode() {
  let upTo: bigint | undefined;
  /** The highest notified position, and the highest one at the start of a read that has ended. */
  let notified = 0n;
  let read = 0n;
  async function* visible(reading: AsyncIterable<unknown>): AsyncGenerator {
    const [limit, before] = [upTo, notified];
    for await (const each of reading) {
      const { event } = each as { readonly event?: { readonly position?: { commit: bigint } } };
      if (limit === undefined || (event?.position?.commit ?? 0n) <= limit) yield each;
    }
    if (before > read) read = before;
  }
  return {
    freezeAt(position: string) {
      upTo = BigInt(`0x${position}`);
    },
    catchUp() {
      upTo = undefined;
    },
    /** Resolves when a read began after the notification of this position. */
    async whenRead(position: string): Promise<void> {
      while (read < BigInt(`0x${position}`)) await turn();
    },
    methods: (client: KurrentDBClient) => ({
      readAll: ((options) => visible(client.readAll(options))) as ReadAll,
      readStream: ((stream: string, options: never) =>
        visible(client.readStream(stream, options))) as KurrentDBClient['readStream'],
      subscribeToAll: ((options: SubscribeOptions = {}) => {
        const { filter } = options;
        if (filter === undefined) return client.subscribeToAll(options);
        const checkpointReached: typeof filter.checkpointReached = async (of, position) => {
          if (position.commit > notified) notified = position.commit;
          await filter.checkpointReached?.(of, position);
        };
        return client.subscribeToAll({ ...options, filter: { ...filter, checkpointReached } });
      }) as KurrentDBClient['subscribeToAll'],
    }),
  };
}

/** Drops the first event of a subscription from a position where no event stands. */
function skippingFirst(
  client: KurrentDBClient,
  position: string | undefined,
): KurrentDBClient['subscribeToAll'] {
  const gap = BigInt(`0x${position ?? ''}`);
  return (options: SubscribeOptions = {}) => {
    const opened = client.subscribeToAll(options);
    const { fromPosition } = options;
    if (typeof fromPosition !== 'object' || fromPosition.commit !== gap) return opened;
    const push = opened.push.bind(opened);
    let isSkipped = false;
    opened.push = (item: unknown): boolean => {
      if (isSkipped || item === null) return push(item);
      isSkipped = true;
      return true;
    };
    return opened;
  };
}

async function hasAll(
  client: KurrentDBClient,
  stream: string,
  ids: readonly string[],
): Promise<boolean> {
  try {
    const stored = new Set<string>();
    for await (const { event } of client.readStream(stream)) stored.add(event?.id ?? '');
    return ids.every((id) => stored.has(id));
  } catch {
    return false;
  }
}

async function isSoftDeleted(client: KurrentDBClient, stream: string): Promise<boolean> {
  try {
    const newest = { direction: 'backwards', fromRevision: 'end', maxCount: 1 } as const;
    for await (const { event } of client.readStream(stream, newest)) {
      return Number((event?.data as { readonly $tb?: number } | undefined)?.$tb) > 2 ** 62;
    }
  } catch {
    return false;
  }
  return false;
}

/** Gives the events of a range the commit position of the last one, as a server stores an explicit transaction. */
async function* transaction(
  client: KurrentDBClient,
  options: NonNullable<Parameters<KurrentDBClient['readAll']>[0]>,
  { from, to }: { readonly from: bigint; readonly to: bigint },
): AsyncGenerator<unknown, void, undefined> {
  for await (const each of client.readAll(options)) {
    const { event } = each;
    const prepare = event?.position?.commit ?? 0n;
    const isShared = prepare >= from && prepare <= to;
    yield isShared ? { ...each, event: { ...event, position: { commit: to, prepare } } } : each;
  }
}
