// Archives streams of a real bus to cold storage and restores them.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import {
  archiveStream,
  fileColdStorage,
  listArchive,
  readArchive,
  restoreArchive,
  retentionDefaults,
  sweepBus,
  type Bus,
  type ColdStorage,
} from 'millrace/bus';
import { fakeClock, startChild } from 'millrace/testing';
import { openSqlite, type SqliteOptions } from '../../src/engines/sqlite/index.ts';
import { ownedRole } from '../../src/testing/owned-role.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-archive-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const audit = 'gbe.events.audit.change';
const tomorrow = (): Date => new Date(Date.now() + 86_400_000);
const paths = (): { readonly path: string; readonly cold: string } => ({
  path: join(folder, `${randomUUID()}.db`),
  cold: join(folder, randomUUID()),
});

async function openBus(path: string, options?: SqliteOptions): Promise<Bus> {
  return ownedRole(await openSqlite(path, options), 'bus');
}

async function publish(bus: Bus, count: number, subject = audit): Promise<void> {
  await bus.publishMany(Array.from({ length: count }, (_, n) => ({ subject, payload: { n } })));
}

const numberIn = (data: Uint8Array): number =>
  (JSON.parse(Buffer.from(data).toString()) as { payload: { n: number } }).payload.n;

async function archivedNumbers(storage: ColdStorage, pattern = audit): Promise<number[]> {
  const all = await Array.fromAsync(readArchive(storage, pattern));
  return all.map(({ data }) => numberIn(data));
}

