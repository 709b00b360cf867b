import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { hasCode } from '../../../foundation/error.ts';
import { isForgotten, subjectHeader } from '../../../store/erasure.ts';
import type { EventStore } from '../../../store/event-store.ts';
import { newEvent } from '../../../testing/conformance/store/fixture.ts';
import { runNodeScript } from '../../../testing/servers/node-script.ts';
import { openSqlite } from '../open-sqlite.ts';
import { subjectKeysPath } from './subject-keys.ts';

const root = mkdtempSync(join(tmpdir(), 'millrace-subject-keys-'));
after(() => rmSync(root, { recursive: true, force: true }));
let folders = 0;

function newPath(): string {
  folders += 1;
  return join(root, String(folders), 'events.db');
}

const stream = 'crm.contact.v1-core-1';

const about = (subject: string) =>
  newEvent({ payload: { name: `name of ${subject}` }, headers: { [subjectHeader]: subject } });

async function payloadsOf(store: EventStore): Promise<unknown[]> {
  const events = await store.readStream(stream).toArray();
  return events.map(({ payload }) => (isForgotten(payload) ? 'forgotten' : payload));
}

/** The names of all files in the folder whose bytes contain the key. */
function filesWith(path: string, key: Uint8Array): string[] {
  const folder = join(path, '..');
  return readdirSync(folder).filter((name) => readFileSync(join(folder, name)).includes(key));
}

/** The keys as another connection sees them. */
function keysIn(path: string): Map<string, Uint8Array> {
  using database = new DatabaseSync(subjectKeysPath(path), { readOnly: true });
  const rows = database.prepare('select subject, key from subject_keys order by subject').all();
  return new Map(rows.map(({ subject, key }) => [String(subject), key as Uint8Array]));
}

function keyOf(path: string, subject: string): Uint8Array {
  return keysIn(path).get(subject) ?? assert.fail(`no key of ${subject}`);
}

test('the events contain no key, and only the owner may read the keys', async () => {
  const path = newPath();
  await using db = await openSqlite(path);
  await db.store.append(stream, [about('ada')]);
  const found = filesWith(path, keyOf(path, 'ada'));
  assert.ok(found.length > 0);
  for (const name of found) {
    assert.match(name, /^events\.subject-keys\.db/);
    assert.equal(statSync(join(path, '..', name)).mode & 0o777, 0o600);
  }
});

test('a store without personal data has no file of keys', async () => {
  const path = newPath();
  await using db = await openSqlite(path);
  await db.store.append(stream, [newEvent()]);
  assert.deepEqual(await payloadsOf(db.store), [newEvent().payload]);
  assert.deepEqual(
    readdirSync(join(path, '..')).filter((name) => name.includes('keys')),
    [],
  );
});

test('no file contains the keys of forgotten persons, while the store is open and after it', async () => {
  const path = newPath();
  const persons = Array.from({ length: 400 }, (_, at) => `person-${(at * 7919) % 400}`);
  const forgotten = persons.filter((_, at) => at % 3 === 0);
  const keys: Uint8Array[] = [];
  {
    await using db = await openSqlite(path);
    await Promise.all(persons.map((person) => db.store.append(stream, [about(person)])));
    const all = keysIn(path);
    for (const person of forgotten) keys.push(all.get(person) ?? assert.fail());
    for (const person of forgotten) {
      assert.deepEqual(await db.store.forget(person), { forgotten: true });
    }
    assert.deepEqual(
      keys.flatMap((key) => filesWith(path, key)),
      [],
    );
    const payloads = await payloadsOf(db.store);
    assert.equal(payloads.filter((each) => each === 'forgotten').length, forgotten.length);
  }
  assert.deepEqual(
    keys.flatMap((key) => filesWith(path, key)),
    [],
  );
});

test('killed between the sync of a key and the commit of its event: the next event uses the key', async () => {
  const path = newPath();
  const script = runNodeScript(`
    const { openSqliteFile } = await load('../../engines/sqlite/connection/file.ts');
    const { sqliteEventStore } = await load('../../engines/sqlite/store/event-store.ts');
    const { newEvent } = await load('../conformance/store/fixture.ts');
    const file = await openSqliteFile(${JSON.stringify(path)});
    const append = () => process.kill(process.pid, 'SIGKILL');
    const store = sqliteEventStore({ ...file, writer: { ...file.writer, append } });
    await store.append(${JSON.stringify(stream)}, [newEvent({ headers: { dataSubject: 'ada' } })]);
  `);
  assert.equal(await script.ended, 'SIGKILL');
  await using db = await openSqlite(path);
  assert.deepEqual(await payloadsOf(db.store), []);
  const key = keyOf(path, 'ada');
  await db.store.append(stream, [about('ada')]);
  assert.deepEqual(keyOf(path, 'ada'), key);
  assert.deepEqual(await payloadsOf(db.store), [{ name: 'name of ada' }]);
});

