// Messages and jobs about a person: readable until the person is forgotten, and never stored in plain text.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { archiveStream, restoreArchive } from '../../src/bus/archive.ts';
import type { Bus } from '../../src/bus/bus.ts';
import { fileColdStorage } from '../../src/bus/file-cold-storage.ts';
import { openSqlite, type SqliteEngine } from '../../src/engines/sqlite/open-sqlite.ts';
import { rejectsWith } from '../../src/testing/assertions.ts';
import { isForgotten } from '../../src/store/erasure.ts';
import { createTasks } from '../../src/tasks/create-tasks.ts';
import { taskType } from '../../src/tasks/task-type.ts';
import type { ClaimedTask, Tasks } from '../../src/tasks/tasks.ts';

const marker = 'Zelda-7731';
const subject = 'crm.contacts.added';
const about = { headers: { dataSubject: 'zelda' }, payload: { name: marker } };

interface World {
  readonly folder: string;
  readonly db: SqliteEngine;
  readonly tasks: Tasks;
  /** Whether a file contains the name in plain text; archives are unpacked. */
  readonly isStored: () => boolean;
}

async function openWorld(context: TestContext): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-personal-'));
  const db = await openSqlite(join(folder, 'events.db'));
  const { personalData } = db.store;
  const tasks = createTasks(db.tasks, {
    types: [taskType('mail'), taskType('batch')],
    personalData,
  });
  context.after(async () => {
    await tasks[Symbol.asyncDispose]();
    await db[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });
  const isStored = (): boolean =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => readFileSync(join(parentPath, name)))
      .map((bytes) => (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes))
      .some((bytes) => bytes.includes(marker));
  return { folder, db, tasks, isStored };
}

const payloads = async (bus: Bus, pattern: string): Promise<unknown[]> =>
  (await Array.fromAsync(bus.read(pattern))).map(({ payload }) => payload);

test('a message about a person is stored encrypted, and skipped after forget', async (context) => {
  const { db, isStored } = await openWorld(context);
  const { bus, store } = db;
  await bus.publish({ subject, ...about });
  await bus.publish({ subject, payload: { id: 2 } });
  assert.deepEqual(await payloads(bus, subject), [{ name: marker }, { id: 2 }]);
  assert.equal(isStored(), false);
  const group = await bus.group({ group: 'mails', subject });
  await store.forget('zelda');
  assert.deepEqual(await payloads(bus, subject), [{ id: 2 }]);
  const delivered = await group.fetch({ limit: 10, waitMs: 0 });
  assert.deepEqual(
    delivered.map(({ payload }) => payload),
    [{ id: 2 }],
  );
  await delivered[0]?.ack();
  const [info] = await bus.groups();
  assert.deepEqual([info?.lag, info?.pending], [0, 0], 'the skipped message is acknowledged');
  await rejectsWith(() => bus.publish({ subject, ...about }), 'SUBJECT_FORGOTTEN');
});

test('a dead letter about a person is encrypted, without the error of the handler', async (context) => {
  const { db, isStored } = await openWorld(context);
  const { bus, store } = db;
  const group = await bus.group({ group: 'mails', subject });
  await bus.publish({ subject, ...about });
  const [message] = await group.fetch({ waitMs: 0 });
  await message?.term(`cannot mail ${marker}`);
  const [letter] = await bus.deadLetters('mails');
  assert.match(Buffer.from(letter?.data ?? []).toString(), /Zelda-7731/);
  assert.match(letter?.reason ?? '', /not stored/);
  assert.equal(await bus.replayDeadLetters('mails', [letter?.sequence ?? '']), 1);
  const [again] = await group.fetch({ waitMs: 0 });
  assert.deepEqual(again?.payload, { name: marker });
  await store.forget('zelda');
  await again?.term(`cannot mail ${marker}`);
  assert.deepEqual(await bus.deadLetters('mails'), []);
  assert.equal(isStored(), false);
});

test('an archive of messages about a person is encrypted, and restored until forget', async (context) => {
  const { db, folder, isStored } = await openWorld(context);
  const { bus, store } = db;
  const storage = fileColdStorage(join(folder, 'archive'));
  await bus.publish({ subject, ...about });
  const before = new Date(Date.now() + 60_000);
  const { archived, removed } = await archiveStream(bus, storage, subject, { before });
  assert.deepEqual([archived, removed], [1, 1]);
  assert.equal(isStored(), false);
  const restore = (to: string): Promise<unknown> =>
    restoreArchive(bus, storage, subject, { subject: to });
  await restore('crm.restored.first');
  assert.deepEqual(await payloads(bus, 'crm.restored.first'), [{ name: marker }]);
  await store.forget('zelda');
  await restore('crm.restored.second');
  assert.deepEqual(await payloads(bus, 'crm.restored.>'), []);
});

test('a reply about a person is encrypted', async (context) => {
  const { db, isStored } = await openWorld(context);
  const consumer = await db.bus.consume({ group: 'names', subject }, async (request) => {
    await request.reply({ name: marker });
  });
  const reply = await db.bus.request({ subject, ...about });
  assert.deepEqual([reply.payload, reply.headers], [{ name: marker }, about.headers]);
  assert.equal(isStored(), false);
  await consumer.stop();
});

const labels = { dataSubject: 'zelda' };

async function claimOne(tasks: Tasks): Promise<ClaimedTask | undefined> {
  const [claimed] = await tasks.claim({ worker: 'w', types: { mail: 1, batch: 1 }, waitMs: 0 });
  return claimed;
}

