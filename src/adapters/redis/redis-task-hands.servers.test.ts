import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import { eventually } from '../../bus/bus-fixture.conformance.ts';
import { startWorkers } from '../../tasks/run/start-workers.ts';
import { task as defineTask } from '../../tasks/task-definition.ts';
import { createTaskSweep } from '../../tasks/run/task-sweeper.ts';
import { taskType } from '../../tasks/task-type.ts';
import { email, fieldOf, rejectsWith, stateOf } from '../../tasks/tasks-fixture.conformance.ts';
import type { ClaimOptions, Tasks } from '../../tasks/tasks.ts';
import { seededRandom } from '../../testing/seeded-random.ts';
import { startRedis } from '../../testing/servers/redis-server.ts';
import { redisBus } from './redis-bus.ts';
import { connectRedis } from './redis-connection.ts';
import { redisTasks } from './redis-tasks.ts';

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

async function setUp(url = server.url) {
  const keyPrefix = `${randomUUID()}:`;
  const open = () => redisTasks(url, { keyPrefix, types });
  const [tasks, other, connection] = await Promise.all([open(), open(), connectRedis(url)]);
  const hands = `${keyPrefix}millrace.tasks:{tasks}:hand:*`;
  /** Somebody holds out its hand: who, and what it says. */
  const hand = async (): Promise<readonly [key: string, text: string]> => {
    for (;;) {
      const [key] = await connection.ask((client) => client.keys(hands));
      const text = key && (await connection.ask((client) => client.get(key)));
      if (text?.startsWith('!') === false) return [key as string, text];
    }
  };
  return {
    keyPrefix,
    tasks,
    other,
    connection,
    hand,
    async [Symbol.asyncDispose]() {
      await Promise.all([tasks, other, connection].map((each) => each[Symbol.asyncDispose]()));
    },
  };
}

/** Ends when the claim has nothing more to wait for. */
async function nothingFor(tasks: Tasks, options: Partial<ClaimOptions>): Promise<void> {
  assert.deepEqual(await tasks.claim({ ...waiting, waitMs: 0, ...options }), []);
}

test('a worker that waits has a job in the step that stores it', async () => {
  await using place = await setUp();
  const claiming = place.tasks.claim(waiting);
  await place.hand();
  const { id } = await place.other.enqueue(job);
  assert.equal(await stateOf(place.other, id), 'running');
  const [claimed] = await claiming;
  assert.deepEqual([claimed?.task.id, claimed?.task.worker], [id, 'w-1']);
  await place.tasks.complete(claimed?.token ?? assert.fail('nothing was claimed'));
  assert.equal(await stateOf(place.other, id), 'completed');
});

test('one that is busy is woken, and asks', async () => {
  await using place = await setUp();
  const claiming = place.tasks.claim({ ...waiting, isBusy: true });
  const idle = place.other.claim({ ...waiting, worker: 'w-2' });
  await place.hand();
  await place.tasks.enqueue(job);
  assert.equal((await idle).length, 1);
  await place.other.enqueue(job);
  assert.equal((await claiming).length, 1);
});

test('jobs that fail with their worker are handed to nobody', async () => {
  await using place = await setUp();
  const claiming = place.tasks.claim({ ...waiting, types: { [email]: 1, brittle: 1 } });
  const [, text] = await place.hand();
  assert.match(text, /\nemail-send /);
  assert.doesNotMatch(text, /brittle/);
  await place.other.enqueue({ ...job, type: 'brittle' });
  assert.equal((await claiming)[0]?.task.type, 'brittle');
});

test('a type that is paused gives nothing, and the hand stays where it is', async () => {
  await using place = await setUp();
  await place.other.pause(email);
  const claiming = place.tasks.claim(waiting);
  await place.hand();
  const { id } = await place.other.enqueue(job);
  assert.equal(await stateOf(place.other, id), 'queued');
  await place.other.resume(email);
  assert.equal((await claiming)[0]?.task.id, id);
});

test('keys and rates hold for what is handed over', async () => {
  await using place = await setUp();
  const both = { ...waiting, types: { keyed: 5, limited: 5 } };
  for (const type of ['keyed', 'limited']) {
    const claiming = place.tasks.claim(both);
    await place.hand();
    const payload = { k: 'a' };
    const first = await place.other.enqueue({ type, payload });
    assert.equal((await claiming)[0]?.task.id, first.id);
    const stopping = new AbortController();
    const next = place.tasks.claim({ ...both, signal: stopping.signal });
    await place.hand();
    const second = await place.other.enqueue({ type, payload });
    assert.equal(await stateOf(place.other, second.id), 'queued');
    stopping.abort();
    await rejectsWith(() => next, 'ABORTED');
  }
});

test('who waited in vain finds what it was given, when the message is lost', async () => {
  await using place = await setUp();
  await using stranger = await connectRedis(server.url);
  const claiming = place.tasks.claim(waiting);
  const [key, text] = await place.hand();
  // The message goes elsewhere.
  const elsewhere = randomUUID();
  await stranger.ask((client) => client.subscribe(elsewhere));
  const [number, , ...rest] = text.split('\n');
  const bent = [number, elsewhere, ...rest].join('\n');
  await place.connection.ask((client) => client.set(key, bent));
  const { id } = await place.other.enqueue(job);
  assert.equal(await stateOf(place.other, id), 'running');
  // Anything that wakes it: here, a type that is resumed.
  await place.other.resume(email);
  assert.deepEqual(
    (await claiming).map(({ task }) => task.id),
    [id],
  );
  await nothingFor(place.other, { worker: 'w-2' });
});

