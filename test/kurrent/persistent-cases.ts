// Persistent subscriptions: the server stores the position of a group and distributes events to its consumers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type {
  PersistentSubscriptionToAllSettings,
  PersistentSubscriptionToStreamSettings,
  ResolvedEvent,
} from '@kurrent/kurrentdb-client';
import { openMemory } from '../../src/engines/memory/index.ts';
import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import { withoutWait, type ClientCases } from './client-cases.ts';
import { confirmed, followed, type Followed } from './follow.ts';
import {
  collect,
  event,
  events,
  idsOf,
  rejectsWith,
  revisionsOf,
  unique,
} from './official-clients.ts';
import { filterOn } from './read-all-cases.ts';

type Delivered = ResolvedEvent & { readonly retryCount: number };
type Settle = (delivered: Delivered) => Promise<void>;

const common = {
  resolveLinkTos: false,
  extraStatistics: false,
  messageTimeout: 30_000,
  maxRetryCount: 10,
  checkPointAfter: 100,
  checkPointLowerBound: 1,
  checkPointUpperBound: 100,
  maxSubscriberCount: 'unbounded',
  liveBufferSize: 500,
  readBatchSize: 20,
  historyBufferSize: 500,
  consumerStrategyName: 'RoundRobin',
} as const;

const toStream = (
  changes: Partial<PersistentSubscriptionToStreamSettings> = {},
): PersistentSubscriptionToStreamSettings => ({ ...common, startFrom: 'start', ...changes });

const toAll = (
  changes: Partial<PersistentSubscriptionToAllSettings> = {},
): PersistentSubscriptionToAllSettings => ({ ...common, startFrom: 'start', ...changes });

