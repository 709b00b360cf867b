import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { sqliteInbox } from './inbox.ts';
import { startChild } from '../../../testing/child-process.ts';
import { createTempFolder, removeTempFolder } from '../../../testing/servers/temp-folder.ts';

const folder = await createTempFolder('inbox');
after(() => removeTempFolder(folder));
const script = new URL('../../../testing/support/sqlite/receive-main.ts', import.meta.url);

test('each message has one effect when two processes receive it at the same time', async () => {
  const path = join(folder, 'two.db');
  const count = 100;
  const database = new DatabaseSync(path, { timeout: 60_000 });
  database.exec('pragma journal_mode = wal; create table effects (key text not null)');
  sqliteInbox().migrate(database);
  await using one = startChild(script, { input: { path, count } });
  await using two = startChild(script, { input: { path, count } });
  const children = [one, two];
  const isReady = (said: unknown): said is 'ready' => said === 'ready';
  await Promise.all(children.map((child) => child.message(isReady)));
  for (const child of children) child.send('go');
  const isDone = (said: unknown): said is { handled: number } =>
    typeof said === 'object' && said !== null && 'handled' in said;
  const results = await Promise.all(children.map((child) => child.message(isDone)));
  assert.equal(
    results.reduce((sum, { handled }) => sum + handled, 0),
    count,
  );
  const row = database.prepare('select count(*) as n, count(distinct key) as d from effects').get();
  assert.deepEqual({ ...row }, { n: count, d: count });
  database.close();
});
