// The stack of the event flow document, MongoDB and Redis alone, as another program sees it: by the MongoDB driver and
// a Redis client. FerretDB stands for MongoDB; it has neither transactions nor TTL indexes.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { MongoClient } from 'mongodb';
import { createPlatform } from '../../src/platform/index.ts';
import { startPosition } from '../../src/store/index.ts';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import { startRedis } from '../../src/testing/servers/redis-server.ts';
import { onEachMongodb } from '../../src/testing/support/mongodb/mongodb-targets.ts';
import { createWorkspace, isText, until } from '../store/rig.ts';
import type { StackInput } from './stacks-mongodb-main.ts';
import { chatModule, post, tagParser } from './stacks-mongodb-module.ts';

const messages = 24;
const weekMs = 7 * 24 * 3_600_000;

onEachMongodb('the stack of the event flow document', (target) => {
  test('MongoDB and Redis are a complete deployment, and a killed process repeats no effect', async () => {
    await using workspace = await createWorkspace();
    await using redis = await startRedis({ appendOnly: 'always' });
    await using client = new MongoClient(target.url());
    await using opened = new AsyncDisposableStack();
    const keys = new Redis(redis.url);
    opened.defer(() => keys.disconnect());
    const database = target.newDatabase();
    const db = client.db(database);
    const url = new URL(target.url());
    url.pathname = `/${database}`;
    const effects = join(workspace.folder, 'effects');
    const input: StackInput = {
      store: url.href,
      keys: redis.url,
      effects,
      localUrl: `sqlite:${join(workspace.folder, 'local.db')}`,
    };
    const start = async (killAt?: string): Promise<Child> => {
      const script = new URL('./stacks-mongodb-main.ts', import.meta.url);
      const child = opened.use(startChild(script, { input: { ...input, killAt } }));
      await child.message(isText('started'));
      return child;
    };
    const { store, localUrl } = input;
    await using platform = await createPlatform({
      engines: { store, keys: redis.url },
      roles: ['api'],
      modules: [chatModule(effects)],
      isProduction: true,
      localUrl,
    });
    const chatId = randomUUID();
    const say = (content: string) =>
      platform.handle({ tenant: 'core', id: chatId, command: post({ content }) });
    const processed = db.collection('processed_events');
    const confirmed = () =>
      processed.countDocuments({ handlerName: tagParser, processedAt: { $ne: null } });

    const claimed = messages / 2 - 1;
    const first = await start(`message ${claimed}`);
    for (let index = 0; index < claimed; index += 1) await say(`message ${index}`);
    await until('the effects are confirmed', async () => (await confirmed()) === claimed);
    await say(`message ${claimed}`);
    assert.equal(await first.ended, 'SIGKILL');
    assert.equal(await processed.countDocuments({ handlerName: tagParser }), claimed + 1);
    // The next process gets the whole history again.
    await platform.subscriptions.pause(tagParser);
    await platform.subscriptions.reset(tagParser, { to: startPosition, by: 'ada' });
    await platform.subscriptions.resume(tagParser);
    for (let index = messages / 2; index < messages; index += 1) await say(`message ${index}`);
    await say('broken');
    const second = await start();
    await until('all effects are confirmed', async () => (await confirmed()) === messages);

    const events = await db.collection('events').find({ aggregateId: chatId }).toArray();
    assert.deepEqual(
      events.map(({ version }) => Number(version)).toSorted((a, b) => a - b),
      Array.from({ length: messages + 1 }, (_, index) => index + 1),
    );
    assert.deepEqual(
      new Set(events.map(({ aggregateType }) => String(aggregateType))),
      new Set(['chat']),
    );

    const marks = await processed.find({ handlerName: tagParser }).toArray();
    const ids = new Set(events.map(({ _id }) => String(_id)));
    for (const { eventId, processedAt, expiresAt } of marks) {
      assert.ok(ids.has(String(eventId)));
      const keptMs = (expiresAt as Date).getTime() - (processedAt as Date).getTime();
      assert.ok(keptMs > weekMs - 60_000 && keptMs <= weekMs);
    }

    const letters = db.collection('dead_letter_queue');
    await until('the dead letter is stored', async () => (await letters.countDocuments()) === 1);
    const letter = await letters.findOne({ aggregateId: chatId });
    assert.deepEqual(
      [letter?.['eventType'], letter?.['payload'], letter?.['status'], letter?.['error']],
      ['chat.message-posted.v1', { content: 'broken' }, 'pending', 'invalid syntax'],
    );

    const snapshot = await db.collection('chat_snapshots').findOne({ aggregateId: chatId });
    assert.deepEqual([snapshot?.['type'], snapshot?.['messages']], ['task', snapshot?.['version']]);
    assert.ok(Number(snapshot?.['version']) >= 20);

    const document = `app:{core}:collab:chat:v1:${chatId}`;
    await until('the read model is complete', async () =>
      ((await keys.get(document)) ?? '').includes(String(messages + 1)),
    );
    assert.equal(await second.kill(), 'SIGKILL');
    // Each effect once, and no file but theirs.
    const lines = readFileSync(effects, 'utf8').trim().split('\n');
    assert.deepEqual([lines.length, new Set(lines).size], [messages, messages]);
    assert.deepEqual(readdirSync(workspace.folder), ['effects']);
  });
});
