import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import { eventually, rejectsWith } from '../../../testing/assertions.ts';
import { startWorkers } from '../../../tasks/run/start-workers.ts';
import { task as defineTask } from '../../../tasks/task-definition.ts';
import { createTaskSweep } from '../../../tasks/run/task-sweeper.ts';
import { taskType } from '../../../tasks/task-type.ts';
import { email, fieldOf, stateOf } from '../../../testing/conformance/tasks/fixture.ts';
import type { ClaimOptions, Tasks } from '../../../tasks/tasks.ts';
import { seededRandom } from '../../../testing/seeded-random.ts';
import { startRedis } from '../../../testing/servers/redis-server.ts';
import { ownedTasks } from '../../../testing/owned-tasks.ts';
import { connectRedis } from '../connection/connection.ts';
import { openRedis } from '../open-redis.ts';

const server = await startRedis();
after(() => server[Symbol.asyncDispose]());
const types = [
  taskType(email),
  taskType('brittle', { onLost: 'fail' }),
  taskType('keyed', { concurrencyKey: 'k', concurrencyLimit: 1 }),
  taskType('limited', { rate: { count: 1, perMs: 3_600_000, isPerTenant: false } }),
];
const job = { type: email, payload: { n: 1 } };
const waiting: ClaimOptions = { worker: 'w-1', types: { [email]: 5 }, waitMs: 60_000 };

async function openTasks(url: string, keyPrefix: string): Promise<Tasks> {
  return ownedTasks(await openRedis(url, { keyPrefix }), { types });
}

async function setUp(url = server.url) {
  const keyPrefix = `${randomUUID()}:`;
  const open = () => openTasks(url, keyPrefix);
  const [tasks, other, connection] = await Promise.all([open(), open(), connectRedis(url)]);
  const offers = `${keyPrefix}millrace.tasks:{tasks}:hand:*`;
  /** Waits for an open offer and returns its key and content. */
  const offer = async (): Promise<readonly [key: string, text: string]> => {
    for (;;) {
      const [key] = await connection.ask((client) => client.keys(offers));
      const text = key && (await connection.ask((client) => client.get(key)));
      if (text?.startsWith('!') === false) return [key as string, text];
    }
  };
  return {
    keyPrefix,
    tasks,
    other,
    connection,
    offer,
    async [Symbol.asyncDispose]() {
      await Promise.all([tasks, other, connection].map((each) => each[Symbol.asyncDispose]()));
    },
  };
}

/** Asserts that a claim without a wait returns no job. */
async function assertNoJob(tasks: Tasks, options: Partial<ClaimOptions>): Promise<void> {
  assert.deepEqual(await tasks.claim({ ...waiting, waitMs: 0, ...options }), []);
}

test('hands a new job to a waiting worker in the script that stores it', async () => {
  await using rig = await setUp();
  const claiming = rig.tasks.claim(waiting);
  await rig.offer();
  const { id } = await rig.other.enqueue(job);
  assert.equal(await stateOf(rig.other, id), 'running');
  const [claimed] = await claiming;
  assert.deepEqual([claimed?.task.id, claimed?.task.worker], [id, 'w-1']);
  await rig.tasks.complete(claimed?.token ?? assert.fail('no job was claimed'));
  assert.equal(await stateOf(rig.other, id), 'completed');
});

test('wakes a busy worker instead of handing a job to it', async () => {
  await using rig = await setUp();
  const claiming = rig.tasks.claim({ ...waiting, isBusy: true });
  const idle = rig.other.claim({ ...waiting, worker: 'w-2' });
  await rig.offer();
  await rig.tasks.enqueue(job);
  assert.equal((await idle).length, 1);
  await rig.other.enqueue(job);
  assert.equal((await claiming).length, 1);
});

test('does not hand off jobs of types whose jobs fail when their worker is lost', async () => {
  await using rig = await setUp();
  const claiming = rig.tasks.claim({ ...waiting, types: { [email]: 1, brittle: 1 } });
  const [, text] = await rig.offer();
  assert.match(text, /\nemail-send /);
  assert.doesNotMatch(text, /brittle/);
  await rig.other.enqueue({ ...job, type: 'brittle' });
  assert.equal((await claiming)[0]?.task.type, 'brittle');
});

