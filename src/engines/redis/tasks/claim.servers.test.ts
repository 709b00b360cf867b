import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import { startWorkers } from '../../../tasks/run/start-workers.ts';
import { task as defineTask } from '../../../tasks/task-definition.ts';
import { taskType } from '../../../tasks/task-type.ts';
import { email } from '../../../testing/conformance/tasks/fixture.ts';
import type { ClaimOptions } from '../../../tasks/tasks.ts';
import { seededRandom } from '../../../testing/seeded-random.ts';
import { startRedis } from '../../../testing/servers/redis-server.ts';
import { ownedTasks } from '../../../testing/owned-tasks.ts';
import { connectRedis } from '../connection/connection.ts';
import { openRedis } from '../open-redis.ts';

const server = await startRedis();
after(() => server[Symbol.asyncDispose]());
const types = [taskType(email)];
const job = { type: email, payload: { n: 1 } };
const waiting: ClaimOptions = { worker: 'w-1', types: { [email]: 5 }, waitMs: 60_000 };

async function setUp() {
  const keyPrefix = `${randomUUID()}:`;
  const open = async () => ownedTasks(await openRedis(server.url, { keyPrefix }), { types });
  const [tasks, other, connection] = await Promise.all([open(), open(), connectRedis(server.url)]);
  return {
    tasks,
    other,
    connection,
    async [Symbol.asyncDispose]() {
      await Promise.all([tasks, other, connection].map((each) => each[Symbol.asyncDispose]()));
    },
  };
}

test('every job has one owner, whenever the wait times out', async () => {
  await using rig = await setUp();
  const random = seededRandom(7);
  for (let n = 0; n < 300; n += 1) {
    const stopping = new AbortController();
    const claiming = rig.tasks.claim({ ...waiting, signal: stopping.signal }).catch((error) => {
      assert.equal((error as { readonly code?: string }).code, 'ABORTED');
      return [];
    });
    for (let turns = random.below(10); turns > 0; turns -= 1) await new Promise(setImmediate);
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