test('a message that comes behind the note, or for a wait that is over, gives nothing twice', async () => {
  await using place = await setUp();
  const claiming = place.tasks.claim(waiting);
  const [, text] = await place.hand();
  const channel = text.split('\n')[1] as string;
  const heard: string[] = [];
  await using stranger = await connectRedis(server.url);
  await stranger.ask(async (client) => {
    client.on('message', (_from: string, message: string) => void heard.push(message));
    return client.subscribe(channel);
  });
  const { id } = await place.other.enqueue(job);
  assert.equal((await claiming)[0]?.task.id, id);
  await eventually('the message was heard by others, too', async () => heard.length === 1);
  const publish = (message: string) =>
    place.connection.ask((client) => client.publish(channel, message));
  // Nonsense ends nobody, and what was heard is no news.
  for (const message of ['nonsense', '[1]', heard[0] ?? '']) await publish(message);
  const stopping = new AbortController();
  const next = place.tasks.claim({ ...waiting, signal: stopping.signal });
  await place.hand();
  stopping.abort();
  await rejectsWith(() => next, 'ABORTED');
  const again = place.tasks.claim(waiting);
  await place.hand();
  const second = await place.other.enqueue(job);
  assert.deepEqual(
    (await again).map(({ task }) => task.id),
    [second.id],
  );
});

test('nobody is handed a job whose process is gone', async () => {
  await using place = await setUp();
  const gone = await redisTasks(server.url, { keyPrefix: place.keyPrefix, types });
  const claiming = gone.claim(waiting).catch(() => []);
  const [key, text] = await place.hand();
  await gone[Symbol.asyncDispose]();
  await claiming;
  // As a kill leaves it.
  await place.connection.ask((client) => client.set(key, text));
  const { id } = await place.other.enqueue(job);
  assert.equal(await stateOf(place.other, id), 'queued');
});

test('the sweeper takes back what was handed to a worker that dies with it', async () => {
  await using place = await setUp();
  const claiming = place.tasks.claim({ ...waiting, leaseMs: 100 });
  await place.hand();
  const { id } = await place.other.enqueue(job);
  assert.equal((await claiming).length, 1);
  const sweep = createTaskSweep(place.other);
  await eventually('its lease is over', async () => {
    await sweep.sweep();
    return (await stateOf(place.other, id)) !== 'running';
  });
  assert.equal((await place.other.get(id))?.failures, 1);
});

test('without the right to ask who listens, workers are woken', async () => {
  await using own = await startRedis();
  await using admin = await connectRedis(own.url);
  await admin.ask((client) =>
    client.call('ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '&*', '+@all', '-pubsub'),
  );
  const url = own.url.replace('redis://', 'redis://app:secret@');
  await using place = await setUp(url);
  const claiming = place.tasks.claim(waiting);
  await place.hand();
  const { id } = await place.other.enqueue(job);
  assert.equal((await claiming)[0]?.task.id, id);
});

test('what is handed over is told on the bus like all else', async () => {
  await using place = await setUp();
  await using bus = await redisBus(server.url, { keyPrefix: place.keyPrefix });
  const group = await bus.group({ group: 'watchers', subject: `gbe.tasks.${email}.queue` });
  const claiming = place.tasks.claim(waiting);
  const fetching = group.fetch({ limit: 1, waitMs: 60_000 });
  await place.hand();
  const { id } = await place.other.enqueue(job);
  const [told] = await fetching;
  assert.equal(fieldOf(told?.payload, 'taskId'), id);
  assert.equal((await claiming).length, 1);
});

test('every job has one owner, whenever the wait for it ends', async () => {
  await using place = await setUp();
  const random = seededRandom(7);
  for (let n = 0; n < 300; n += 1) {
    const stopping = new AbortController();
    const claiming = place.tasks.claim({ ...waiting, signal: stopping.signal }).catch((error) => {
      assert.equal((error as { readonly code?: string }).code, 'ABORTED');
      return [];
    });
    await place.hand();
    const enqueuing = place.other.enqueue(job);
    for (let turns = random.below(40); turns > 0; turns -= 1) await new Promise(setImmediate);
    stopping.abort();
    const { id } = await enqueuing;
    const given = await claiming;
    const left = await place.other.claim({ ...waiting, worker: 'w-2', waitMs: 0 });
    assert.deepEqual(
      [...given, ...left].map(({ task }) => task.id),
      [id],
    );
    for (const { token } of [...given, ...left]) await place.other.complete(token);
  }
});

test('connections that break under workers lose no job and no time', async () => {
  await using place = await setUp();
  const random = seededRandom(11);
  const ran = new Map<string, number>();
  const emailSend = defineTask(email, async ({ taskId }) => {
    ran.set(taskId, (ran.get(taskId) ?? 0) + 1);
  });
  await using workers = startWorkers(place.tasks, [emailSend], { concurrency: { [email]: 5 } });
  const ids: string[] = [];
  for (let n = 0; n < 200; n += 1) {
    if (random.below(5) === 0) {
      await place.connection.ask((client) => client.call('CLIENT', 'KILL', 'TYPE', 'pubsub'));
    }
    const { id } = await place.other.enqueue(job);
    ids.push(id);
    for (let turns = random.below(40); turns > 0; turns -= 1) await new Promise(setImmediate);
  }
  for (const id of ids) {
    const { state, failures } = await place.other.whenEnded(id, { timeoutMs: 30_000 });
    assert.deepEqual([state, failures, ran.get(id)], ['completed', 0, 1]);
  }
  await workers.stop();
});