test('a paused type hands off no jobs, and the offer stays open', async () => {
  await using rig = await setUp();
  await rig.other.pause(email);
  const claiming = rig.tasks.claim(waiting);
  await rig.offer();
  const { id } = await rig.other.enqueue(job);
  assert.equal(await stateOf(rig.other, id), 'queued');
  await rig.other.resume(email);
  assert.equal((await claiming)[0]?.task.id, id);
});

test('applies concurrency keys and rates to hand-offs', async () => {
  await using rig = await setUp();
  const both = { ...waiting, types: { keyed: 5, limited: 5 } };
  for (const type of ['keyed', 'limited']) {
    const claiming = rig.tasks.claim(both);
    await rig.offer();
    const payload = { k: 'a' };
    const first = await rig.other.enqueue({ type, payload });
    assert.equal((await claiming)[0]?.task.id, first.id);
    const stopping = new AbortController();
    const next = rig.tasks.claim({ ...both, signal: stopping.signal });
    await rig.offer();
    const second = await rig.other.enqueue({ type, payload });
    assert.equal(await stateOf(rig.other, second.id), 'queued');
    stopping.abort();
    await rejectsWith(() => next, 'ABORTED');
  }
});

test('a worker finds the job that was handed to it if the message is lost', async () => {
  await using rig = await setUp();
  await using stranger = await connectRedis(server.url);
  const claiming = rig.tasks.claim(waiting);
  const [key, text] = await rig.offer();
  // Redirect the message to another channel.
  const elsewhere = randomUUID();
  await stranger.ask((client) => client.subscribe(elsewhere));
  const [number, , ...rest] = text.split('\n');
  const redirected = [number, elsewhere, ...rest].join('\n');
  await rig.connection.ask((client) => client.set(key, redirected));
  const { id } = await rig.other.enqueue(job);
  assert.equal(await stateOf(rig.other, id), 'running');
  // Resuming the type wakes the worker.
  await rig.other.resume(email);
  assert.deepEqual(
    (await claiming).map(({ task }) => task.id),
    [id],
  );
  await assertNoJob(rig.other, { worker: 'w-2' });
});

test('a late or repeated message delivers no job twice', async () => {
  await using rig = await setUp();
  const claiming = rig.tasks.claim(waiting);
  const [, text] = await rig.offer();
  const channel = text.split('\n')[1] as string;
  const received: string[] = [];
  await using stranger = await connectRedis(server.url);
  await stranger.ask(async (client) => {
    client.on('message', (_from: string, message: string) => void received.push(message));
    return client.subscribe(channel);
  });
  const { id } = await rig.other.enqueue(job);
  assert.equal((await claiming)[0]?.task.id, id);
  await eventually('the other subscriber receives the message', async () => received.length === 1);
  const publish = (message: string) =>
    rig.connection.ask((client) => client.publish(channel, message));
  // Invalid and repeated messages have no effect.
  for (const message of ['nonsense', '[1]', received[0] ?? '']) await publish(message);
  const stopping = new AbortController();
  const next = rig.tasks.claim({ ...waiting, signal: stopping.signal });
  await rig.offer();
  stopping.abort();
  await rejectsWith(() => next, 'ABORTED');
  const again = rig.tasks.claim(waiting);
  await rig.offer();
  const second = await rig.other.enqueue(job);
  assert.deepEqual(
    (await again).map(({ task }) => task.id),
    [second.id],
  );
});

test('does not hand a job to a process that has exited', async () => {
  await using rig = await setUp();
  const exited = await openTasks(server.url, rig.keyPrefix);
  const claiming = exited.claim(waiting).catch(() => []);
  const [key, text] = await rig.offer();
  await exited[Symbol.asyncDispose]();
  await claiming;
  // Restore the offer, as after a kill.
  await rig.connection.ask((client) => client.set(key, text));
  const { id } = await rig.other.enqueue(job);
  assert.equal(await stateOf(rig.other, id), 'queued');
});

