import assert from 'node:assert/strict';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { openSqlite } from 'millrace/engines/sqlite';
import { buildStreamName } from 'millrace/contracts';
import { documentsOf } from 'millrace/projections';
import { messageProjection, messagesOf, searchMessages } from './chat-read-models.ts';
import { readModelsStory } from './testing/read-models-story.ts';

test('the read models return the same results on SQLite', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'collab-'));
  await readModelsStory({ store: `sqlite:${join(folder.path, 'events.db')}` });
});

test('the pages of a chat are read by index, not by a scan of all messages', async (t) => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'collab-'));
  const path = join(folder.path, 'events.db');
  await using db = await openSqlite(`sqlite:${path}`);
  const messages = documentsOf(db.readModels, messageProjection.readModel);
  const chatId = 'c-1';
  const stream = buildStreamName('collab', 'chat', 1, 'core', chatId);
  await messages.write(
    Array.from({ length: 120 }, (_, revision) => {
      const messageId = `${chatId}-${revision}`;
      const timestamp = new Date(revision).toISOString();
      const message = { messageId, chatId, authorId: 'ada', content: 'Hello', timestamp, revision };
      return { tenant: 'core', id: messageId, stream, revision, document: message };
    }),
  );
  const prepare = t.mock.method(DatabaseSync.prototype, 'prepare');
  const query = { tenant: 'core', limit: 50, chatId };
  const { items, cursor } = await messagesOf(messages, query);
  const second = await messagesOf(messages, { ...query, cursor });
  const found = await searchMessages(messages, { ...query, text: 'hello' });
  assert.deepEqual([items.length, second.items.length, found.items.length], [50, 50, 50]);
  const reads = prepare.mock.calls
    .map((call) => call.arguments[0])
    .filter((sql) => sql.includes('read_ranges'));
  assert.ok(reads.length > 0);
  using reader = new DatabaseSync(path, { readOnly: true });
  for (const sql of reads) {
    const plan = reader.prepare(`explain query plan ${sql}`).all();
    const steps = plan.map(({ detail }) => detail).join('\n');
    for (const table of ['r', 'd'])
      assert.match(steps, new RegExp(`^SEARCH ${table} USING`, 'm'), sql);
  }
});
