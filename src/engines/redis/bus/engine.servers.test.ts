import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { eventually, rejectsWith } from '../../../testing/assertions.ts';
import type { Bus } from '../../../bus/bus.ts';
import { sweepBus } from '../../../bus/bus-sweeper.ts';
import {
  fetchOne,
  fetchSome,
  longLeaseMs,
  numbersOf,
  publishNumbers,
  upTo,
} from '../../../testing/conformance/bus/fixture.ts';
import { hasCode } from '../../../foundation/error.ts';
import { startRedis } from '../../../testing/servers/redis-server.ts';
import { sharedRedis, sharedRedisCluster } from '../../../testing/servers/shared-servers.ts';
import { connectRedis, type RedisConnection } from '../connection/connection.ts';
import { mastersOf } from '../connection/risks.ts';
import { openRedis } from '../open-redis.ts';

const { url } = await sharedRedis();
const { nodes } = await sharedRedisCluster();
const clusterUrl = `redis+cluster://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;

const monitors = { group: 'monitors', subject: 'gbe.tasks.*.terminal', leaseMs: longLeaseMs };

interface Opened extends AsyncDisposable {
  readonly bus: Bus;
  readonly redis: RedisConnection;
  readonly prefix: string;
}

async function open(target: string, prefix = `${randomUUID()}:`): Promise<Opened> {
  const opened = new AsyncDisposableStack();
  const { bus } = opened.use(await openRedis(target, { keyPrefix: prefix }));
  const redis = opened.use(await connectRedis(target));
  return { bus, redis, prefix, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

for (const [name, target] of [
  ['Redis', url],
  ['a cluster', clusterUrl],
] as const) {
  test(`in ${name} a subject is a stream, and a group is a consumer group of the same name`, async () => {
    await using opened = await open(target);
    const { bus, redis, prefix } = opened;
    await publishNumbers(bus, 3);
    const group = await bus.group({ group: 'workers', subject: 'gbe.tasks.email-send.queue' });
    const [first] = await fetchSome(group, 2);
    await first?.ack();
    const key = `${prefix}gbe:tasks:email-send:queue`;
    assert.equal(await redis.ask((client) => client.xlen(key)), 3);
    const [info] = (await redis.ask((client) => client.xinfo('GROUPS', key))) as unknown[][];
    const fields = new Map(upTo(6).map((at) => [info?.[at * 2], info?.[at * 2 + 1]]));
    assert.deepEqual(
      [fields.get('name'), fields.get('pending'), fields.get('lag')],
      ['workers', 1, 1],
    );
  });

  test(`in ${name} rebuilds a lost registry from the streams`, async () => {
    await using opened = await open(target);
    const { bus, redis, prefix } = opened;
    for (const type of ['a', 'b', 'c']) await publishNumbers(bus, 1, `gbe.tasks.${type}.terminal`);
    await redis.ask((client) => client.del(`${prefix}millrace.bus:{bus}:streams`));
    // A registration before the loss is noticed must not hide it.
    await publishNumbers(bus, 1, 'gbe.tasks.d.terminal');
    const group = await bus.group(monitors);
    const subjects = (await fetchSome(group, 4)).map(({ subject }) => subject).toSorted();
    assert.deepEqual(
      subjects,
      ['a', 'b', 'c', 'd'].map((type) => `gbe.tasks.${type}.terminal`),
    );
    // A running member also finds subjects that were registered after the loss.
    await redis.ask((client) => client.del(`${prefix}millrace.bus:{bus}:streams`));
    await using other = await openRedis(target, { keyPrefix: prefix });
    const waiting = fetchOne(group);
    await publishNumbers(other.bus, 1, 'gbe.tasks.e.terminal');
    assert.equal((await waiting).subject, 'gbe.tasks.e.terminal');
    assert.equal((await bus.streams('gbe.tasks.>')).length, 5);
  });

  test(`in ${name} patterns find streams that only other programs write to`, async () => {
    await using opened = await open(target);
    const { bus, redis, prefix } = opened;
    const group = await bus.group(monitors);
    await publishNumbers(bus, 1, 'gbe.tasks.own.terminal');
    assert.deepEqual(numbersOf(await fetchSome(group, 1)), [0]);
    // As a program in another language does, by schemas/transport-envelope.json.
    const add = (key: string, id: string): Promise<unknown> => {
      const subject = key.replaceAll(':', '.');
      const time = '2026-02-14T10:00:00.000Z';
      const data = JSON.stringify({ version: 1, id, subject, time, payload: { name: id } });
      return redis.ask((client) => client.xadd(`${prefix}${key}`, '*', 'data', data));
    };
    await add('gbe:tasks:python:terminal', 'first');
    await add('gbe:tasks:python:terminal', 'second');
    await redis.ask((client) => client.xadd(`${prefix}bull:mails:events`, '*', 'event', 'added'));
    assert.deepEqual(await group.fetch({ waitMs: 0 }), []);
    // The bus sweeper of any process lists the streams each minute.
    await sweepBus(bus);
    const found = (await fetchSome(group, 2)).map(({ subject, payload }) => [subject, payload]);
    assert.deepEqual(found, [
      ['gbe.tasks.python.terminal', { name: 'first' }],
      ['gbe.tasks.python.terminal', { name: 'second' }],
    ]);
    assert.deepEqual(
      (await bus.streams('>')).map(({ subject }) => subject),
      ['gbe.tasks.own.terminal', 'gbe.tasks.python.terminal'],
    );
    // One scan a minute.
    await add('gbe:tasks:rust:terminal', 'later');
    assert.equal((await bus.streams('>')).length, 2);
  });

  test(`in ${name} sends scripts again after a server has lost them`, async () => {
    await using opened = await open(target);
    const { bus, redis } = opened;
    const group = await bus.group(monitors);
    await publishNumbers(bus, 2, 'gbe.tasks.a.terminal');
    await Promise.all(mastersOf(redis.client).map((node) => node.script('FLUSH')));
    await publishNumbers(bus, 2, 'gbe.tasks.b.terminal');
    await Promise.all(mastersOf(redis.client).map((node) => node.script('FLUSH')));
    const deliveries = await fetchSome(group, 4);
    await Promise.all(mastersOf(redis.client).map((node) => node.script('FLUSH')));
    assert.deepEqual(
      await Promise.all(deliveries.map((each) => each.ack())),
      Array(4).fill('settled'),
    );
  });

  test(`in ${name} dead-letters entries that other programs wrote in any format`, async () => {
    await using opened = await open(target);
    const { bus, redis, prefix } = opened;
    const key = `${prefix}gbe:tasks:x:terminal`;
    await redis.ask((client) => client.xadd(key, '1-1', 'field', 'value', 'other', 'ä'));
    await redis.ask((client) => client.xadd(key, '5', 'meta', 'data'));
    await publishNumbers(bus, 1, 'gbe.tasks.x.terminal');
    const group = await bus.group({ ...monitors, subject: 'gbe.tasks.x.terminal' });
    assert.deepEqual(numbersOf(await fetchSome(group, 1)), [0]);
    const letters = await bus.deadLetters(monitors.group);
    assert.deepEqual(
      letters.map(({ data }) => Buffer.from(data).toString()),
      ['["field","value","other","ä"]', '["meta","data"]'],
    );
  });

  test(`in ${name} a key of another type blocks only the subject of that key`, async () => {
    await using opened = await open(target);
    const { bus, redis, prefix } = opened;
    await redis.ask((client) => client.set(`${prefix}gbe:tasks:x:terminal`, 'text'));
    await assert.rejects(
      publishNumbers(bus, 1, 'gbe.tasks.x.terminal'),
      (error) => hasCode(error, 'BUS_UNAVAILABLE') && !error.retryable,
    );
    await publishNumbers(bus, 2, 'gbe.tasks.y.terminal');
    const group = await bus.group(monitors);
    assert.deepEqual(numbersOf(await fetchSome(group, 2)), [0, 1]);
    assert.equal((await Array.fromAsync(bus.read('gbe.>'))).length, 2);
    assert.equal((await bus.streams('gbe.>')).length, 1);
  });

  test(`in ${name} does not redeliver entries that were deleted from a stream`, async () => {
    await using opened = await open(target);
    const { bus, redis, prefix } = opened;
    const subject = 'gbe.tasks.x.terminal';
    const [first] = await publishNumbers(bus, 3, subject);
    const group = await bus.group({ ...monitors, subject });
    const deliveries = await fetchSome(group, 2);
    await redis.ask((client) =>
      client.xdel(`${prefix}gbe:tasks:x:terminal`, first?.sequence ?? ''),
    );
    for (const each of deliveries) await each.nack();
    assert.deepEqual(numbersOf(await fetchSome(group, 2)), [1, 2]);
    const [info] = await bus.groups();
    assert.deepEqual([info?.lag, info?.pending], [0, 2]);
  });

  test(`in ${name} redelivers messages whose leases were lost, and rejects their old leases`, async () => {
    await using opened = await open(target);
    const { bus, redis, prefix } = opened;
    const subject = 'gbe.tasks.x.terminal';
    await publishNumbers(bus, 2, subject);
    const group = await bus.group({ ...monitors, subject });
    const leased = await fetchSome(group, 2);
    const domain = target === url ? 'bus' : `${prefix}gbe:tasks:x:terminal`;
    for (const what of ['leases', 'fences']) {
      const key = `${prefix}millrace.bus:{${domain}}:${what}:${monitors.group}`;
      assert.equal(await redis.ask((client) => client.del(key)), 1);
    }
    const again = await fetchSome(group, 2);
    assert.deepEqual(numbersOf(again), [0, 1]);
    assert.equal(again[0]?.deliveryCount, 2);
    assert.deepEqual(await Promise.all(leased.map((each) => each.ack())), ['stale', 'stale']);
    assert.deepEqual(await Promise.all(again.map((each) => each.ack())), ['settled', 'settled']);
  });

  test(`in ${name} a group that is deleted and created again starts over`, async () => {
    await using opened = await open(target);
    const { bus } = opened;
    await publishNumbers(bus, 3, 'gbe.tasks.x.terminal');
    const group = await bus.group(monitors);
    const [late] = await fetchSome(group, 2);
    assert.equal(await bus.deleteGroup(monitors.group), true);
    const again = await bus.group(monitors);
    assert.deepEqual(numbersOf(await fetchSome(again, 3)), [0, 1, 2]);
    assert.equal(await late?.ack(), 'stale');
    const [info] = await bus.groups();
    assert.equal(info?.pending, 3);
  });

  test(`in ${name} a stream with many messages does not starve the others`, async () => {
    await using opened = await open(target);
    const { bus } = opened;
    await publishNumbers(bus, 500, 'gbe.tasks.a.terminal');
    await publishNumbers(bus, 1, 'gbe.tasks.b.terminal');
    await publishNumbers(bus, 1, 'gbe.tasks.c.terminal');
    const group = await bus.group(monitors);
    const subjects = new Set<string>();
    for (let round = 0; round < 4; round += 1) {
      for (const { subject } of await fetchSome(group, 10)) subjects.add(subject);
    }
    assert.equal(subjects.size, 3);
  });

  test(`in ${name} delivers large messages in several batches`, async () => {
    await using opened = await open(target);
    const { bus } = opened;
    const subject = 'gbe.tasks.x.terminal';
    // The script reads 32 entries at a time, up to 8 MB in total.
    const payload = 'x'.repeat(260_000);
    const count = 34;
    await bus.publishMany(upTo(count).map(() => ({ subject, payload })));
    const group = await bus.group(monitors);
    const first = await group.fetch({ limit: count });
    assert.ok(first.length < count, `${first.length} at once`);
    for (const each of first) await each.nack();
    const again = await fetchSome(group, count);
    assert.equal(new Set(again.map(({ sequence }) => sequence)).size, count);
    assert.equal((await Array.fromAsync(bus.read(subject))).length, count);
  });

  test(`in ${name} deleting a stream also deletes its message ids`, async () => {
    await using opened = await open(target);
    const { bus } = opened;
    const message = { subject: 'gbe.tasks.x.terminal', id: 'once', payload: { n: 0 } };
    await bus.publish(message);
    await bus.deleteStream(message.subject, { evenUnacked: true });
    assert.equal((await bus.publish(message)).isDuplicate, false);
    assert.equal((await bus.streams('gbe.tasks.>')).length, 1);
  });
}

test('in a cluster a hash tag in the prefix puts the whole bus in one slot, with exact limits', async () => {
  await using opened = await open(clusterUrl, `{${randomUUID()}}:`);
  const { bus } = opened;
  for (const type of ['a', 'b', 'c']) await publishNumbers(bus, 4, `gbe.tasks.${type}.terminal`);
  const definition = { ...monitors, maxAckPending: 5 };
  const members = await Promise.all(upTo(4).map(() => bus.group(definition)));
  const shares = await Promise.all(members.map((each) => each.fetch({ limit: 5, waitMs: 0 })));
  assert.equal(shares.flat().length, 5);
  await shares.flat()[0]?.term('no');
  assert.equal((await bus.deadLetters(monitors.group)).length, 1);
});

test('rejects a subject with a closing brace on a cluster, but accepts it on one server', async () => {
  const message = { subject: 'gbe.x}y', payload: 1 };
  await using one = await open(url);
  await one.bus.publish(message);
  await using many = await open(clusterUrl);
  await assert.rejects(many.bus.publish(message), (error) => hasCode(error, 'NAME_INVALID'));
  await many.bus.publish({ subject: 'gbe.{x}.y', payload: 1 });
  const group = await many.bus.group({ group: 'g', subject: 'gbe.>' });
  await (await fetchOne(group)).ack();
});

test('uses a client of the caller and leaves it open', async () => {
  for (const target of [url, clusterUrl]) {
    await using connection = await connectRedis(target);
    const handle = await openRedis(connection.client, { keyPrefix: `${randomUUID()}:` });
    const { bus } = handle;
    await publishNumbers(bus, 1, 'gbe.tasks.x.terminal');
    await (await fetchOne(await bus.group(monitors))).ack();
    await handle[Symbol.asyncDispose]();
    assert.equal(await connection.client.echo('still'), 'still');
  }
});

test('rejects calls to a hanging Redis within the time limit, including a longer fetch', async () => {
  await using server = await startRedis();
  await using redis = await openRedis(server.url, { timeoutMs: 300 });
  const { bus } = redis;
  const group = await bus.group(monitors);
  server.pause();
  const waiting = group.fetch({ waitMs: 600_000 });
  await rejectsWith(() => publishNumbers(bus, 1), 'BUS_UNAVAILABLE');
  await rejectsWith(() => waiting, 'BUS_UNAVAILABLE');
  server.resume();
  await eventually('the server replies again', () =>
    publishNumbers(bus, 1, 'gbe.tasks.x.terminal').then(
      () => true,
      () => false,
    ),
  );
  await (await fetchOne(group)).ack();
});
