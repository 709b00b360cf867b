// Every reader gets each message once and in the order of the log, at whatever moment it joins.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { openSqlite } from '../engines/sqlite/index.ts';
import type { Bus } from '../bus/bus.ts';
import { subjects } from '../contracts/subjects.ts';
import { systemClock } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';
import { readPublishParams } from './publish-params.ts';
import { requestParams } from './request-params.ts';
import type { Since } from './read-params.ts';
import type { TopicMessage } from './topic-message.ts';
import { openTopics, type Topics } from './topics.ts';
import { bodyOf } from '../server/topics/ntfy-body.ts';
import { seededRandom } from '../testing/seeded-random.ts';
import { createTempFolder, removeTempFolder } from '../testing/servers/temp-folder.ts';

const topic = 'alerts';

interface Opened extends AsyncDisposable {
  readonly bus: Bus;
  readonly topics: Topics;
  /** Locks the file, so that nothing is committed until the result is called. */
  readonly lock: () => () => void;
}

async function open(busyTimeoutMs = 60_000): Promise<Opened> {
  await using stack = new AsyncDisposableStack();
  const folder = await createTempFolder('notify');
  stack.defer(() => removeTempFolder(folder));
  const path = join(folder, 'bus.db');
  const { bus } = stack.use(await openSqlite(path, { busyTimeoutMs }));
  const topics = stack.use(await openTopics(bus));
  const all = stack.move();
  return {
    bus,
    topics,
    lock() {
      const database = new DatabaseSync(path, { timeout: 30_000 });
      database.exec('begin immediate');
      return () => {
        database.exec('rollback');
        database.close();
      };
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

function publish(topics: Topics, text: string): Promise<TopicMessage> {
  const params = readPublishParams(requestParams({}, undefined), {
    pathSequenceId: undefined,
    nowMs: systemClock.now(),
    rules: topics.rules,
  });
  const body = bodyOf(Buffer.from(text), 4_096);
  return topics.publish({ topic, params, body, visitor: 'ip:1', isExempt: true });
}

interface Reading extends Disposable {
  readonly seen: string[];
  readonly ids: string[];
  /** Resolves once the stored messages were delivered. */
  readonly live: Promise<void>;
}

function read(topics: Topics, since: Since = { kind: 'none' }): Reading {
  const seen: string[] = [];
  const ids: string[] = [];
  const following = topics.follow(
    {
      topics: [topic],
      filter: undefined,
      deliver({ messages }) {
        seen.push(...messages.map(({ message }) => message.message ?? message.event));
        ids.push(...messages.map(({ message }) => message.id));
      },
      cut: () => undefined,
    },
    { topics: [topic], since, withScheduled: false },
    () => undefined,
  );
  return {
    seen,
    ids,
    live: following.then(() => undefined),
    [Symbol.dispose]: () => void following.then((each) => each[Symbol.dispose]()),
  };
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const endMs = systemClock.now() + 30_000;
  while (!holds()) {
    if (systemClock.now() > endMs) assert.fail(`did not happen within 30 s: ${what}`);
    await systemClock.sleep(1);
  }
}

const stored = async (topics: Topics): Promise<string[]> =>
  (await topics.read({ topics: [topic], since: { kind: 'all' }, withScheduled: false })).map(
    ({ message, event }) => message ?? event,
  );

test('no reader sees a message whose commit failed', async () => {
  await using opened = await open(50);
  const { topics, lock } = opened;
  await publish(topics, 'one');
  using reader = read(topics);
  await reader.live;
  const unlock = lock();
  await assert.rejects(publish(topics, 'failed'), (error) => hasCode(error, 'BUS_UNAVAILABLE'));
  unlock();
  await publish(topics, 'two');
  await until('the next message is read', () => reader.seen.length > 0);
  assert.deepEqual(reader.seen, ['two']);
  assert.deepEqual(await stored(topics), ['one', 'two']);
});

test('a reader that joins many others gets each message once', async () => {
  await using opened = await open();
  const { topics } = opened;
  using many = new DisposableStack();
  const readers = Array.from({ length: 40 }, () => many.use(read(topics)));
  await Promise.all(readers.map(({ live }) => live));
  const publishing = ['one', 'two', 'three'].map((text) => publish(topics, text));
  const late = many.use(read(topics, { kind: 'all' }));
  await Promise.all([...publishing, late.live]);
  await publish(topics, 'four');
  const all = [...readers, late];
  await until('all messages are read', () => all.every(({ seen }) => seen.length >= 4));
  for (const { seen } of all) assert.deepEqual(seen, ['one', 'two', 'three', 'four']);
  assert.deepEqual(await stored(topics), ['one', 'two', 'three', 'four']);
});

test('readers that join at random moments get the order of the log', async () => {
  await using opened = await open();
  const { bus, topics, lock } = opened;
  using steady = read(topics);
  await steady.live;
  for (let seed = 1; seed <= 6; seed += 1) {
    const random = seededRandom(seed);
    const readers: { readonly from: number; readonly reading: Reading }[] = [];
    const before = steady.ids.length;
    const work: Promise<unknown>[] = [];
    let unlock: (() => void) | undefined;
    for (let step = 0; step < 60; step += 1) {
      const chance = random.below(100);
      const text = `${seed}.${step}`;
      if (chance < 55) work.push(publish(topics, text));
      else if (chance < 65) {
        // Modules publish to the subject of a topic without the topics.
        const subject = subjects.notify.topic(topic);
        work.push(bus.publish({ subject, payload: { message: text } }));
      } else if (chance < 75) {
        const from = steady.ids.length;
        const since: Since =
          from === 0 ? { kind: 'all' } : { kind: 'id', id: steady.ids[from - 1] ?? '' };
        readers.push({ from, reading: read(topics, since) });
      } else if (chance < 85) {
        unlock?.();
        unlock = unlock === undefined ? lock() : undefined;
      } else if (chance < 95) await systemClock.sleep(0);
      else await systemClock.sleep(2);
    }
    unlock?.();
    await Promise.all(work);
    await Promise.all(readers.map(({ reading }) => reading.live));
    await publish(topics, `end of ${seed}`);
    const log = await stored(topics);
    await until('all messages are read', () => steady.seen.length === log.length);
    assert.deepEqual(steady.seen, log, `seed ${seed}`);
    assert.ok(steady.ids.length > before);
    for (const { from, reading } of readers) {
      await until('the last message is read', () => reading.seen.length >= log.length - from);
      assert.deepEqual(reading.seen, log.slice(from), `seed ${seed}, from ${from}`);
      reading[Symbol.dispose]();
    }
  }
});