test('the sweeper releases a handed-off job when the lease of its worker expires', async () => {
  await using rig = await setUp();
  const claiming = rig.tasks.claim({ ...waiting, leaseMs: 100 });
  await rig.offer();
  const { id } = await rig.other.enqueue(job);
  assert.equal((await claiming).length, 1);
  const sweep = createTaskSweep(rig.other);
  await eventually('the lease has expired', async () => {
    await sweep.sweep();
    return (await stateOf(rig.other, id)) !== 'running';
  });
  assert.equal((await rig.other.get(id))?.failures, 1);
});

test('wakes workers if the user may not run PUBSUB', async () => {
  await using own = await startRedis();
  await using admin = await connectRedis(own.url);
  await admin.ask((client) =>
    client.call('ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '&*', '+@all', '-pubsub'),
  );
  const url = own.url.replace('redis://', 'redis://app:secret@');
  await using rig = await setUp(url);
  const claiming = rig.tasks.claim(waiting);
  await rig.offer();
  const { id } = await rig.other.enqueue(job);
  assert.equal((await claiming)[0]?.task.id, id);
});

test('publishes the queue signal of a handed-off job', async () => {
  await using rig = await setUp();
  await using redis = await openRedis(server.url, { keyPrefix: rig.keyPrefix });
  const group = await redis.bus.group({ group: 'watchers', subject: `gbe.tasks.${email}.queue` });
  const claiming = rig.tasks.claim(waiting);
  const fetching = group.fetch({ limit: 1, waitMs: 60_000 });
  await rig.offer();
  const { id } = await rig.other.enqueue(job);
  const [signal] = await fetching;
  assert.equal(fieldOf(signal?.payload, 'taskId'), id);
  assert.equal((await claiming).length, 1);
});

test('every job has one owner, whenever the wait times out', async () => {
  await using rig = await setUp();
  const random = seededRandom(7);
  for (let n = 0; n < 300; n += 1) {
    const stopping = new AbortController();
    const claiming = rig.tasks.claim({ ...waiting, signal: stopping.signal }).catch((error) => {
      assert.equal((error as { readonly code?: string }).code, 'ABORTED');
      return [];
    });
    await rig.offer();
    const enqueuing = rig.other.enqueue(job);
    for (let turns = random.below(40); turns > 0; turns -= 1) await new Promise(setImmediate);
    stopping.abort();
    const { id } = await enqueuing;
    const given = await claiming;
    const left = await rig.other.claim({ ...waiting, worker: 'w-2', waitMs: 0 });
    assert.deepEqual(
      [...given, ...left].map(({ task }) => task.id),
      [id],
    );
    for (const { token } of [...given, ...left]) await rig.other.complete(token);
  }
});

test('broken connections of workers lose no job and cause no failure', async () => {
  await using rig = await setUp();
  const random = seededRandom(11);
  const ran = new Map<string, number>();
  const emailSend = defineTask(email, async ({ taskId }) => {
    ran.set(taskId, (ran.get(taskId) ?? 0) + 1);
  });
  await using workers = startWorkers(rig.tasks, [emailSend], { concurrency: { [email]: 5 } });
  const ids: string[] = [];
  for (let n = 0; n < 200; n += 1) {
    if (random.below(5) === 0) {
      await rig.connection.ask((client) => client.call('CLIENT', 'KILL', 'TYPE', 'pubsub'));
    }
    const { id } = await rig.other.enqueue(job);
    ids.push(id);
    for (let turns = random.below(40); turns > 0; turns -= 1) await new Promise(setImmediate);
  }
  for (const id of ids) {
    const { state, failures } = await rig.other.whenEnded(id, { timeoutMs: 30_000 });
    assert.deepEqual([state, failures, ran.get(id)], ['completed', 0, 1]);
  }
  await workers.stop();
});
