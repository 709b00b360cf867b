import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { projection } from '../../../projections/projection.ts';
import { readModel } from '../../../projections/read-model.ts';
import { startProjection } from '../../../projections/start-projection.ts';
import { eventually } from '../../../testing/assertions.ts';
import { newEvent } from '../../../testing/conformance/store/fixture.ts';
import { openSqlite } from '../open-sqlite.ts';

const marker = 'Zelda-7731';

interface Contact {
  readonly name: string;
}

const contacts = projection({
  name: 'sub:crm:contacts:v1',
  readModel: readModel<Contact>({ bc: 'crm', aggregate: 'contact', version: 1 }),
  on: {
    'contact.added.v1': (_before, { payload }: { readonly payload: Contact }) => payload,
  },
  retry: { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0, attemptsMax: 1_000 },
});

test('an erased document is in no file, once no connection reads its old version', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-erased-documents-'));
  const path = join(folder, 'events.db');
  const isInFiles = (): boolean =>
    readdirSync(folder).some((name) => readFileSync(join(folder, name)).includes(marker));
  try {
    await using db = await openSqlite(path, { busyTimeoutMs: 1 });
    await using runner = await startProjection(db, contacts);
    const payload = { name: marker };
    const headers = { dataSubject: 'zelda' };
    const event = newEvent({ type: 'contact.added.v1', payload, headers });
    await db.store.append('crm.contact.v1-core-c1', [event]);
    await runner.whenCaughtUp();
    assert.ok(isInFiles());
    using reader = new DatabaseSync(path, { readOnly: true });
    reader.exec('begin; select * from read_documents');
    await db.store.forget('zelda');
    const load = () => db.readModels.load(contacts.readModel, [{ tenant: 'core', id: 'c1' }]);
    await eventually(async () => (await load())[0]?.document === null);
    assert.ok(isInFiles(), 'the reader keeps the log from being truncated');
    // The projection repeats the erasure until the log is truncated.
    reader.exec('rollback');
    await runner.waitFor(await db.store.head());
    assert.equal(isInFiles(), false);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
