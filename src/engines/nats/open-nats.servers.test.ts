import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { createTasks } from '../../tasks/create-tasks.ts';
import { taskType } from '../../tasks/task-type.ts';
import { eventually, rejectsWith } from '../../testing/assertions.ts';
import { startNats } from '../../testing/servers/nats-server.ts';
import { reservePort } from '../../testing/servers/reserve-port.ts';
import { openNats } from './open-nats.ts';

const monitor = await reservePort();
const monitorAddress = `${monitor.host}:${monitor.port}`;
const server = await startNats({ settings: { http: `"${monitorAddress}"` } });
after(async () => {
  await server[Symbol.asyncDispose]();
  await monitor[Symbol.asyncDispose]();
});
const subject = 'gbe.events.system.health';
const subscription = 'sub:shop:orders:v1';

async function connectionCount(): Promise<number> {
  const response = await fetch(`http://${monitorAddress}/connz`);
  return ((await response.json()) as { readonly num_connections: number }).num_connections;
}

test('bus, tasks and leases share one connection', async () => {
  await eventually('no connection is left', async () => (await connectionCount()) === 0);
  const nats = await openNats(server.url, { prefix: 'shared' });
  const tasks = createTasks(nats.tasks, { types: [taskType('email-send')] });
  await nats.bus.publish({ subject, payload: 1 });
  await tasks.enqueue({ type: 'email-send', payload: 1 });
  await nats.leases.announce(subscription, 'w', 10_000);
  assert.equal(await connectionCount(), 1);
  await nats[Symbol.asyncDispose]();
  await eventually('the connection is closed', async () => (await connectionCount()) === 0);
});

test('a role sends nothing and creates nothing before its first call', async () => {
  const connection = await connect({ servers: server.url });
  const manager = await jetstreamManager(connection);
  const streams = async (): Promise<readonly string[]> =>
    (await manager.streams.names().next()).filter((name) => name.includes('lazy'));
  {
    await using nats = await openNats(connection, { prefix: 'lazy', roots: ['gbe'] });
    const before = connection.stats().outMsgs;
    const { bus, tasks, leases } = nats;
    assert.deepEqual([nats.bus, nats.tasks, nats.leases], [bus, tasks, leases]);
    await connection.flush();
    assert.equal(connection.stats().outMsgs, before);
    assert.deepEqual(await streams(), []);
    await bus.groups();
    await tasks.counts();
    await leases.list(subscription);
    assert.deepEqual((await streams()).toSorted(), ['KV_lazy-leases', 'KV_lazy-tasks', 'lazy-bus']);
  }
  assert.equal(connection.isClosed(), false);
  await connection.close();
});

test('closing a role leaves the other roles open, and each role has its own error codes', async () => {
  const nats = await openNats(server.url, { prefix: 'closing', timeoutMs: 300 });
  const { bus, tasks, leases } = nats;
  const calls = {
    BUS: () => bus.groups(),
    TASKS: () => tasks.counts(),
    STORE: () => leases.list(subscription),
  };
  for (const call of Object.values(calls)) await call();
  server.pause();
  try {
    await rejectsWith(calls.BUS, 'BUS_UNAVAILABLE');
    await rejectsWith(calls.TASKS, 'TASKS_UNAVAILABLE');
    await rejectsWith(calls.STORE, 'STORE_UNAVAILABLE');
  } finally {
    server.resume();
  }
  await bus[Symbol.asyncDispose]();
  await rejectsWith(calls.BUS, 'BUS_CLOSED');
  await calls.TASKS();
  await tasks[Symbol.asyncDispose]();
  await rejectsWith(calls.TASKS, 'TASKS_CLOSED');
  await calls.STORE();
  await nats[Symbol.asyncDispose]();
  await rejectsWith(calls.STORE, 'STORE_CLOSED');
});

test('a closed handle creates no role', async () => {
  const nats = await openNats(server.url, { prefix: 'closed' });
  await nats[Symbol.asyncDispose]();
  await rejectsWith(async () => nats.bus, 'STORE_CLOSED');
});

test('closing the handle waits for the handlers of the bus before it closes the connection', async () => {
  const group = { group: 'workers', subject };
  const started = Promise.withResolvers<void>();
  const finishing = Promise.withResolvers<void>();
  const nats = await openNats(server.url, { prefix: 'order' });
  await nats.leases.announce(subscription, 'w', 10_000);
  await nats.bus.consume(group, async () => {
    started.resolve();
    await finishing.promise;
    await nats.leases.leave(subscription, 'w');
  });
  await nats.tasks.counts();
  await nats.bus.publish({ subject, payload: 1 });
  await started.promise;
  const closing = nats[Symbol.asyncDispose]();
  finishing.resolve();
  await closing;
  await using later = await openNats(server.url, { prefix: 'order' });
  const [info] = await later.bus.groups();
  assert.deepEqual([info?.name, info?.lag, info?.pending], ['workers', 0, 0]);
  assert.deepEqual(await later.leases.announce(subscription, 'w-2', 10_000), ['w-2']);
});

test('a missing server and an account without JetStream are rejected with a reason', async () => {
  await using unused = await reservePort();
  await rejectsWith(() => openNats(`nats://${unused.host}:${unused.port}`), 'STORE_UNAVAILABLE');
  const accounts = '{ plain: { users: [{ user: "jane", password: "secret" }] } }';
  await using other = await startNats({ settings: { accounts } });
  const url = other.url.replace('://', '://jane:secret@');
  const error = await rejectsWith(() => openNats(url), 'STORE_UNAVAILABLE');
  assert.match(error.message, /JetStream/i);
});