async function streamNumbers(bus: Bus, subject = audit): Promise<number[]> {
  const all = await Array.fromAsync(bus.readStored(subject));
  return all.map(({ data }) => numberIn(data));
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

test('old messages are archived and verified, and only then trimmed', async () => {
  const { path, cold } = paths();
  const storage = fileColdStorage(cold);
  await using bus = await openBus(path);
  await publish(bus, 25);
  const before = tomorrow();
  assert.deepEqual(await archiveStream(bus, storage, audit, { before }), {
    archived: 25,
    removed: 25,
    heldBack: 0,
  });
  assert.deepEqual(await archivedNumbers(storage), upTo(25));
  assert.deepEqual(await streamNumbers(bus), []);
  const [segment] = await Array.fromAsync(listArchive(storage, '>'));
  assert.deepEqual([segment?.subject, segment?.count], [audit, 25]);
  assert.deepEqual(await archiveStream(bus, storage, audit, { before }), {
    archived: 0,
    removed: 0,
    heldBack: 0,
  });
});

test('messages that a group has not acked are archived but trimmed only after the ack', async () => {
  const { path, cold } = paths();
  const storage = fileColdStorage(cold);
  await using bus = await openBus(path);
  await publish(bus, 10);
  const group = await bus.group({ group: 'monitors', subject: 'gbe.events.>' });
  await group.ack(await group.fetch({ limit: 4 }));
  const before = tomorrow();
  assert.deepEqual(await archiveStream(bus, storage, audit, { before }), {
    archived: 10,
    removed: 4,
    heldBack: 6,
  });
  await group.ack(await group.fetch({ limit: 10 }));
  const again = await archiveStream(bus, storage, audit, { before });
  assert.deepEqual(again, { archived: 0, removed: 6, heldBack: 0 });
  assert.deepEqual(await archivedNumbers(storage), upTo(10));
});

test('messages that cannot be read back from the archive are not trimmed', async () => {
  const { path, cold } = paths();
  const inner = fileColdStorage(cold);
  await using bus = await openBus(path);
  await publish(bus, 3);
  const lossy: ColdStorage = {
    ...inner,
    put: (name, data, options) =>
      inner.put(name, name.endsWith('.gz') ? data.subarray(0, -3) : data, options),
  };
  const before = tomorrow();
  await assert.rejects(() => archiveStream(bus, lossy, audit, { before }), {
    code: 'STORE_CORRUPT',
  });
  assert.deepEqual(await streamNumbers(bus), upTo(3));
  assert.deepEqual(await Array.fromAsync(listArchive(inner, '>')), []);
});

test('reading a damaged segment fails instead of returning wrong data', async () => {
  const { path, cold } = paths();
  const storage = fileColdStorage(cold);
  await using bus = await openBus(path);
  await publish(bus, 3);
  await archiveStream(bus, storage, audit, { before: tomorrow() });
  const [segment] = await Array.fromAsync(listArchive(storage, audit));
  const file = join(cold, segment?.data ?? '');
  const data = await readFile(file);
  data[data.length - 1] = (data.at(-1) ?? 0) ^ 0xff;
  writeFileSync(file, data);
  await assert.rejects(() => archivedNumbers(storage), { code: 'STORE_CORRUPT' });
});

test('two concurrent archivers keep every message once', async () => {
  const { path, cold } = paths();
  const storage = fileColdStorage(cold);
  await using bus = await openBus(path);
  await using second = await openBus(path);
  for (let round = 0; round < 5; round += 1) {
    await publish(bus, 20);
    const before = tomorrow();
    await Promise.all([bus, second].map((each) => archiveStream(each, storage, audit, { before })));
  }
  const all = await archivedNumbers(storage);
  assert.deepEqual(all, Array.from({ length: 5 }, () => upTo(20)).flat());
  // The segment of the slower archiver is deleted.
  const files = readdirSync(join(cold, 'gbe/events/audit/change'));
  assert.equal(files.filter((name) => name.endsWith('.gz')).length, files.length / 2);
});

test('an archiver killed at any step loses no message and archives none twice', async () => {
  let at = 1;
  for (let end: unknown = 'SIGKILL'; end === 'SIGKILL'; at += 1) {
    const { path, cold } = paths();
    const storage = fileColdStorage(cold);
    {
      await using bus = await openBus(path);
      await publish(bus, 7);
    }
    const input = { path, folder: cold, subject: audit, at };
    await using child = startChild(new URL('./archive-main.ts', import.meta.url), { input });
    end = await child.ended;
    assert.ok(end === 'SIGKILL' || end === 0, child.errors());
    await using bus = await openBus(path);
    const [left, archived] = [await streamNumbers(bus), await archivedNumbers(storage)];
    assert.deepEqual([...new Set([...archived, ...left])], upTo(7), `killed at ${at}`);
    await archiveStream(bus, storage, audit, { before: tomorrow() });
    assert.deepEqual(await archivedNumbers(storage), upTo(7), `killed at ${at}`);
    assert.deepEqual(await streamNumbers(bus), []);
  }
  assert.ok(at > 8, `the archiver was killed at ${at} points`);
});

test('archived messages are restored to a separate subject, once', async () => {
  const { path, cold } = paths();
  const storage = fileColdStorage(cold);
  await using bus = await openBus(path);
  await publish(bus, 5);
  const database = new DatabaseSync(path);
  database
    .prepare('insert into bus_messages (stream_id, stored_at_ms, data) select 1, 1, ?')
    .run(Buffer.from('odd'));
  database.close();
  await archiveStream(bus, storage, audit, { before: tomorrow() });
  const subject = 'gbe.restored.audit';
  assert.deepEqual(await restoreArchive(bus, storage, audit, { subject }), {
    published: 5,
    duplicates: 0,
    malformed: 1,
  });
  assert.equal((await restoreArchive(bus, storage, audit, { subject })).duplicates, 5);
  assert.deepEqual(await streamNumbers(bus, subject), upTo(5));
  const [first] = await Array.fromAsync(bus.read(subject));
  assert.match(first?.headers['restored-from'] ?? '', /^gbe\.events\.audit\.change \d+$/);
});

test('the sweeper keeps each domain as long as its rule says, and archives audit messages', async () => {
  const { path, cold } = paths();
  const storage = fileColdStorage(cold);
  const clock = fakeClock({ nowMs: Date.parse('2026-01-01T00:00:00.000Z') });
  await using bus = await openBus(path, { clock });
  const subjects = {
    'gbe.notify.topic.backups': 7,
    'gbe.events.api.error': 3,
    'gbe.events.auth.failure': 30,
    'gbe.tasks.email-send.queue': 7,
    'gbe.tasks.email-send.terminal': 30,
    [audit]: 365,
    'elsewhere.x': Number.POSITIVE_INFINITY,
  };
  for (const subject of Object.keys(subjects)) await publish(bus, 2, subject);
  let ageDays = 0;
  for (const days of [2, 4, 8, 31, 366]) {
    await clock.advance((days - ageDays) * 86_400_000);
    ageDays = days;
    assert.equal((await sweepBus(bus, { archive: storage, clock })).failed, 0);
    for (const [subject, keptDays] of Object.entries(subjects)) {
      const length = (await bus.stream(subject))?.length;
      assert.equal(length, days > keptDays ? 0 : 2, `${subject} after ${days} days`);
    }
  }
  assert.deepEqual(await archivedNumbers(storage), upTo(2));
  assert.deepEqual(await archivedNumbers(storage, 'gbe.tasks.email-send.terminal'), upTo(2));
});

test('messages that need archiving are not trimmed without cold storage', async () => {
  const clock = fakeClock({ nowMs: Date.parse('2026-01-01T00:00:00.000Z') });
  await using bus = await openBus(paths().path, { clock });
  await publish(bus, 2);
  await clock.advance(400 * 86_400_000);
  assert.equal((await sweepBus(bus, { clock })).removed, 0);
  assert.deepEqual(await streamNumbers(bus), upTo(2));
});

test('trims streams by length and by bytes, except messages that a group has not read', async () => {
  await using bus = await openBus(paths().path);
  const rules = [
    { pattern: 'gbe.a.*', lengthMax: 5 },
    { pattern: 'gbe.b.*', bytesMax: 600 },
    ...retentionDefaults(),
  ];
  for (const subject of ['gbe.a.x', 'gbe.a.held', 'gbe.b.x']) await publish(bus, 10, subject);
  await bus.group({ group: 'slow', subject: 'gbe.a.held' });
  const { heldBack } = await sweepBus(bus, { rules });
  assert.equal((await bus.stream('gbe.a.x'))?.length, 5);
  assert.equal((await bus.stream('gbe.a.held'))?.length, 10);
  assert.equal(heldBack, 5);
  assert.ok(((await bus.stream('gbe.b.x'))?.bytes ?? 0) <= 600);
});
