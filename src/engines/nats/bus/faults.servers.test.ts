import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { eventually } from '../../../testing/assertions.ts';
import type { Bus } from '../../../bus/bus.ts';
import { ackAll, fetchSome, upTo } from '../../../testing/conformance/bus/fixture.ts';
import { systemClock } from '../../../foundation/clock.ts';
import { hasCode } from '../../../foundation/error.ts';
import type { Observer } from '../../../foundation/observer.ts';
import { startNats } from '../../../testing/servers/nats-server.ts';
import { ownedRole } from '../../../testing/owned-role.ts';
import { openNats, type NatsOptions } from '../open-nats.ts';

const server = await startNats();
after(() => server[Symbol.asyncDispose]());
const queue = 'gbe.tasks.email-send.queue';

async function openBus(
  target: Parameters<typeof openNats>[0],
  options: NatsOptions = {},
): Promise<Bus> {
  return ownedRole(await openNats(target, options), 'bus');
}

function recordLog(): { readonly observer: Observer; readonly texts: string[] } {
  const texts: string[] = [];
  const note = (_: object, text: string): void => void texts.push(text);
  return { texts, observer: { log: { debug: note, info: note, warn: note, error: note } } };
}

/** Retries with the same id until the message is stored, as a producer does. */
async function publishSurely(bus: Bus, n: number): Promise<void> {
  for (;;) {
    try {
      await bus.publish({ subject: queue, id: `m-${n}`, payload: { n } });
      return;
    } catch (error) {
      if (!hasCode(error, 'BUS_UNAVAILABLE')) throw error;
      await systemClock.sleep(20);
    }
  }
}

const numberOf = ({ payload }: { readonly payload: unknown }): number =>
  (payload as { readonly n: number }).n;

test('a server that is killed repeatedly loses no acknowledged message and keeps the order', async () => {
  await using bus = await openBus(server.url, { prefix: 'killed' });
  const count = 600;
  const handled: number[] = [];
  const read: number[] = [];
  await bus.consume(
    { group: 'workers', subject: 'gbe.tasks.>', leaseMs: 1_000, maxAckPending: 1 },
    (message) => void handled.push(numberOf(message)),
  );
  await using subscription = await bus.subscribe('gbe.>');
  const reading = (async () => {
    for await (const message of subscription) {
      read.push(numberOf(message));
      if (read.length === count) return;
    }
  })();
  const kills = new Set([150, 300, 450]);
  for (let n = 0; n < count; n += 1) {
    // Kill the server while the next messages are in flight.
    const killing = kills.has(n) ? server.kill().then(() => server.start()) : undefined;
    await publishSurely(bus, n);
    await killing;
  }
  await eventually('everything is handled', async () => new Set(handled).size === count);
  await reading;
  // A message may be redelivered if its ack was not on disk, but never before an unhandled message.
  const firsts = [...new Set(handled)];
  assert.deepEqual(firsts, upTo(count));
  assert.deepEqual(read, upTo(count));
  assert.equal((await bus.stream(queue))?.length, count);
});

test('connections that publish to new subjects at the same time all succeed', async () => {
  for (let round = 0; round < 6; round += 1) {
    await using opened = new AsyncDisposableStack();
    const buses = await Promise.all(
      Array.from({ length: 12 }, async () =>
        opened.use(await openBus(server.url, { prefix: `race-${round}` })),
      ),
    );
    await Promise.all(
      buses.map((bus, at) => bus.publish({ subject: `root${at}.events.api.error`, payload: at })),
    );
    const [bus] = buses;
    const lengths = await Promise.all(
      buses.map(async (_, at) => (await bus?.stream(`root${at}.events.api.error`))?.length),
    );
    assert.deepEqual(lengths, Array(buses.length).fill(1));
  }
});

test('a stream of another program that has all subjects is reported', async () => {
  await using other = await startNats();
  const connection = await connect({ servers: other.url });
  try {
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name: 'everything', subjects: ['>'], no_ack: true });
    await using bus = await openBus(other.url);
    await assert.rejects(bus.publish({ subject: queue, payload: 1 }), (error) =>
      hasCode(error, 'BUS_INVALID'),
    );
  } finally {
    await connection.close();
  }
});

test('creates streams and groups again after the server lost its disk, and logs the loss once', async () => {
  const { texts, observer } = recordLog();
  await using bus = await openBus(server.url, { prefix: 'wiped', observer });
  const handled: number[] = [];
  const read: number[] = [];
  await bus.consume({ group: 'workers', subject: queue }, (message) => {
    handled.push(numberOf(message));
  });
  await using subscription = await bus.subscribe(queue);
  const reading = (async () => {
    for await (const message of subscription) if (read.push(numberOf(message)) === 2) return;
  })();
  await publishSurely(bus, 0);
  await eventually('it is handled', async () => handled.length === 1 && read.length === 1);
  await server.kill();
  await rm(join(server.folder, 'jetstream'), { recursive: true });
  await server.start();
  await publishSurely(bus, 1);
  await eventually('it goes on', async () => handled.includes(1));
  await reading;
  assert.deepEqual(read, [0, 1]);
  for (const text of [
    'bus stream was missing and is created again',
    'bus group was missing and is created again',
  ]) {
    const times = texts.filter((each) => each === text).length;
    assert.ok(times === 1 || (times === 2 && text.includes('stream')), `${text}: ${times} times`);
  }
});

