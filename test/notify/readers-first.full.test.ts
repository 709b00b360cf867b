// Readers first: whatever happens between the hand-out and the commit, all see one order, and each message once.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { sqliteBus } from '../../src/adapters/sqlite/bus/bus.ts';
import type { Bus } from '../../src/bus/bus.ts';
import { subjects } from '../../src/contracts/subjects.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import { hasCode } from '../../src/foundation/error.ts';
import { readPublishParams } from '../../src/notify/publish-params.ts';
import { requestParams } from '../../src/notify/request-params.ts';
import type { Since } from '../../src/notify/since.ts';
import type { TopicMessage } from '../../src/notify/topic-message.ts';
import { openTopics, type Topics } from '../../src/notify/topics.ts';
import { startChild } from '../../src/testing/child-process.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import { createTempFolder, removeTempFolder } from '../../src/testing/servers/temp-folder.ts';
import { createPlatform } from '../../src/platform/create-platform.ts';
import { openNtfy } from '../../src/server/ntfy/open-ntfy.ts';
import { startNtfyServer } from '../../src/server/ntfy/start-ntfy-server.ts';
import { bodyOf } from '../../src/server/ntfy/ntfy-body.ts';
import { poll, publish as publishTo } from './ntfy-case.ts';

const topic = 'alerts';

interface Opened extends AsyncDisposable {
  readonly bus: Bus;
  readonly topics: Topics;
  readonly path: string;
  /** Nothing is committed until it is released: the file is somebody else's meanwhile. */
  readonly hold: () => () => void;
}

