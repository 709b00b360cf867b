import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEnvelope } from '../contracts/envelope.ts';
import { openMemory } from '../engines/memory/index.ts';
import { hasCode } from '../foundation/error.ts';
import { documentsOf } from './documents.ts';
import { projection } from './projection.ts';
import { readModel } from './read-model.ts';
import { restoreProjection } from './restore-projection.ts';
import { startProjection } from './start-projection.ts';

interface Account {
  readonly count: number;
}

const accounts = projection({
  name: 'sub:banking:accounts:v1',
  readModel: readModel<Account>({ bc: 'banking', aggregate: 'account', version: 1 }),
  on: {
    'account.opened.v1': () => ({ count: 1 }),
    'account.credited.v1': (before) => (before === null ? null : { count: before.count + 1 }),
  },
});

const eventOf = (type: string, id: string) =>
  createEnvelope(
    { type, payload: {} },
    { tenant: 'core', aggregate: { bc: 'banking', type: 'account', id, version: 1 } },
  );

test('lost documents are restored, including events appended during the restore', async () => {
  await using db = openMemory();
  const append = (type: string, id: string) =>
    db.store.append(`banking.account.v1-core-${id}`, [eventOf(type, id)], { expected: 'any' });
  await append('account.opened.v1', 'a');
  await append('account.credited.v1', 'a');
  const stored = openMemory().readModels;
  let isFirst = true;
  // During the write of the only page, one more event is appended; its projection finds no document.
  const readModels = {
    ...stored,
    async write(...args: Parameters<typeof stored.write>) {
      if (isFirst) await append('account.credited.v1', 'a');
      isFirst = false;
      return stored.write(...args);
    },
  };
  assert.equal(await restoreProjection({ ...db, readModels }, accounts), 3);
  const documents = documentsOf(stored, accounts.readModel);
  assert.deepEqual((await documents.get('core', 'a'))?.document, { count: 3 });
  // Existing documents do not change.
  assert.equal(await restoreProjection({ ...db, readModels }, accounts), 3);
  assert.deepEqual((await documents.get('core', 'a'))?.document, { count: 3 });
});

test('an engine without read models is rejected, and the error names the role', async () => {
  await using db = openMemory();
  const { store, subscriptions, readModels } = db;
  for (const [roles, role] of [
    [{ store, subscriptions }, 'readModels'],
    [{ store, subscriptions, readModels }, 'readModelVersions'],
  ] as const) {
    await assert.rejects(
      startProjection(roles as never, accounts),
      (error) => hasCode(error, 'NOT_SUPPORTED') && error.details['role'] === role,
    );
  }
});