export const persistentCases: ClientCases = ({ api, append, kind }) => {
  type Api = typeof api;
  const group = (): string => unique('group');

  /** Acknowledges events by default. */
  const consume = (
    stream: string,
    name: string,
    options: {
      readonly by?: Api;
      readonly settle?: 'none' | Settle;
      readonly bufferSize?: number;
    } = {},
  ): Followed<Delivered> & {
    readonly opened: ReturnType<Api['subscribeToPersistentSubscriptionToStream']>;
  } => {
    const { by = api, settle, bufferSize = 10 } = options;
    const opened =
      stream === '$all'
        ? (by.subscribeToPersistentSubscriptionToAll(name, { bufferSize }) as never)
        : by.subscribeToPersistentSubscriptionToStream(stream, name, { bufferSize });
    const acks: ReturnType<Api['subscribeToPersistentSubscriptionToStream']> = opened;
    const settled: Settle =
      typeof settle === 'function' ? settle : async (delivered) => acks.ack(delivered);
    const following = followed<Delivered>(acks, settle === 'none' ? undefined : settled);
    return Object.assign(following, { opened: acks });
  };

  test('a group that starts at the start gets stored events, then new ones', async () => {
    const [stream, name] = [unique(), group()];
    const sent = events(6);
    await append(stream, sent.slice(0, 3));
    await api.createPersistentSubscriptionToStream(stream, name, toStream());
    await using consumer = consume(stream, name);
    await consumer.count(3);
    await append(stream, sent.slice(3));
    assert.deepEqual(idsOf(await consumer.count(6)), idsOf(sent));
  });

  test('a group that starts at the end gets only new events', async () => {
    const [stream, name] = [unique(), group()];
    await append(stream, events(3));
    await api.createPersistentSubscriptionToStream(stream, name, toStream({ startFrom: 'end' }));
    await using consumer = consume(stream, name);
    await append(stream, event());
    assert.deepEqual(revisionsOf(await consumer.count(1)), [3]);
  });

  test('a group that starts at a revision includes that event', async () => {
    const [stream, name] = [unique(), group()];
    await append(stream, events(5));
    await api.createPersistentSubscriptionToStream(stream, name, toStream({ startFrom: 3n }));
    await using consumer = consume(stream, name);
    assert.deepEqual(revisionsOf(await consumer.count(2)), [3, 4]);
  });

  test('an existing group cannot be created again', async () => {
    const [stream, name] = [unique(), group()];
    await api.createPersistentSubscriptionToStream(stream, name, toStream());
    const error = await rejectsWith('persistent-subscription-exists', () =>
      api.createPersistentSubscriptionToStream(stream, name, toStream()),
    );
    assert.deepEqual([error.streamName, error.groupName], [stream, name]);
  });

  test('an unknown group cannot be subscribed to, updated or deleted', async () => {
    const [stream, name] = [unique(), group()];
    const type = 'persistent-subscription-does-not-exist';
    await using consumer = consume(stream, name);
    assert.equal(((await consumer.failed()) as { readonly type?: string }).type, type);
    await rejectsWith(type, () =>
      api.updatePersistentSubscriptionToStream(stream, name, toStream()),
    );
    await rejectsWith(type, () => api.deletePersistentSubscriptionToStream(stream, name));
    await rejectsWith(type, () => api.getPersistentSubscriptionToStreamInfo(stream, name));
  });

  test('deleting a group disconnects its consumers', async () => {
    const [stream, name] = [unique(), group()];
    await api.createPersistentSubscriptionToStream(stream, name, toStream());
    const consumer = consume(stream, name);
    await confirmed(consumer.opened);
    const ended = new Promise<void>((resolve) => {
      consumer.opened.on('error', () => resolve());
      consumer.opened.on('end', () => resolve());
    });
    await api.deletePersistentSubscriptionToStream(stream, name);
    await ended;
  });

  test('messages in flight do not exceed the buffer of the consumer', async () => {
    const [stream, name] = [unique(), group()];
    await append(stream, events(20));
    await api.createPersistentSubscriptionToStream(stream, name, toStream());
    await using consumer = consume(stream, name, { settle: 'none', bufferSize: 4 });
    await consumer.count(4);
    const { stats } = await api.getPersistentSubscriptionToStreamInfo(stream, name);
    assert.equal(stats.totalInFlightMessages, 4);
    assert.equal(consumer.seen.length, 4);
    await consumer.opened.ack(...consumer.seen.slice(0, 2));
    await consumer.count(6);
  });

  test('a nack with retry delivers the event again with its retry count', async () => {
    const [stream, name] = [unique(), group()];
    await append(stream, events(2));
    await api.createPersistentSubscriptionToStream(stream, name, toStream());
    const settle: Settle = async (delivered) =>
      delivered.event?.revision === 0n && delivered.retryCount < 2
        ? consumer.opened.nack('retry', 'once more', delivered)
        : consumer.opened.ack(delivered);
    await using consumer = consume(stream, name, { settle });
    const seen = await consumer.count(4);
    const first = seen.filter((each) => each.event?.revision === 0n);
    assert.deepEqual(
      first.map(({ retryCount }) => retryCount),
      [0, 1, 2],
    );
  });

  test('a nack with skip does not deliver the event again', async () => {
    const [stream, name] = [unique(), group()];
    const sent = events(3);
    await append(stream, sent);
    await api.createPersistentSubscriptionToStream(stream, name, toStream());
    const settle: Settle = async (delivered) => consumer.opened.nack('skip', 'no use', delivered);
    await using consumer = consume(stream, name, { settle });
    await consumer.count(3);
    await append(stream, event());
    assert.equal((await consumer.count(4)).length, 4);
    assert.deepEqual(idsOf(consumer.seen).slice(0, 3), idsOf(sent));
  });

  test('a nack with park parks and counts the event, which is replayed on request', async () => {
    const [stream, name] = [unique(), group()];
    const sent = events(3);
    await append(stream, sent);
    await api.createPersistentSubscriptionToStream(stream, name, toStream());
    let isParking = true;
    const settle: Settle = async (delivered) =>
      isParking ? consumer.opened.nack('park', 'later', delivered) : consumer.opened.ack(delivered);
    await using consumer = consume(stream, name, { settle });
    await consumer.count(3);
    await eventually(async () => {
      const { stats } = await api.getPersistentSubscriptionToStreamInfo(stream, name);
      return Number(stats.parkedMessageCount) === 3;
    });
    const parked = await collect(
      api.readStream(`$persistentsubscription-${stream}::${name}-parked`, { resolveLinkTos: true }),
    );
    assert.deepEqual(idsOf(parked), idsOf(sent));
    isParking = false;
    await api.replayParkedMessagesToStream(stream, name);
    const seen = await consumer.count(6);
    assert.deepEqual(idsOf(seen.slice(3)).toSorted(), idsOf(sent).toSorted());
    // A replayed event has the link of the parked stream, and is acknowledged by it.
    assert.ok(seen.slice(3).every(({ link }) => link?.streamId.endsWith(`::${name}-parked`)));
    await eventually(async () => {
      const { stats } = await api.getPersistentSubscriptionToStreamInfo(stream, name);
      return stats.totalInFlightMessages === 0;
    });
  });

  test('replaying stops at the requested count', async () => {
    const [stream, name] = [unique(), group()];
    await append(stream, events(4));
    await api.createPersistentSubscriptionToStream(stream, name, toStream());
    let isParking = true;
    const settle: Settle = async (delivered) =>
      isParking ? consumer.opened.nack('park', '', delivered) : consumer.opened.ack(delivered);
    await using consumer = consume(stream, name, { settle });
    await consumer.count(4);
    await eventually(async () => {
      const { stats } = await api.getPersistentSubscriptionToStreamInfo(stream, name);
      return Number(stats.parkedMessageCount) === 4;
    });
    isParking = false;
    await api.replayParkedMessagesToStream(stream, name, { stopAt: 2 });
    await consumer.count(6);
    await append(stream, event());
    await consumer.count(7);
    assert.equal(consumer.seen.length, 7);
  });

  test('an event is parked after the last retry', async () => {
    const [stream, name] = [unique(), group()];
    await append(stream, events(1));
    await api.createPersistentSubscriptionToStream(stream, name, toStream({ maxRetryCount: 2 }));
    const settle: Settle = async (delivered) => consumer.opened.nack('retry', '', delivered);
    await using consumer = consume(stream, name, { settle });
    await consumer.count(3);
    await eventually(async () => {
      const { stats } = await api.getPersistentSubscriptionToStreamInfo(stream, name);
      return Number(stats.parkedMessageCount) === 1;
    });
    assert.equal(consumer.seen.length, 3);
  });

  test('an event that is not acknowledged in time is delivered again', async () => {
    const [stream, name] = [unique(), group()];
    await append(stream, events(1));
    await api.createPersistentSubscriptionToStream(stream, name, toStream({ messageTimeout: 100 }));
    await using consumer = consume(stream, name, { settle: 'none' });
    const seen = await consumer.count(2);
    assert.equal(seen[1]?.retryCount, 1);
    assert.equal(seen[0]?.event?.id, seen[1]?.event?.id);
  });

  test('each lost consumer raises the retry count', async () => {
    const [stream, name] = [unique(), group()];
    await append(stream, event());
    await api.createPersistentSubscriptionToStream(stream, name, toStream({ maxRetryCount: 1 }));
    const counts: unknown[] = [];
    for (let round = 0; round < 4; round += 1) {
      await using consumer = consume(stream, name, { settle: 'none' });
      const [delivered] = await consumer.count(1);
      counts.push(delivered?.retryCount);
    }
    assert.deepEqual(counts, [0, 1, 2, 3]);
  });

  test('a nack with stop lets the consumer get the next event', async () => {
    const [stream, name] = [unique(), group()];
    const sent = events(3);
    await append(stream, sent);
    await api.createPersistentSubscriptionToStream(stream, name, toStream());
    const settle: Settle = async (delivered) => consumer.opened.nack('stop', '', delivered);
    await using consumer = consume(stream, name, { settle, bufferSize: 1 });
    assert.deepEqual(idsOf(await consumer.count(3)), idsOf(sent));
  });

  test('a group reads with a batch size of 0', async () => {
    const [stream, name] = [unique(), group()];
    await append(stream, events(3));
    await api.createPersistentSubscriptionToStream(stream, name, toStream({ readBatchSize: 0 }));
    await using consumer = consume(stream, name);
    assert.deepEqual(revisionsOf(await consumer.count(3)), [0, 1, 2]);
  });

  test('a group of $all cannot start after the last event', async () => {
    const startFrom = { commit: 1_000_000_000n, prepare: 1_000_000_000n };
    await assert.rejects(
      api.createPersistentSubscriptionToAll(group(), toAll({ startFrom })),
      /after the last event/,
    );
  });

  test('the last known event is absent until the group delivers one', async () => {
    const [stream, name] = [unique(), group()];
    await append(stream, events(2));
    await api.createPersistentSubscriptionToStream(stream, name, toStream());
    const lastKnown = async (): Promise<unknown> => {
      const { stats } = await api.getPersistentSubscriptionToStreamInfo(stream, name);
      return stats.lastKnownEventRevision;
    };
    assert.equal(await lastKnown(), undefined);
    await using consumer = consume(stream, name);
    await consumer.count(2);
    assert.equal(await lastKnown(), 1n);
  });

  test('a tombstone of the stream does not end its consumers, who get what the group holds', async () => {
    const [stream, name] = [unique(), group()];
    const sent = events(5);
    await append(stream, sent);
    await api.createPersistentSubscriptionToStream(stream, name, toStream());
    await using consumer = consume(stream, name, { settle: 'none', bufferSize: 2 });
    await consumer.count(2);
    await api.tombstoneStream(stream);
    for (let count = 2; count < 5; count += 1) {
      await consumer.opened.ack(...consumer.seen.slice(count - 2, count - 1));
      await consumer.count(count + 1);
    }
    assert.deepEqual(idsOf(consumer.seen), idsOf(sent));
  });

  test('a consumer of a deleted stream gets what the group holds, and the events that restore it', async () => {
    const [stream, name] = [unique(), group()];
    const sent = events(7);
    await append(stream, sent.slice(0, 5));
    await api.createPersistentSubscriptionToStream(stream, name, toStream());
    await using consumer = consume(stream, name, { settle: 'none', bufferSize: 2 });
    await consumer.count(2);
    await api.deleteStream(stream);
    await append(stream, sent.slice(5));
    for (let count = 2; count < 7; count += 1) {
      await consumer.opened.ack(...consumer.seen.slice(count - 2, count - 1));
      await consumer.count(count + 1);
    }
    assert.deepEqual(idsOf(consumer.seen), idsOf(sent));
    assert.deepEqual(revisionsOf(consumer.seen), [0, 1, 2, 3, 4, 5, 6]);
  });

  test('unacknowledged events of a lost consumer go to another one', async () => {
    const [stream, name] = [unique(), group()];
    const sent = events(5);
    await append(stream, sent);
    await api.createPersistentSubscriptionToStream(stream, name, toStream());
    const lost = consume(stream, name, { settle: 'none' });
    await lost.count(5);
    await lost[Symbol.asyncDispose]();
    await using heir = consume(stream, name);
    assert.deepEqual(idsOf(await heir.count(5)).toSorted(), idsOf(sent).toSorted());
  });

  test('consumers take turns with RoundRobin', async () => {
    const [stream, name] = [unique(), group()];
    await api.createPersistentSubscriptionToStream(stream, name, toStream());
    await using a = consume(stream, name);
    await using b = consume(stream, name);
    await Promise.all([confirmed(a.opened), confirmed(b.opened)]);
    for (const each of events(20)) await append(stream, each);
    await eventually(async () => a.seen.length + b.seen.length === 20);
    assert.ok(a.seen.length >= 5 && b.seen.length >= 5, `${a.seen.length} and ${b.seen.length}`);
    assert.equal(new Set(idsOf([...a.seen, ...b.seen])).size, 20);
  });

  test('one consumer gets everything while it has room with DispatchToSingle', async () => {
    const [stream, name] = [unique(), group()];
    const consumerStrategyName = 'DispatchToSingle';
    await api.createPersistentSubscriptionToStream(
      stream,
      name,
      toStream({ consumerStrategyName }),
    );
    await using a = consume(stream, name);
    await confirmed(a.opened);
    await using b = consume(stream, name);
    await confirmed(b.opened);
    for (const each of events(10)) await append(stream, each);
    await eventually(async () => a.seen.length + b.seen.length === 10);
    assert.deepEqual(
      [a.seen.length, b.seen.length].toSorted((x, y) => x - y),
      [0, 10],
    );
  });

  test('the events of a stream stay with one consumer with Pinned', async () => {
    const [category, name] = [unique('c'), group()];
    const settings = toStream({ consumerStrategyName: 'Pinned', resolveLinkTos: true });
    await api.createPersistentSubscriptionToStream(`$ce-${category}`, name, settings);
    await using a = consume(`$ce-${category}`, name);
    await using b = consume(`$ce-${category}`, name);
    await Promise.all([confirmed(a.opened), confirmed(b.opened)]);
    for (let index = 0; index < 40; index += 1) await append(`${category}-${index % 8}`, event());
    await eventually(async () => a.seen.length + b.seen.length === 40);
    const streamsOf = (seen: readonly Delivered[]) =>
      new Set(seen.map((each) => each.event?.streamId));
    assert.deepEqual([...streamsOf(a.seen).intersection(streamsOf(b.seen))], []);
  });

  const pinned = kind.hasPinnedByCorrelation
    ? {}
    : { skip: 'this client does not know the strategy PinnedByCorrelation' };
  test(
    'PinnedByCorrelation: events of one correlation stay with one consumer',
    pinned,
    async () => {
      const [stream, name] = [unique(), group()];
      const consumerStrategyName = 'PinnedByCorrelation';
      await api.createPersistentSubscriptionToStream(
        stream,
        name,
        toStream({ consumerStrategyName }),
      );
      await using a = consume(stream, name);
      await using b = consume(stream, name);
      await Promise.all([confirmed(a.opened), confirmed(b.opened)]);
      for (let index = 0; index < 40; index += 1) {
        await append(stream, event({ metadata: { $correlationId: `c-${index % 8}` } }));
      }
      await eventually(async () => a.seen.length + b.seen.length === 40);
      const flowsOf = (seen: readonly Delivered[]) =>
        new Set(
          seen.map(
            (each) =>
              (each.event?.metadata as { readonly $correlationId?: string } | undefined)
                ?.$correlationId,
          ),
        );
      assert.deepEqual([...flowsOf(a.seen).intersection(flowsOf(b.seen))], []);
    },
  );

  test('a group rejects consumers beyond the maximum', async () => {
    const [stream, name] = [unique(), group()];
    await api.createPersistentSubscriptionToStream(
      stream,
      name,
      toStream({ maxSubscriberCount: 1 }),
    );
    await using first = consume(stream, name);
    await confirmed(first.opened);
    await using second = consume(stream, name);
    const error = (await second.failed()) as { readonly type?: string };
    assert.equal(error.type, 'maximum-subscribers-reached');
  });

  test('settings are returned unchanged, and can be updated', async () => {
    const [stream, name] = [unique(), group()];
    await api.createPersistentSubscriptionToStream(stream, name, toStream({ maxRetryCount: 3 }));
    const before = await api.getPersistentSubscriptionToStreamInfo(stream, name);
    assert.deepEqual([before.groupName, before.eventSource], [name, stream]);
    assert.equal(before.settings.maxRetryCount, 3);
    const changed = toStream({ maxRetryCount: 7, consumerStrategyName: 'DispatchToSingle' });
    await api.updatePersistentSubscriptionToStream(stream, name, changed);
    const { settings } = await api.getPersistentSubscriptionToStreamInfo(stream, name);
    assert.equal(settings.maxRetryCount, 7);
    assert.equal(settings.consumerStrategyName, 'DispatchToSingle');
  });

  test('groups are listed by stream and in total', async () => {
    const stream = unique();
    const names = [group(), group()];
    for (const name of names) {
      await api.createPersistentSubscriptionToStream(stream, name, toStream());
    }
    const ofStream = await api.listPersistentSubscriptionsToStream(stream);
    assert.deepEqual(ofStream.map(({ groupName }) => groupName).toSorted(), names.toSorted());
    const all = await api.listAllPersistentSubscriptions();
    assert.ok(names.every((name) => all.some(({ groupName }) => groupName === name)));
  });

  test('a category is consumed with resolved links, and acknowledged by link', async () => {
    const [category, name] = [unique('c'), group()];
    const sent = events(4);
    await append(`${category}-1`, sent.slice(0, 2));
    const settings = toStream({ resolveLinkTos: true });
    await api.createPersistentSubscriptionToStream(`$ce-${category}`, name, settings);
    await using consumer = consume(`$ce-${category}`, name);
    await consumer.count(2);
    await append(`${category}-2`, sent.slice(2));
    assert.deepEqual(idsOf(await consumer.count(4)), idsOf(sent));
  });

  test('a group on $all gets every event, including stored ones', async () => {
    const name = group();
    const [stream, sent] = [unique(), events(3)];
    await append(stream, sent);
    await api.createPersistentSubscriptionToAll(name, toAll());
    await using consumer = consume('$all', name, { bufferSize: 100 });
    const mine = () => consumer.seen.filter((each) => each.event?.streamId === stream);
    await eventually(async () => mine().length === 3);
    assert.deepEqual(idsOf(mine()), idsOf(sent));
    await api.deletePersistentSubscriptionToAll(name);
  });

  test('a filtered group on $all gets only matching events', async () => {
    const [name, word] = [group(), unique('w')];
    const sent = events(4);
    await append(`${word}-1`, sent.slice(0, 2));
    const filter = filterOn('streamName', { prefixes: [word] });
    await api.createPersistentSubscriptionToAll(name, toAll(), { filter });
    await using consumer = consume('$all', name);
    await append(unique(), event());
    await append(`${word}-2`, sent.slice(2));
    assert.deepEqual(idsOf(await consumer.count(4)), idsOf(sent));
    const info = await api.getPersistentSubscriptionToAllInfo(name);
    assert.equal(info.groupName, name);
    await api.deletePersistentSubscriptionToAll(name);
  });

  test('groups on $all are listed separately', async () => {
    const name = group();
    await api.createPersistentSubscriptionToAll(name, toAll({ startFrom: 'end' }));
    const listed = await api.listPersistentSubscriptionsToAll();
    assert.ok(listed.some(({ groupName }) => groupName === name));
    await api.deletePersistentSubscriptionToAll(name);
  });

  test('the subsystem can be restarted', async () => {
    const [stream, name] = [unique(), group()];
    await api.createPersistentSubscriptionToStream(stream, name, toStream());
    await api.restartPersistentSubscriptionSubsystem();
    await append(stream, event());
    await using consumer = consume(stream, name);
    await consumer.count(1);
  });

  test('a group resumes at its checkpoint after a restart of the server', async () => {
    await using db = openMemory(kurrentStoreOptions);
    const { leases } = db.subscriptions;
    const [stream, name] = [unique(), group()];
    const sent = events(6);
    {
      await using server = await startKurrentServer(db.store, { leases, port: 0 });
      await using client = kind.connect(withoutWait(server.url));
      await client.append(stream, sent.slice(0, 4));
      await client.api.createPersistentSubscriptionToStream(stream, name, toStream());
      const consumer = consume(stream, name, { by: client.api });
      await consumer.count(4);
      await eventually(async () => {
        const { stats } = await client.api.getPersistentSubscriptionToStreamInfo(stream, name);
        return stats.lastCheckpointedEventRevision === 3n;
      });
      await consumer[Symbol.asyncDispose]();
    }
    await using server = await startKurrentServer(db.store, { leases, port: 0 });
    await using client = kind.connect(withoutWait(server.url));
    await client.append(stream, sent.slice(4));
    await using consumer = consume(stream, name, { by: client.api });
    assert.deepEqual(idsOf(await consumer.count(2)), idsOf(sent.slice(4)));
  });
};

/** Waits for asynchronous work of the server that has no signal. */
async function eventually(holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 120_000;
  while (!(await holds())) {
    assert.ok(performance.now() < deadline, 'it did not come to hold');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