async function open(busyTimeoutMs = 60_000): Promise<Opened> {
  await using stack = new AsyncDisposableStack();
  const folder = await createTempFolder('notify');
  stack.defer(() => removeTempFolder(folder));
  const path = join(folder, 'bus.db');
  const bus = stack.use(await sqliteBus(path, { busyTimeoutMs }));
  const topics = stack.use(await openTopics(bus, { durability: 'readers-first' }));
  const all = stack.move();
  return {
    bus,
    topics,
    path,
    hold() {
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

function publish(topics: Topics, text: string, query = ''): Promise<TopicMessage> {
  const params = readPublishParams(requestParams({}, new URLSearchParams(query)), {
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
  /** Everything that was there has come. */
  readonly live: Promise<void>;
}

function read(topics: Topics, since: Since = { kind: 'none' }, filter?: string): Reading {
  const seen: string[] = [];
  const ids: string[] = [];
  const following = topics.follow(
    {
      topics: [topic],
      filter: filter === undefined ? undefined : ({ message = '' }) => message.includes(filter),
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
    if (systemClock.now() > endMs) assert.fail(`it never happened: ${what}`);
    await systemClock.sleep(1);
  }
}

const texts = async (topics: Topics): Promise<string[]> =>
  (await topics.read({ topics: [topic], since: { kind: 'all' }, withScheduled: false })).map(
    ({ message, event }) => message ?? event,
  );

test('a reader has a message before it is stored, its publisher an answer when it is', async () => {
  await using opened = await open();
  const { topics, hold } = opened;
  using reader = read(topics);
  await reader.live;
  const release = hold();
  let isAnswered = false;
  const answered = publish(topics, 'one').then(() => (isAnswered = true));
  await until('it is read', () => reader.seen.length === 1);
  assert.equal(isAnswered, false);
  release();
  await answered;
  await publish(topics, 'two');
  assert.deepEqual(reader.seen, ['one', 'two']);
  assert.deepEqual(await texts(topics), ['one', 'two']);
});

test('whoever joins between the hand-out and the commit gets it once, in its place', async () => {
  await using opened = await open();
  const { topics, hold } = opened;
  await publish(topics, 'kept');
  using early = read(topics);
  await early.live;
  const release = hold();
  const publishing = [publish(topics, 'one'), publish(topics, 'two')];
  await until('both are read', () => early.seen.length === 2);
  const [one = '', two = ''] = early.ids;
  using fresh = read(topics);
  using all = read(topics, { kind: 'all' });
  using behindOne = read(topics, { kind: 'id', id: one });
  using behindTwo = read(topics, { kind: 'id', id: two });
  using some = read(topics, { kind: 'none' }, 'o');
  using few = read(topics, { kind: 'all' }, 'e');
  // This one reads nothing that is stored, and is not kept waiting.
  await fresh.live;
  publishing.push(publish(topics, 'three'));
  await until('it goes on in order', () => fresh.seen.length === 3);
  release();
  await Promise.all(publishing);
  await Promise.all([all.live, behindOne.live, behindTwo.live, some.live, few.live]);
  await publish(topics, 'four');
  assert.deepEqual(early.seen, ['one', 'two', 'three', 'four']);
  assert.deepEqual(fresh.seen, ['one', 'two', 'three', 'four']);
  assert.deepEqual(all.seen, ['kept', 'one', 'two', 'three', 'four']);
  assert.deepEqual(behindOne.seen, ['two', 'three', 'four']);
  assert.deepEqual(behindTwo.seen, ['three', 'four']);
  assert.deepEqual(some.seen, ['one', 'two', 'four']);
  assert.deepEqual(few.seen, ['kept', 'one', 'three']);
  assert.deepEqual(await texts(topics), ['kept', 'one', 'two', 'three', 'four']);
});

test('a commit that fails is told to the publisher; readers have seen it, and the next come right', async () => {
  await using opened = await open(50);
  const { topics, hold } = opened;
  await publish(topics, 'kept');
  using reader = read(topics);
  await reader.live;
  const release = hold();
  const failing = publish(topics, 'lost');
  const isRejected = assert.rejects(failing, (error) => hasCode(error, 'BUS_UNAVAILABLE'));
  await until('it is read', () => reader.seen.length === 1);
  using joined = read(topics, { kind: 'all' });
  await isRejected;
  release();
  await joined.live;
  using behind = read(topics, { kind: 'id', id: reader.ids[0] ?? '' });
  await behind.live;
  await publish(topics, 'next');
  assert.deepEqual(reader.seen, ['lost', 'next']);
  // Nobody is told of it any more.
  assert.deepEqual(joined.seen, ['kept', 'next']);
  // As with ntfy: an id that is not there is behind nothing.
  assert.deepEqual(behind.seen, ['kept', 'next']);
  assert.deepEqual(await texts(topics), ['kept', 'next']);
});

test('what is published past the topics keeps its place among them', async () => {
  await using opened = await open();
  const { bus, topics, hold } = opened;
  using reader = read(topics);
  await reader.live;
  await publish(topics, 'zero');
  const release = hold();
  // As a customer's notification comes to a topic.
  const past = (text: string): Promise<unknown> =>
    bus.publish({ subject: subjects.notify.topic(topic), payload: { message: text } });
  const all = [publish(topics, 'one')];
  await until('the first is read', () => reader.seen.length === 2);
  const others = [past('two'), publish(topics, 'three'), past('four'), publish(topics, 'five')];
  release();
  await Promise.all([...all, ...others]);
  await until('all are read', () => reader.seen.length === 6);
  assert.deepEqual(reader.seen, await texts(topics));
  assert.deepEqual(reader.seen.slice(0, 3), ['zero', 'one', 'two']);
});

test('messages, deletes, clears and what is not kept come in the order of the log', async () => {
  await using opened = await open();
  const { topics, hold } = opened;
  using reader = read(topics);
  await reader.live;
  const release = hold();
  const change = { topic, sequenceId: 'backup', visitor: 'ip:1', isExempt: true };
  const deeds = [
    () => publish(topics, 'one', 'sid=backup'),
    () => topics.change('message_clear', change),
    () => publish(topics, 'gone', 'cache=no'),
    () => publish(topics, 'push', 'up=1'),
    () => topics.change('message_delete', change),
  ];
  const all: Promise<unknown>[] = [];
  for (const deed of deeds) {
    all.push(deed());
    await until('it is read', () => reader.seen.length === all.length);
  }
  release();
  await Promise.all(all);
  const expected = ['one', 'message_clear', 'gone', 'push', 'message_delete'];
  assert.deepEqual(reader.seen, expected);
  const kept = expected.filter((text) => text !== 'gone');
  assert.deepEqual(await texts(topics), kept);
});

test('many readers have what came together at once, and whoever joins among them has it once', async () => {
  await using opened = await open();
  const { topics, hold } = opened;
  using many = new DisposableStack();
  const readers = Array.from({ length: 40 }, () => many.use(read(topics)));
  await Promise.all(readers.map(({ live }) => live));
  const release = hold();
  const all = ['one', 'two', 'three'].map((text) => publish(topics, text));
  // Given out at the end of the turn: somebody comes before that.
  await Promise.resolve();
  const joined = many.use(read(topics));
  await joined.live;
  await until('all are read', () => readers.every(({ seen }) => seen.length === 3));
  const late = many.use(read(topics, { kind: 'all' }));
  release();
  await Promise.all([...all, late.live]);
  await publish(topics, 'four');
  await until('it is read', () => [...readers, joined, late].every(({ seen }) => seen.length >= 4));
  for (const { seen } of [...readers, joined, late]) {
    assert.deepEqual(seen, ['one', 'two', 'three', 'four']);
  }
  assert.deepEqual(await texts(topics), ['one', 'two', 'three', 'four']);
});

test('one process has the topics of a file; another reads them, and is told why it may not publish', async () => {
  const first = await open();
  const { path } = first;
  const isClaimed = (error: unknown): boolean => hasCode(error, 'BUS_CLAIMED');
  await using other = await sqliteBus(path);
  await assert.rejects(openTopics(other, { durability: 'readers-first' }), isClaimed);
  await using theirs = await openTopics(other);
  using reader = read(theirs);
  await reader.live;
  await publish(first.topics, 'one');
  await assert.rejects(publish(theirs, 'two'), isClaimed);
  await until('the other process has it', () => reader.seen.length === 1);
  await other.publish({ subject: 'gbe.events.system.health', payload: 1 });
  await first.topics[Symbol.asyncDispose]();
  await publish(theirs, 'three');
  assert.deepEqual(await texts(theirs), ['one', 'three']);
  await first[Symbol.asyncDispose]();
});

test('a configuration says it, and a second server of the same file does not start', async () => {
  const folder = await createTempFolder('notify');
  await using stack = new AsyncDisposableStack();
  stack.defer(() => removeTempFolder(folder));
  const engines = { store: `sqlite:${folder}/events.db` };
  const options = {
    settings: { durability: 'readers-first' },
    isLoopback: true,
    cwd: folder,
    url: () => undefined,
  } as const;
  const platform = stack.use(await createPlatform({ engines }));
  const server = stack.use(await startNtfyServer(stack.use(await openNtfy(platform, options))));
  const second = stack.use(await createPlatform({ engines }));
  await assert.rejects(
    () => openNtfy(second, options),
    (error) => hasCode(error, 'BUS_CLAIMED'),
  );
  const sent = await publishTo(server, topic, { body: 'one' });
  assert.deepEqual(await poll(server, topic), [sent]);
});

test('whoever is killed has the topics no longer', async () => {
  const folder = await createTempFolder('notify');
  await using stack = new AsyncDisposableStack();
  stack.defer(() => removeTempFolder(folder));
  const path = join(folder, 'bus.db');
  const script = new URL('./ntfy-process-main.ts', import.meta.url);
  const more = { durability: 'readers-first' };
  const child = stack.use(startChild(script, { input: { bus: `sqlite:${path}`, folder, more } }));
  const isUrl = (message: unknown): message is { readonly url: string } =>
    typeof (message as { readonly url?: unknown }).url === 'string';
  const { url } = await child.message(isUrl);
  const bus = stack.use(await sqliteBus(path));
  const topics = stack.use(await openTopics(bus));
  const isClaimed = (error: unknown): boolean => hasCode(error, 'BUS_CLAIMED');
  await assert.rejects(publish(topics, 'refused'), isClaimed);
  await publishTo({ url }, topic, { body: 'one' });
  await child.kill('SIGKILL');
  await publish(topics, 'two');
  assert.deepEqual(await texts(topics), ['one', 'two']);
});

test('whatever is published and read when, every reader has the order of the log', async () => {
  await using opened = await open();
  const { bus, topics, hold } = opened;
  using steady = read(topics);
  await steady.live;
  for (let seed = 1; seed <= 12; seed += 1) {
    const random = seededRandom(seed);
    const readers: { readonly from: number; readonly reading: Reading }[] = [];
    const before = steady.ids.length;
    const work: Promise<unknown>[] = [];
    let release: (() => void) | undefined;
    for (let step = 0; step < 60; step += 1) {
      const chance = random.below(100);
      const text = `${seed}.${step}`;
      if (chance < 55) work.push(publish(topics, text));
      else if (chance < 65) {
        const subject = subjects.notify.topic(topic);
        work.push(bus.publish({ subject, payload: { message: text } }));
      } else if (chance < 75) {
        const from = steady.ids.length;
        const since: Since =
          from === 0 ? { kind: 'all' } : { kind: 'id', id: steady.ids[from - 1] ?? '' };
        readers.push({ from, reading: read(topics, since) });
      } else if (chance < 85) {
        release?.();
        release = release === undefined ? hold() : undefined;
      } else if (chance < 95) await systemClock.sleep(0);
      else await systemClock.sleep(2);
    }
    release?.();
    await Promise.all(work);
    await Promise.all(readers.map(({ reading }) => reading.live));
    await publish(topics, `${seed} is over`);
    const log = await texts(topics);
    await until('all is read', () => steady.seen.length === log.length);
    assert.deepEqual(steady.seen, log, `seed ${seed}`);
    assert.ok(steady.ids.length > before);
    for (const { from, reading } of readers) {
      await until('it has the end', () => reading.seen.length >= log.length - from);
      assert.deepEqual(reading.seen, log.slice(from), `seed ${seed}, from ${from}`);
      reading[Symbol.dispose]();
    }
  }
});
