import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import { eventually } from '../../../testing/assertions.ts';
import { hasCode } from '../../../foundation/error.ts';
import { createTasks } from '../../../tasks/create-tasks.ts';
import { createTaskSweep } from '../../../tasks/run/task-sweeper.ts';
import { taskType } from '../../../tasks/task-type.ts';
import {
  claimOne,
  claimSome,
  email,
  enqueueNumbers,
  numbersOf,
} from '../../../testing/conformance/tasks/fixture.ts';
import { startRedis } from '../../../testing/servers/redis-server.ts';
import { connectRedis } from '../connection/connection.ts';
import { openRedis } from '../open-redis.ts';

const server = await startRedis();
after(() => server[Symbol.asyncDispose]());
const types = [taskType(email), taskType('keyed', { concurrencyKey: 'k', concurrencyLimit: 1 })];

async function setUp(url = server.url) {
  const keyPrefix = `${randomUUID()}:`;
  const redis = await openRedis(url, { keyPrefix });
  const tasks = createTasks(redis.tasks, { types });
  const { bus } = redis;
  return { tasks, bus, keyPrefix, [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose]() };
}

test('sends scripts again after the server has lost them', async () => {
  await using rig = await setUp();
  const { tasks } = rig;
  await using connection = await connectRedis(server.url);
  const flushScripts = () => connection.ask((client) => client.call('SCRIPT', 'FLUSH'));
  await enqueueNumbers(tasks, 2);
  await flushScripts();
  await enqueueNumbers(tasks, 1);
  await flushScripts();
  const claimed = await claimSome(tasks, 3);
  assert.equal(claimed.length, 3);
  await flushScripts();
  await Promise.all(claimed.map(({ token }) => tasks.complete(token)));
  assert.equal((await tasks.counts())[0]?.states.completed, 3);
});

test('publishes signals as messages of the bus, for groups and for patterns', async () => {
  await using rig = await setUp();
  const { tasks, bus } = rig;
  const group = await bus.group({ group: 'monitors', subject: 'gbe.tasks.*.terminal' });
  const [id] = await enqueueNumbers(tasks, 1, { tenant: 'acme' });
  await tasks.complete((await claimOne(tasks)).token);
  const [signal] = await group.fetch({ limit: 10, waitMs: 5_000 });
  assert.equal((signal?.payload as { taskId?: string } | undefined)?.taskId, id);
  assert.equal(signal?.tenant, 'acme');
  assert.equal(await signal.ack(), 'settled');
});

test('wakes workers for new jobs, but not for progress or terminal signals', async () => {
  await using rig = await setUp();
  const { tasks } = rig;
  await using listening = await connectRedis(server.url);
  const received: string[] = [];
  await listening.ask(async (client) => {
    client.on('message', (_channel: string, text: string) => void received.push(text));
    return client.subscribe(`${rig.keyPrefix}millrace.bus:wake:tasks`);
  });
  for (let n = 0; n < 2; n += 1) {
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    await tasks.finishStep(token, { name: 'load' });
    await tasks.complete(token);
  }
  await enqueueNumbers(tasks, 3);
  await eventually('the last wake-ups arrive', async () => received.length >= 3);
  assert.deepEqual(
    received,
    Array.from({ length: 3 }, () => `s gbe.tasks.${email}.queue`),
  );
});

test('acks the queue signals of claimed jobs for the group of the workers', async () => {
  await using rig = await setUp();
  const { tasks, bus } = rig;
  await enqueueNumbers(tasks, 5);
  const lag = async () => (await bus.groups()).find(({ name }) => name === `${email}-workers`)?.lag;
  assert.equal(await lag(), 5);
  const sweeper = createTaskSweep(tasks);
  await claimSome(tasks, 3);
  await sweeper.sweep();
  assert.equal(await lag(), 2);
  await claimSome(tasks, 2);
  await sweeper.sweep();
  assert.equal(await lag(), 0);
});

test('restores deleted streams with each signal once', async () => {
  await using rig = await setUp();
  const { tasks, bus } = rig;
  await enqueueNumbers(tasks, 4);
  const [first] = await claimSome(tasks, 1);
  if (first === undefined) assert.fail('missing');
  await tasks.complete(first.token);
  await using connection = await connectRedis(server.url);
  const key = (name: string) => `${rig.keyPrefix}gbe:tasks:${email}:${name}`;
  await connection.ask((client) => client.del(key('queue'), key('terminal'), key('progress')));
  const sweeper = createTaskSweep(tasks);
  await sweeper.sweep();
  await sweeper.sweep();
  const idsIn = async (name: string) =>
    (await Array.fromAsync(bus.read(`gbe.tasks.${email}.${name}`))).map(({ id }) => id);
  assert.equal((await idsIn('terminal')).length, 1);
  const queued = await idsIn('queue');
  assert.equal(queued.length, 3);
  assert.equal(new Set(queued).size, 3);
  assert.equal((await claimSome(tasks, 10)).length, 3);
});

