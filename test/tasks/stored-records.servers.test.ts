// Other programs read the state of a job from Redis and NATS by its id, as docs/tasks.md describes the records.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { Redis } from 'ioredis';
import { openNats } from '../../src/engines/nats/index.ts';
import { openRedis } from '../../src/engines/redis/index.ts';
import { createTasks, taskType, type TaskEngine, type Tasks } from '../../src/tasks/index.ts';
import { claimOne, claimSome } from '../../src/testing/conformance/tasks/fixture.ts';
import { startNats } from '../../src/testing/servers/nats-server.ts';
import { startRedis } from '../../src/testing/servers/redis-server.ts';

const page = await readFile(new URL('../../docs/tasks.md', import.meta.url), 'utf8');

/** The names in code font that follow a text of the page, up to the end of the sentence or the cell. */
function namesAfter(text: string): readonly string[] {
  const [, rest = ''] = page.split(text);
  const [sentence = ''] = rest.split(/[|.]/, 1);
  return [...sentence.matchAll(/`(\w+)`/g)].map(([, name = '']) => name);
}

/** A completed job; the id is without its type. */
async function completedJob(engine: TaskEngine): Promise<{ readonly suffix: string }> {
  await using tasks: Tasks = createTasks(engine, { types: [taskType('email-send')] });
  const { id } = await tasks.enqueue({
    type: 'email-send',
    payload: { to: 'Zoë' },
    tenant: 'acme',
    priority: 7,
    labels: { region: 'eu', size: 'l' },
  });
  await tasks.complete((await claimOne(tasks)).token, { sent: 1 });
  return { suffix: id.slice('email-send.'.length) };
}

const fields = { tenant: 'acme', priority: '7', fence: '1', failures: '0' };

test('a raw Redis client reads state, fields, result and payload of a job by its id', async () => {
  await using server = await startRedis();
  await using engine = await openRedis(server.url);
  const { suffix } = await completedJob(engine.tasks);

  const client = new Redis(server.url);
  const key = (kind: string): string =>
    `millrace.task:{gbe:tasks:email-send:queue}:${kind}:${suffix}`;
  const record = (await client.get(key('j'))) ?? '';
  const [, payload = ''] = ((await client.get(key('p'))) ?? '').split('\n');
  client.disconnect();

  const lines = record.split('\n');
  const names = namesAfter('| 1 to 18 |');
  assert.equal(names.length, 18);
  const read = Object.fromEntries(names.map((name, at) => [name, lines[at]]));
  for (const [name, value] of Object.entries(fields)) assert.equal(read[name], value, name);
  assert.equal(read['state'], 'C');
  assert.ok(page.includes('`C` completed'));
  assert.ok(Number(read['endedAtMs']) >= Number(read['enqueuedAtMs']));
  assert.deepEqual(lines.slice(18, -1), ['', 'region=eu', 'size=l', '']);
  assert.deepEqual((JSON.parse(lines.at(-1) ?? '') as { result: unknown }).result, { sent: 1 });
  assert.deepEqual(JSON.parse(payload), { to: 'Zoë' });
});

test('fifty types have three streams each, which the first jobs create', async () => {
  await using server = await startRedis();
  await using engine = await openRedis(server.url);
  const names = Array.from({ length: 50 }, (_, index) => `type${index}`);
  const types = names.map((name) => taskType(name));
  await using tasks: Tasks = createTasks(engine.tasks, { types });
  for (const type of names) await tasks.enqueue({ type, payload: {} });
  const capacity = Object.fromEntries(names.map((name) => [name, 1]));
  for (const { token } of await claimSome(tasks, 50, { types: capacity })) {
    await tasks.progress(token, { percent: 50 });
    await tasks.complete(token);
  }
  const client = new Redis(server.url);
  const streams = await client.keys('gbe:tasks:*');
  client.disconnect();
  const expected = names.flatMap((name) =>
    ['queue', 'progress', 'terminal'].map((stream) => `gbe:tasks:${name}:${stream}`),
  );
  assert.deepEqual(streams.toSorted(), expected.toSorted());
});

test('a raw NATS client reads state, fields, result and payload of a job by its id', async () => {
  await using server = await startNats();
  await using engine = await openNats(server.url);
  const { suffix } = await completedJob(engine.tasks);

  const connection = await connect({ servers: server.url });
  const { streams } = await jetstreamManager(connection);
  const query = { last_by_subj: `$KV.millrace-tasks.state.job.email-send.${suffix}` };
  const text = (await streams.getMessage('KV_millrace-tasks', query))?.string() ?? '';
  await connection.close();

  const [first = ''] = text.split('\n', 1);
  let rest = text.slice(first.length + 1);
  const [version, head, lengths] = JSON.parse(first) as [number, unknown[], [string, number][]];
  const names = namesAfter('The head is the list of ');
  assert.deepEqual([version, head.length], [1, names.length]);
  const read = Object.fromEntries(names.map((name, at) => [name, head[at]]));
  for (const [name, value] of Object.entries(fields)) assert.equal(String(read[name]), value, name);
  assert.deepEqual([read['state'], read['labels']], ['completed', ['region=eu', 'size=l']]);
  const parts = lengths.map(([name, length]) => {
    const part = rest.slice(0, length);
    rest = rest.slice(length);
    return [name, JSON.parse(part)] as const;
  });
  const stored = Object.fromEntries(parts) as Record<string, { result?: unknown }>;
  assert.deepEqual([stored['run']?.result, stored['payload']], [{ sent: 1 }, { to: 'Zoë' }]);
});
