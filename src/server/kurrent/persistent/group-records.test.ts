import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from '../../../engines/memory/index.ts';
import { systemClock } from '../../../foundation/clock.ts';
import { hasCode } from '../../../foundation/error.ts';
import type { EventStore } from '../../../store/event-store.ts';
import { kurrentStoreOptions } from '../kurrent-server.ts';
import { createGroupRecords, type GroupRecords } from './group-records.ts';
import type { GroupSettings } from './group-settings.ts';

const key = { source: 'orders-1', group: 'mailer' };
const settings = { after: -1, readBatchSize: 20, historyBufferSize: 500 } as GroupSettings;

interface Owner extends GroupRecords {
  lost(): number;
}

function owner(store: EventStore, fenced = true): Owner {
  let lost = 0;
  const onLost = (): void => void (lost += 1);
  const records = createGroupRecords(
    { store, clock: systemClock, observer: {} },
    { fenced, onLost },
  );
  return { ...records, lost: () => lost };
}

test('a former owner cannot write checkpoints or groups, and is notified', async () => {
  await using store = openMemory(kurrentStoreOptions).store;
  const late = owner(store);
  await late.takeOver();
  await late.save(key, settings);
  await late.saveCheckpoint(key, 5);
  const now = owner(store);
  assert.deepEqual(await now.takeOver(), [{ ...key, settings }]);
  assert.equal(await now.checkpoint(key), 5);
  const lost = (error: unknown): boolean => hasCode(error, 'LEASE_LOST');
  await assert.rejects(late.saveCheckpoint(key, 6), lost);
  await assert.rejects(late.save({ ...key, group: 'other' }, settings), lost);
  await assert.rejects(late.remove(key), lost);
  assert.equal(late.lost(), 3);
  assert.equal(await now.checkpoint(key), 5);
  await now.saveCheckpoint(key, 7);
  await now.saveCheckpoint(key, 9);
  await assert.rejects(late.saveCheckpoint(key, 8), lost);
  assert.equal(await now.checkpoint(key), 9);
  assert.equal(now.lost(), 0);
});

test('a checkpoint survives any number of owners that wrote none', async () => {
  await using store = openMemory(kurrentStoreOptions).store;
  const first = owner(store);
  await first.save(key, settings);
  for (let count = 0; count < 4; count += 1) {
    const next = owner(store);
    await next.takeOver();
    assert.equal(await next.checkpoint(key), undefined);
  }
  const writer = owner(store);
  await writer.takeOver();
  await writer.saveCheckpoint(key, 3);
  for (let count = 0; count < 4; count += 1) {
    const next = owner(store);
    assert.equal((await next.takeOver()).length, 1);
    assert.equal(await next.checkpoint(key), 3);
  }
});

test('a group that is deleted and created again starts from its beginning', async () => {
  await using store = openMemory(kurrentStoreOptions).store;
  const records = owner(store);
  await records.takeOver();
  for (const at of [4, 6]) {
    await records.save(key, settings);
    assert.equal(await records.checkpoint(key), undefined);
    await records.saveCheckpoint(key, at);
    await records.saveCheckpoint(key, at + 1);
    await records.remove(key);
  }
  assert.deepEqual(await owner(store).takeOver(), []);
});

test('without leases writes are not fenced, and a takeover writes nothing', async () => {
  await using store = openMemory(kurrentStoreOptions).store;
  const one = owner(store, false);
  await one.save(key, settings);
  const head = await store.head();
  const other = owner(store, false);
  assert.equal((await other.takeOver()).length, 1);
  assert.equal(await store.head(), head);
  await other.saveCheckpoint(key, 1);
  await one.saveCheckpoint(key, 2);
  assert.equal(await other.checkpoint(key), 2);
});
