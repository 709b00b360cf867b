import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { createTasks } from '../../../tasks/create-tasks.ts';
import { taskType } from '../../../tasks/task-type.ts';
import { startNats } from '../../../testing/servers/nats-server.ts';
import { openNats } from '../open-nats.ts';

const server = await startNats();
after(() => server[Symbol.asyncDispose]());

const minuteMs = 60_000;

test('deletes values that no job refers to after the grace period, and keeps the others', async () => {
  await using nats = await openNats(server.url, { prefix: 'orphans' });
  const engine = nats.tasks;
  await using tasks = createTasks(engine, { types: [taskType('email-send')] });
  await using stack = new AsyncDisposableStack();
  const connection = await connect({ servers: server.url });
  stack.defer(() => connection.close());
  const manager = await jetstreamManager(connection);
  const values = async (): Promise<readonly string[]> => {
    const front = '$KV.orphans-tasks.value.';
    const info = await manager.streams.info('KV_orphans-tasks', { subjects_filter: `${front}>` });
    return Object.keys(info.state.subjects ?? {}).map((each) => each.slice(front.length));
  };

  const payload = { text: 'x'.repeat(40_000) };
  const { id } = await tasks.enqueue({ type: 'email-send', payload });
  const named = await values();
  assert.ok(named.length > 0 && named.every((each) => each.startsWith(`${id}.`)), named.join());
  // Simulates a process that died before it wrote the job: one value of an existing job, one of a job that never existed.
  const unknown = 'email-send.0199aaaa-0000-7000-8000-000000000000';
  const js = manager.jetstream();
  for (const owner of [id, unknown]) {
    await js.publish(`$KV.orphans-tasks.value.${owner}.torn`, '{"step:load":"…"}');
  }
  const nowMs = Date.now();
  await engine.tidy(nowMs);
  await engine.tidy(nowMs + 9 * minuteMs);
  assert.equal((await values()).length, named.length + 2);
  await engine.tidy(nowMs + 10 * minuteMs);
  assert.deepEqual((await values()).toSorted(), named.toSorted());
  assert.deepEqual((await tasks.get(id))?.payload, payload);

  // The next pass finds the values that a process left when it died during the removal of a job.
  const [job] = await tasks.claim({ worker: 'w', types: { 'email-send': 1 }, waitMs: 0 });
  if (job === undefined) assert.fail('nothing came');
  await tasks.complete(job.token);
  await js.publish(`$KV.orphans-tasks.state.job.${id}`, '');
  await engine.tidy(nowMs + 80 * minuteMs);
  await engine.tidy(nowMs + 91 * minuteMs);
  assert.deepEqual(await values(), []);
});
