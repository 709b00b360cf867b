import assert from 'node:assert/strict';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

test('the first page of a chat is as fast with many messages as with a few', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'collab-'));
  await using db = await openSqlite(`sqlite:${join(folder.path, 'events.db')}`);
  const messages = documentsOf(db.readModels, messageProjection.readModel);
  const fill = async (chatId: string, count: number): Promise<void> => {
    const stream = buildStreamName('collab', 'chat', 1, 'core', chatId);
    const changes = Array.from({ length: count }, (_, revision) => {
      const messageId = `${chatId}-${revision}`;
      const timestamp = new Date(revision).toISOString();
      const message = { messageId, chatId, authorId: 'ada', content: 'Hello', timestamp, revision };
      return { tenant: 'core', id: messageId, stream, revision, document: message };
    });
    for (let at = 0; at < count; at += 5_000) await messages.write(changes.slice(at, at + 5_000));
  };
  const [few, many] = [100, 20_000];
  await fill('few', few);
  await fill('many', many);
  const query = { tenant: 'core', limit: 50 };
  const open = async (chatId: string): Promise<number> => {
    const from = performance.now();
    const { items, cursor } = await messagesOf(messages, { ...query, chatId });
    const second = await messagesOf(messages, { ...query, chatId, cursor });
    const found = await searchMessages(messages, { ...query, chatId, text: 'hello' });
    const took = performance.now() - from;
    assert.deepEqual([items.length, second.items.length, found.items.length], [50, 50, 50]);
    return took;
  };
  const best = { few: Infinity, many: Infinity };
  for (let round = 0; round < 20; round += 1) {
    best.few = Math.min(best.few, await open('few'));
    best.many = Math.min(best.many, await open('many'));
  }
  // 200 times as many messages; a query that reads all of them would take 100 times as long.
  assert.ok(best.many < 20 * best.few, `${best.few} ms, ${best.many} ms`);
});