test('a call to a server that does not reply fails within the timeout', async () => {
  await using bus = await openBus(server.url, { prefix: 'silent', timeoutMs: 300 });
  const group = await bus.group({ group: 'workers', subject: queue });
  server.pause();
  try {
    for (const call of [
      () => bus.publish({ subject: queue, payload: 1 }),
      () => group.fetch({ waitMs: 0 }),
      () => bus.groups(),
    ]) {
      await assert.rejects(call, (error) => hasCode(error, 'BUS_UNAVAILABLE') && error.retryable);
    }
  } finally {
    server.resume();
  }
  await publishSurely(bus, 0);
  await ackAll(await fetchSome(group, 1));
});

test('a member whose lease has expired by its local clock sends no ack', async () => {
  await using bus = await openBus(server.url, { prefix: 'late' });
  await bus.publish({ subject: queue, payload: { n: 0 } });
  const group = await bus.group({ group: 'workers', subject: queue, leaseMs: 200 });
  const [late] = await fetchSome(group, 1);
  const [current] = await fetchSome(group, 1);
  assert.equal(current?.deliveryCount, 2);
  assert.equal(await late?.ack(), 'stale');
  const [again] = await fetchSome(group, 1);
  assert.equal(again?.deliveryCount, 3);
});

test('removing a subject loses no message of other subjects for a lagging group', async () => {
  await using bus = await openBus(server.url, { prefix: 'wider' });
  const subjects = ['gbe.events.api.error', queue, 'gbe.events.api.error', queue];
  await bus.publishMany(subjects.map((subject, n) => ({ subject, payload: { n } })));
  const group = await bus.group({ group: 'all', subject: 'gbe.>', leaseMs: 500 });
  const [leased] = await fetchSome(group, 1);
  assert.equal(leased?.subject, 'gbe.events.api.error');
  assert.deepEqual(await bus.trim(queue, { lengthMax: 0 }), { removed: 0, heldBack: 2 });
  assert.equal(await bus.deleteStream(queue, { evenUnacked: true }), true);
  // The delivered message is redelivered, and so is the message after the removed one.
  const seen = new Set<number>();
  await eventually('both came', async () => {
    for (const each of await group.fetch({ limit: 10, waitMs: 1_000 })) {
      seen.add(numberOf(each));
      await each.ack();
    }
    return seen.size === 2;
  });
  assert.deepEqual(
    [...seen].toSorted((a, b) => a - b),
    [0, 2],
  );
});

test("leaves the caller's connection open, and rejects a subject of NATS or of another stream", async () => {
  const connection = await connect({ servers: server.url });
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: 'theirs', subjects: ['theirs.>'] });
  {
    await using bus = await openBus(connection);
    await bus.publish({ subject: 'ours.x', payload: 1 });
    for (const subject of ['$JS.x', '_INBOX.x', 'theirs.x']) {
      await assert.rejects(
        () => bus.publish({ subject, payload: 1 }),
        (error) => hasCode(error, 'BUS_INVALID'),
      );
    }
    await bus.group({ group: 'all', subject: '>' });
  }
  assert.equal(connection.isClosed(), false);
  await connection.flush();
  await connection.close();
  await assert.rejects(openBus(server.url, { prefix: 'a.b' }), (error) =>
    hasCode(error, 'CONFIG_INVALID'),
  );
});

test('processes that start at once on an empty server create its streams and groups', async () => {
  const buses = await Promise.all(upTo(6).map(() => openBus(server.url, { prefix: 'together' })));
  try {
    await Promise.all(
      buses.map(async (bus, n) => {
        await bus.publish({ subject: `root${n}.x`, payload: { n } });
        const from = { time: new Date(Date.UTC(2020, 0, n + 1)) };
        await bus.group({ group: 'all', subject: '>', from, leaseMs: 1_000 + n });
      }),
    );
    const [bus] = buses;
    const group = await (bus as Bus).group({ group: 'all', subject: '>' });
    const came = await fetchSome(group, 6);
    assert.deepEqual(
      came.map(numberOf).toSorted((a, b) => a - b),
      upTo(6),
    );
    // Every root still works, whichever process added the last one.
    await Promise.all(
      buses.map((each, n) => each.publish({ subject: `root${n}.x`, payload: { n } })),
    );
    assert.equal((await fetchSome(group, 6)).length, 6);
  } finally {
    await Promise.all(buses.map((bus) => bus[Symbol.asyncDispose]()));
  }
});
