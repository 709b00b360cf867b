// A process that dies around the delivery of a scheduled message: nothing is lost, and nothing comes twice.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { subjects } from '../contracts/subjects.ts';
import { systemClock } from '../foundation/clock.ts';
import { openBus } from '../platform/engines/open-bus.ts';
import { createTempFolder, removeTempFolder } from '../testing/servers/temp-folder.ts';
import { openScheduledMessages } from './scheduled-messages.ts';
import { createTopicLog, type TopicLog } from './topic-log.ts';
import { newMessageId, type TopicMessage } from './topic-message.ts';

const clock = systemClock;

/** Delivers one scheduled message through a log that fails as `spoil` says, until the second look at it. */
async function deliverThrough(
  spoil: (log: TopicLog, turn: number) => TopicLog['append'],
): Promise<readonly string[]> {
  const folder = await createTempFolder('notify');
  await using opened = new AsyncDisposableStack();
  opened.defer(() => removeTempFolder(folder));
  // Ids are forgotten at once: it is not the bus that keeps the second one away.
  const bus = opened.use(await openBus(`sqlite:${join(folder, 'bus.db')}`, { dedupeWindowMs: 1 }));
  const log = createTopicLog(bus, { clock, keptMs: 43_200_000, durability: 'synced' });
  const done = Promise.withResolvers<void>();
  let turn = 0;
  const spoiled: TopicLog = {
    ...log,
    appendOnce: async (message) => {
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
      isWaiting: true,
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
  return found.map(({ id }) => (id === message.id ? 'it' : id));
}

test('killed before it is published, a scheduled message is published by the next one', async () => {
  const stored = await deliverThrough((log, turn) => async (message) => {
    if (turn === 1) throw new Error('killed');
    await log.append(message);
  });
  assert.deepEqual(stored, ['it']);
});

test('killed between its publish and the ack, a scheduled message is not published again', async () => {
  const stored = await deliverThrough((log) => async (message) => {
    await log.append(message);
    throw new Error('killed');
  });
  assert.deepEqual(stored, ['it']);
});
