// The audit log: no action is executed without a record of it, whatever fails.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from '../engines/memory/index.ts';
import { MillraceError } from '../foundation/error.ts';
import { fakeClock } from '../testing/index.ts';
import { createAuditLog } from './audit-log.ts';

const actor = { kind: 'token', name: 'ada' };
const purge = { action: 'outbox.purge', target: 'all', actor };
const nothing = async (): Promise<void> => {};

test('an action is recorded before it is executed, and its outcome after it', async () => {
  await using store = openMemory().store;
  const audit = createAuditLog(store);
  const seen = await audit.run(purge, async () => (await audit.list({})).items);
  assert.deepEqual(
    seen.map(({ outcome }) => outcome),
    ['unknown'],
  );
  const failing = audit.run(purge, async () => {
    throw new MillraceError('OUTBOX_UNKNOWN', 'not there');
  });
  await assert.rejects(failing, { code: 'OUTBOX_UNKNOWN' });
  const { items } = await audit.list({});
  assert.deepEqual(
    items.map(({ outcome, error, action }) => [outcome, error, action]),
    [
      ['failed', 'OUTBOX_UNKNOWN', 'outbox.purge'],
      ['done', undefined, 'outbox.purge'],
    ],
  );
});

test('an action that cannot be recorded is not executed', async () => {
  const store = openMemory().store;
  const audit = createAuditLog(store);
  await store[Symbol.asyncDispose]();
  let isDone = false;
  const purged = audit.run(purge, async () => {
    isDone = true;
  });
  await assert.rejects(purged, { code: 'STORE_CLOSED' });
  assert.equal(isDone, false);
});

test('an executed action succeeds also if its outcome cannot be recorded', async () => {
  const store = openMemory().store;
  const errors: unknown[] = [];
  const quiet = (): void => {};
  const log = {
    debug: quiet,
    info: quiet,
    warn: quiet,
    error: (fields: object) => errors.push(fields),
  };
  const audit = createAuditLog(store, { observer: { log } });
  const result = await audit.run(purge, async () => {
    await store[Symbol.asyncDispose]();
    return 7;
  });
  assert.equal(result, 7);
  assert.equal(errors.length, 1);
});

test('an outcome is found although it is on the previous page', async () => {
  await using store = openMemory().store;
  const audit = createAuditLog(store);
  await audit.run({ ...purge, target: 'outer' }, () =>
    audit.run({ ...purge, target: 'inner' }, nothing),
  );
  const first = await audit.list({}, { limit: 1 });
  assert.deepEqual(
    first.items.map(({ target, outcome }) => [target, outcome]),
    [['inner', 'done']],
  );
  const { cursor = '' } = first;
  const second = await audit.list({}, { limit: 1, cursor });
  assert.deepEqual(
    second.items.map(({ target, outcome }) => [target, outcome]),
    [['outer', 'done']],
  );
  assert.equal(second.cursor, undefined);
  await assert.rejects(audit.list({}, { cursor: 'x' }), { code: 'CURSOR_INVALID' });
});

test('entries are kept for a year, or for the age in the stream metadata', async () => {
  const clock = fakeClock();
  await using store = openMemory({ clock }).store;
  const audit = createAuditLog(store, { clock, keptSeconds: 60 });
  await audit.run(purge, nothing);
  assert.equal((await audit.list({})).items.length, 1);
  await clock.advance(61_000);
  assert.equal((await audit.list({})).items.length, 0);
});