test('killed between the deletion of a key and the truncation of the log: the next open completes the erasure', async () => {
  const path = newPath();
  {
    await using db = await openSqlite(path);
    await db.store.append(stream, [about('ada')]);
  }
  const key = keyOf(path, 'ada');
  // A reader keeps the log from being truncated.
  const reader = new DatabaseSync(subjectKeysPath(path), { readOnly: true });
  reader.exec('begin; select * from subject_keys');
  const script = runNodeScript(`
    const { openSqlite } = await load('../../engines/sqlite/index.ts');
    const db = await openSqlite(${JSON.stringify(path)}, { busyTimeoutMs: 1 });
    const { code, retryable } = await db.store.forget('ada').catch((error) => error);
    console.log(JSON.stringify([code, retryable]));
    process.kill(process.pid, 'SIGKILL');
  `);
  assert.deepEqual(await script.printed(), ['STORE_UNAVAILABLE', true]);
  assert.equal(await script.ended, 'SIGKILL');
  reader.close();
  assert.notDeepEqual(filesWith(path, key), []);
  await using db = await openSqlite(path);
  assert.deepEqual(filesWith(path, key), []);
  assert.deepEqual(await payloadsOf(db.store), ['forgotten']);
});

test('a repeated forget erases what the first one could not', async () => {
  const path = newPath();
  await using db = await openSqlite(path, { busyTimeoutMs: 1 });
  await db.store.append(stream, [about('ada')]);
  const key = keyOf(path, 'ada');
  const reader = new DatabaseSync(subjectKeysPath(path), { readOnly: true });
  reader.exec('begin; select * from subject_keys');
  await assert.rejects(db.store.forget('ada'), (error) => hasCode(error, 'STORE_UNAVAILABLE'));
  reader.close();
  await db.store.forget('ada');
  assert.deepEqual(filesWith(path, key), []);
});

/** Turns a file into one of the version that had the keys among the events. */
async function makeOldFile(path: string, isKilledAfterCopy: boolean): Promise<Uint8Array[]> {
  {
    await using db = await openSqlite(path);
    await db.store.append(stream, [about('ada'), about('bob')]);
  }
  const keys = keysIn(path);
  using database = new DatabaseSync(path);
  database.exec(`
    pragma secure_delete = off;
    create table subject_keys (subject text primary key, key blob, forgotten_at_ms integer) strict, without rowid`);
  const insert = database.prepare('insert into subject_keys (subject, key) values (?, ?)');
  for (const [subject, key] of keys) insert.run(subject, key);
  const freed = new Uint8Array(32).fill(7);
  // A page that became free keeps its bytes.
  database.exec('create table freed (key blob)');
  database.prepare('insert into freed values (?)').run(freed);
  database.exec('drop table freed');
  // The migrations that follow the one that moved the keys run again.
  database.exec(`alter table dead_letters drop column cause;
    drop trigger outbox_message_removed;
    drop table outbox_attempts;
    drop view integration_outbox;
    drop view outbox_rows;
    alter table outbox_dead drop column discarded;
    create view outbox_rows as select 1`);
  database.exec('pragma user_version = 12');
  if (isKilledAfterCopy) database.exec('update subject_keys set key = null');
  else rmSync(subjectKeysPath(path));
  return [...keys.values(), freed];
}

for (const isKilledAfterCopy of [false, true]) {
  const title = isKilledAfterCopy ? ', also after a kill during the move' : '';
  test(`the keys of an earlier version are moved out of the events and overwritten${title}`, async () => {
    const path = newPath();
    const [ada, bob, freed] = await makeOldFile(path, isKilledAfterCopy);
    assert.ok(ada !== undefined && bob !== undefined && freed !== undefined);
    assert.ok(filesWith(path, freed).includes('events.db'));
    for (const open of ['the first open', 'the second open']) {
      await using db = await openSqlite(path);
      assert.deepEqual(await payloadsOf(db.store), [
        { name: 'name of ada' },
        { name: 'name of bob' },
      ]);
      const found: string[] = [ada, bob, freed].flatMap((key) => filesWith(path, key));
      assert.deepEqual(
        found.filter((name) => !name.startsWith('events.subject-keys.db')),
        [],
      );
      assert.deepEqual(filesWith(path, freed), []);
      using database = new DatabaseSync(path, { readOnly: true });
      const table = "select 1 from sqlite_master where name = 'subject_keys'";
      assert.equal(database.prepare(table).get(), undefined, open);
    }
  });
}