test('claims many jobs of one concurrency key one by one, in order', async () => {
  await using rig = await setUp();
  const { tasks } = rig;
  const jobs = Array.from({ length: 500 }, (_, n) => ({ type: 'keyed', payload: { k: 'a', n } }));
  await tasks.enqueueMany(jobs);
  await tasks.enqueue({ type: 'keyed', payload: { k: 'b', n: 500 } });
  const first = await claimSome(tasks, 10, { types: { keyed: 10 } });
  assert.deepEqual(numbersOf(first), [0, 500]);
  for (let n = 1; n < 20; n += 1) {
    const [running] = n === 1 ? first : await claimSome(tasks, 10, { types: { keyed: 10 } });
    if (n > 1) assert.deepEqual(numbersOf(running === undefined ? [] : [running]), [n - 1]);
    if (running !== undefined) await tasks.complete(running.token);
  }
  const [waiting] = (await tasks.list({ type: 'keyed', state: 'queued' }, { limit: 1 })).tasks;
  assert.equal(await tasks.cancel(waiting?.id ?? ''), true);
  const count = (await tasks.counts()).find(({ type }) => type === 'keyed');
  assert.equal(count?.states.queued, 500 - 20);
});

test('counts and lists a type with very many jobs', async () => {
  await using rig = await setUp();
  const { tasks } = rig;
  const size = 20_000;
  for (let at = 0; at < size; at += 1_000) await enqueueNumbers(tasks, 1_000);
  const claimed = await claimSome(tasks, 100);
  const [one] = claimed;
  if (one === undefined) assert.fail('missing');
  await tasks.fail(one.token, { message: 'no', isTerminal: true });
  const [count] = await tasks.counts();
  assert.equal(count?.states.queued, size - 100);
  assert.equal(count?.states.running, 99);
  const failed = await tasks.list({ type: email, state: 'failed' });
  assert.deepEqual(
    failed.tasks.map(({ id }) => id),
    [one.task.id],
  );
  const running = await tasks.list({ type: email, state: 'running' }, { limit: 200 });
  assert.equal(running.tasks.length, 99);
  const seen = new Set<string>();
  for (let cursor: string | undefined, page = 0; page < 30; page += 1) {
    const listing = await tasks.list({ type: email }, { cursor, limit: 1_000 });
    for (const { id } of listing.tasks) seen.add(id);
    cursor = listing.cursor;
    if (cursor === undefined) break;
  }
  assert.equal(seen.size, size);
});

test('a killed Redis loses no confirmed job', async () => {
  await using own = await startRedis({ appendOnly: 'always' });
  await using rig = await setUp(own.url);
  const { tasks } = rig;
  const retryUntilDone = async <T>(work: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!hasCode(error, 'TASKS_UNAVAILABLE')) throw error;
        assert.equal((error as { retryable?: boolean }).retryable, true);
      }
      await eventually('the server replies again', async () => {
        try {
          await tasks.counts();
          return true;
        } catch (error) {
          if (hasCode(error, 'TASKS_UNAVAILABLE')) return false;
          throw error;
        }
      });
    }
  };
  const confirmed = new Set<string>();
  for (let kill = 0; kill < 3; kill += 1) {
    const working = (async () => {
      for (let n = 0; n < 60; n += 1) {
        const key = `k-${kill}-${n}`;
        const { id } = await retryUntilDone(() =>
          tasks.enqueue({ type: email, payload: { n }, key }),
        );
        confirmed.add(id);
      }
    })();
    await eventually('jobs are being enqueued', async () => confirmed.size >= kill * 60 + 20);
    await own.kill();
    await own.start();
    await working;
  }
  const [count] = await retryUntilDone(() => tasks.counts());
  assert.equal(count?.states.queued, confirmed.size);
  assert.equal(confirmed.size, 180);
  const claimed = [...(await claimSome(tasks, 100)), ...(await claimSome(tasks, 100))];
  assert.deepEqual(new Set(claimed.map(({ task }) => task.id)), confirmed);
});
