// A process is killed around the delivery of a scheduled message: the message is delivered exactly once.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { subjects } from '../contracts/subjects.ts';
import { openSqlite } from '../engines/sqlite/index.ts';
import { systemClock } from '../foundation/clock.ts';
import { createTempFolder, removeTempFolder } from '../testing/servers/temp-folder.ts';
import { openScheduledMessages } from './scheduled-messages.ts';
import { createTopicLog, type TopicLog } from './topic-log.ts';
import { newMessageId, type TopicMessage } from './topic-message.ts';

const clock = systemClock;

/** Delivers one scheduled message through a log whose append fails as `spoil` decides. */
async function deliverThrough(
  spoil: (log: TopicLog, turn: number) => TopicLog['append'],
): Promise<readonly string[]> {
  const folder = await createTempFolder('notify');
  await using opened = new AsyncDisposableStack();
  opened.defer(() => removeTempFolder(folder));
  // With a dedupe window of 1 ms, deduplication by the bus cannot hide a second publish.
  const { bus } = opened.use(await openSqlite(join(folder, 'bus.db'), { dedupeWindowMs: 1 }));
  const log = createTopicLog(bus, { clock, keptMs: 43_200_000 });
  const done = Promise.withResolvers<void>();
  let turn = 0;
  const spoiled: TopicLog = {
    ...log,
    append: async (message) => {
      turn += 1;
      await spoil(log, turn)(message);
      done.resolve();
    },
    has: async (message, since) => {
      const isThere = await log.has(message, since);
      if (isThere) done.resolve();
      return isThere;
    },
  };
  const scheduled = opened.use(
    await openScheduledMessages(bus, {
      log: spoiled,
      clock,
      delayMsMax: 60_000,
      onDelivered: () => undefined,
      leaseMs: 200,
    }),
  );
  const nowMs = clock.now();
  const time = Math.floor(nowMs / 1_000);
  const message: TopicMessage = {
    id: newMessageId(nowMs),
    time,
    expires: time + 100,
    event: 'message',
    topic: 't',
    message: 'm',
  };
  await scheduled.schedule(message);
  await done.promise;
  await scheduled[Symbol.asyncDispose]();
  const found = await Array.fromAsync(bus.read(subjects.notify.topic('t')));
  return found.map(({ id }) => (id === message.id ? 'scheduled' : id));
}

test('another process publishes a scheduled message whose process was killed before the publish', async () => {
  const stored = await deliverThrough((log, turn) => async (message) => {
    if (turn === 1) throw new Error('killed');
    await log.append(message);
  });
  assert.deepEqual(stored, ['scheduled']);
});

test('a scheduled message is not published again after a kill between publish and ack', async () => {
  const stored = await deliverThrough((log) => async (message) => {
    await log.append(message);
    throw new Error('killed');
  });
  assert.deepEqual(stored, ['scheduled']);
});
