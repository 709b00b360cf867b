import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { openMemory } from '../../src/engines/memory/index.ts';
import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import { startHttpReceiver } from '../../src/testing/index.ts';
import { runMillrace, workFolder } from '../cli-store-terminal.ts';
import { createWorkspace, newEvent, newEvents, openStore, streamName } from '../store/rig.ts';
import { outboxRunCases } from './run-cases.ts';
import { runOutbox, writeConfig } from './run-process.ts';

outboxRunCases('sqlite', async (folder) => `sqlite:${join(folder, 'events.db')}`);

test('--drain ends when no message is due, after dead letters were reported', async () => {
  await using workspace = await createWorkspace();
  const url = `sqlite:${join(workspace.folder, 'events.db')}`;
  await using receiver = await startHttpReceiver({
    answer({ body }, response) {
      const isRejected = body.includes('bad-0') && !body.includes('outbox.dead-lettered.v1');
      response.writeHead(isRejected ? 400 : 204).end();
    },
  });
  await writeConfig(workspace.folder, receiver.url);
  const env = { MILLRACE_STORE: url, OUTBOX_DEADLETTER_TOPIC: 'webhook:dead' };
  {
    await using store = await openStore('sqlite', url);
    await store.append(streamName(1), [...newEvents('good', 20), ...newEvents('bad', 1)]);
  }
  const first = runOutbox(workspace.folder, env, '--drain');
  const { SENT, DEAD, PENDING } = await first.said('outbox drained');
  assert.deepEqual({ SENT, DEAD, PENDING }, { SENT: 21, DEAD: 1, PENDING: 0 });
  assert.deepEqual(await first.ended, { code: 0, stderr: '' });
  const letters = receiver.requests.filter(({ body }) => body.includes('dead-lettered'));
  const [letter] = letters.map(({ body }) => JSON.parse(body) as { data: Record<string, unknown> });
  assert.equal(letters.length, 1);
  assert.equal(letter?.data['sourceEventId'], 'bad-0');
  assert.match(String(letter?.data['error']), /400/);

  const again = runOutbox(workspace.folder, env, '--drain');
  assert.equal((await again.ended).code, 0);
  assert.equal(receiver.requests.length, 22, 'a message was sent twice');
});

test('reads the events named by ESDB_SUBSCRIPTION_PREFIX from the store of ESDB_CONNECTION_STRING', async () => {
  await using workspace = await createWorkspace();
  await using db = openMemory(kurrentStoreOptions);
  const { store } = db;
  await using server = await startKurrentServer(store, { host: '127.0.0.1', port: 0 });
  await using receiver = await startHttpReceiver();
  await writeConfig(workspace.folder, receiver.url);
  const append = (stream: string, id: string, type: string) =>
    store.append(`${stream}-core-${id}`, [newEvent(id, { type })]);
  await append('shop.payment.v1', 'e1', 'payment.completed.v1');
  await append('shop.item.v1', 'e2', 'item.created.v1');
  await append('shop.account.v1', 'e3', 'account.opened.v1');
  await append('crm.account.v1', 'e4', 'account.opened.v1');
  await append('shop.account.v2', 'e5', 'account.opened.v2');
  const env = {
    ESDB_CONNECTION_STRING: server.url.replace('kurrentdb:', 'esdb:'),
    ESDB_SUBSCRIPTION_PREFIX: 'payment.,account.',
  };
  const whole = { ...env, MILLRACE_OUTBOX: 'sqlite:outbox.db' };
  const contextless = await runOutbox(workspace.folder, whole, '--drain').ended;
  assert.equal(contextless.code, 1);
  assert.match(contextless.stderr, /^CONFIG_INVALID: sub:rig:outbox:v1 names event types.*set bc/);

  await writeConfig(workspace.folder, receiver.url, { bc: 'shop' });
  const { code, stderr } = await runMillrace(['outbox', 'run', '--drain'], {
    cwd: workspace.folder,
    env,
  });
  assert.equal(code, 1);
  assert.match(stderr, /^CONFIG_INVALID: outbox: KurrentDB has no outbox; .*MILLRACE_OUTBOX/);

  const running = runOutbox(workspace.folder, whole, '--drain');
  assert.deepEqual(await running.ended, { code: 0, stderr: '' });
  const keys = receiver.requests.map(({ headers }) => headers['idempotency-key']);
  assert.equal(keys.length, 3);
  assert.deepEqual(new Set(keys), new Set(['e1', 'e3', 'e5']));
});

test('reports an invalid variable or configuration before anything runs', async () => {
  await using folder = await workFolder();
  const run = async (env: Readonly<Record<string, string>>, ...more: readonly string[]) => {
    const { code, stdout, stderr } = await runMillrace(['outbox', 'run', ...more], {
      cwd: folder.path,
      env,
    });
    assert.deepEqual([code, stdout], [1, '']);
    return stderr;
  };
  const wrong = { OUTBOX_CLAIM_BATCH_SIZE: 'many', WEBHOOK_TIMEOUT_MS: '0' };
  assert.match(
    await run(wrong),
    /^CONFIG_INVALID: OUTBOX_CLAIM_BATCH_SIZE must be .*; WEBHOOK_TIMEOUT_MS must be /,
  );
  assert.match(await run({}), /^CONFIG_INVALID: no outbox.config.ts in this folder: .*new outbox/);
  assert.match(await run({}, '--config', 'x.ts'), /^CONFIG_INVALID: file 'x.ts' does not exist/);
  for (const [name, text, problem] of [
    ['broken.mjs', 'throw new Error("no secret")', /broken.mjs cannot be loaded: no secret/],
    ['empty.mjs', 'export const a = 1', /empty.mjs must export defineOutbox/],
    ['odd.mjs', 'export default { destinations: {}, projectors: {} }', /odd.mjs must export/],
  ] as const) {
    await writeFile(join(folder.path, name), text);
    assert.match(await run({}, '--config', name), problem);
  }
  await writeFile(join(folder.path, 'outbox.config.mjs'), 'export default { destinations: {} }');
  assert.match(
    await run({ OUTBOX_DEADLETTER_TOPIC: 'outbox.dead' }),
    /^CONFIG_INVALID: OUTBOX_DEADLETTER_TOPIC needs a destination 'kafka'/,
  );
});

test('millrace new outbox writes a configuration with the name of its context, and does not overwrite it', async () => {
  await using folder = await workFolder();
  const millrace = (...words: readonly string[]) =>
    runMillrace(['new', 'outbox', ...words], { cwd: folder.path });
  const { code, stdout } = await millrace('banking');
  assert.equal(code, 0);
  assert.match(stdout, /^wrote outbox.config.ts\n/);
  const text = await readFile(join(folder.path, 'outbox.config.ts'), 'utf8');
  assert.match(text, /'sub:banking:outbox:v1'/);
  assert.doesNotMatch(text, /sample/);
  assert.match((await millrace('banking')).stderr, /already exists/);
  for (const wrong of [[], ['Banking'], ['banking', 'currency']]) {
    assert.notEqual((await millrace(...wrong)).code, 0);
  }
});