test('payload, steps, events, result and errors of a job are encrypted', async (context) => {
  const { db, tasks, isStored } = await openWorld(context);
  const { id } = await tasks.enqueue({ type: 'mail', payload: { name: marker }, labels });
  const first = await claimOne(tasks);
  assert.deepEqual(first?.task.payload, { name: marker });
  const { token } = first;
  await tasks.startStep(token, { name: 'look' });
  await tasks.finishStep(token, { name: 'look', result: { found: marker } });
  await tasks.progress(token, { percent: 50, message: `mail to ${marker}` });
  await tasks.failStep(token, { name: 'send', failure: { message: `no ${marker}` } });
  await tasks.fail(token, { message: `failed for ${marker}` }, { retryAfterMs: 0 });
  await tasks.sendEvent(id, { name: 'answer', payload: { by: marker } });
  const second = await claimOne(tasks);
  assert.ok(second !== undefined);
  const found = second.task.steps.find(({ name }) => name === 'look');
  assert.deepEqual(found?.result, { found: marker });
  const event = await tasks.waitForEvent(second.token, { name: 'wait', event: 'answer' });
  assert.deepEqual(event, { kind: 'event', payload: { by: marker } });
  await tasks.complete(second.token, { sent: marker });
  const ended = await tasks.get(id);
  assert.deepEqual([ended?.state, ended?.result], ['completed', { sent: marker }]);
  assert.match(JSON.stringify(await tasks.timeline(id)), /Zelda-7731/);
  assert.equal(isStored(), false);
  await db.store.forget('zelda');
  const erased = await tasks.get(id);
  assert.equal(erased?.state, 'completed');
  const { tasks: listed } = await tasks.list({ labels });
  assert.equal(listed.length, 1);
  for (const each of [erased, await tasks.timeline(id), listed]) {
    assert.doesNotMatch(JSON.stringify(each), /Zelda-7731/);
  }
});

test('a job of a forgotten person ends, whether it waits or runs', async (context) => {
  const { db, tasks, isStored } = await openWorld(context);
  const { id: running } = await tasks.enqueue({ type: 'mail', payload: { name: marker }, labels });
  const claimed = await claimOne(tasks);
  const { id: queued } = await tasks.enqueue({ type: 'mail', payload: { name: marker }, labels });
  assert.ok(claimed !== undefined);
  await db.store.forget('zelda');
  await rejectsWith(
    () => tasks.enqueue({ type: 'mail', payload: { name: marker }, labels }),
    'SUBJECT_FORGOTTEN',
  );
  assert.equal(await claimOne(tasks), undefined);
  await tasks.complete(claimed.token, { sent: marker });
  const [one, two] = await Promise.all([tasks.get(queued), tasks.get(running)]);
  assert.deepEqual([one?.state, isForgotten(one?.payload)], ['failed', true]);
  assert.deepEqual([two?.state, two?.result], ['completed', undefined]);
  assert.equal(isStored(), false);
});

test('a parent gets no data of a child about another person', async (context) => {
  const { tasks, isStored } = await openWorld(context);
  await tasks.enqueue({ type: 'batch', payload: null });
  const parent = await claimOne(tasks);
  assert.ok(parent !== undefined);
  const children = [{ type: 'mail', payload: { name: marker }, labels }];
  await tasks.runChildren(parent.token, { name: 'all', tasks: children });
  const child = await claimOne(tasks);
  assert.ok(child !== undefined);
  await tasks.complete(child.token, { sent: marker });
  const woken = await claimOne(tasks);
  assert.ok(woken !== undefined);
  const outcome = await tasks.runChildren(woken.token, { name: 'all', tasks: children });
  assert.equal(outcome.kind, 'ended');
  assert.deepEqual(outcome.children, [{ id: child.task.id, state: 'completed', error: undefined }]);
  await tasks.complete(woken.token, null);
  assert.equal(isStored(), false);
});

test('after the key of a person was lost, messages are dead-lettered and jobs fail', async (context) => {
  const { db, folder, tasks, isStored } = await openWorld(context);
  const { bus } = db;
  const group = await bus.group({ group: 'mails', subject });
  await bus.publish({ subject, ...about });
  await bus.publish({ subject, payload: { id: 2 } });
  const { id } = await tasks.enqueue({ type: 'mail', payload: { name: marker }, labels });
  const other = await tasks.enqueue({ type: 'mail', payload: { id: 2 } });
  const keys = new DatabaseSync(join(folder, 'events.subject-keys.db'));
  keys.exec('delete from subject_keys');
  keys.close();
  const delivered = await group.fetch({ limit: 10, waitMs: 0 });
  assert.deepEqual(
    delivered.map(({ payload }) => payload),
    [{ id: 2 }],
  );
  const [letter] = await bus.deadLetters('mails');
  assert.deepEqual([letter?.cause, letter?.attempts], ['malformed', 1]);
  assert.match(letter?.reason ?? '', /cannot be decrypted/);
  const claimed = await tasks.claim({ worker: 'w', types: { mail: 2 }, waitMs: 0 });
  assert.deepEqual(
    claimed.map(({ token }) => token.id),
    [other.id],
  );
  const failed = await tasks.get(id);
  assert.deepEqual([failed?.state, failed?.error?.code], ['failed', 'STORE_CORRUPT']);
  assert.equal(isStored(), false);
});

test('without the keys of a store, messages and jobs about a person are rejected', async (context) => {
  const { db } = await openWorld(context);
  await using tasks = createTasks(db.tasks, { types: [taskType('mail')] });
  await rejectsWith(() => tasks.enqueue({ type: 'mail', payload: null, labels }), 'TASK_INVALID');
});
