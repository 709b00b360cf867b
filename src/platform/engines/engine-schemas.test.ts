import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { hasCode } from '../../foundation/error.ts';
import { eventStoreSchema } from './engine-schemas.ts';
import { openRole } from './open-engines.ts';

describe('schema of a file', () => {
  let folder = '';
  let path = '';
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-schema-'));
    path = join(folder, 'new', 'events.db');
  });
  afterEach(() => rm(folder, { recursive: true }));

  test('reading the missing steps creates no file', async () => {
    const schema = await eventStoreSchema(`sqlite:${path}`);
    assert.deepEqual(await schema.pending(), schema.steps);
    assert.ok(schema.steps.length > 0);
    assert.equal(existsSync(path), false);
  });

  test('runs the missing steps once', async () => {
    const schema = await eventStoreSchema(`sqlite:${path}`);
    assert.deepEqual(await schema.migrate(), schema.steps);
    assert.deepEqual(await schema.migrate(), []);
    assert.deepEqual(await schema.pending(), []);
  });

  test('the steps of a script that is run by hand count as applied, and the store opens', async () => {
    const file = join(folder, 'by-hand.db');
    const schema = await eventStoreSchema(`sqlite:${file}`);
    const database = new DatabaseSync(file);
    database.exec(schema.script(schema.steps));
    database.close();
    assert.deepEqual(await schema.pending(), []);
    await using store = await openRole(`sqlite:${file}`, 'store');
    assert.equal(await store.streamInfo('banking.currency.v1-core-USD'), undefined);
  });

  test('a file of a newer version and a file that is not a database are rejected', async () => {
    const newer = join(folder, 'newer.db');
    const database = new DatabaseSync(newer);
    database.exec('pragma user_version = 999');
    database.close();
    const schema = await eventStoreSchema(`sqlite:${newer}`);
    for (const ask of [() => schema.pending(), () => schema.migrate()]) {
      await assert.rejects(
        ask,
        (error) => hasCode(error, 'CONFIG_INVALID') && /newer/.test(error.message),
      );
    }
    const text = join(folder, 'text.db');
    await writeFile(
      text,
      'this is not a database, but long enough to be taken for one '.repeat(20),
    );
    const wrong = await eventStoreSchema(`sqlite:${text}`);
    await assert.rejects(
      () => wrong.pending(),
      (error) => hasCode(error, 'STORE_UNAVAILABLE'),
    );
  });
});

test('all steps of PostgreSQL can be read without a server', async () => {
  const schema = await eventStoreSchema('postgres://u:p@no.such.host/db?schema=shop');
  const script = schema.script(schema.steps);
  assert.match(script, /^create schema if not exists "shop";$/m);
  assert.match(script, /^-- 1: /m);
  assert.match(script, /insert into "shop"\.migrations \(number, title\) values \(1, '/);
  assert.doesNotMatch(script, /\{schema\}/);
  assert.equal(schema.script([]), '');
});

test('a store in memory has no schema', async () => {
  const schema = await eventStoreSchema('memory:');
  assert.deepEqual([schema.steps, await schema.pending(), await schema.migrate()], [[], [], []]);
});
