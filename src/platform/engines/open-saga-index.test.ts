import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { hasCode } from '../../foundation/error.ts';
import { reservePort } from '../../testing/servers/reserve-port.ts';
import { openSagaIndex } from './open-saga-index.ts';

const entry = {
  stream: 'shop.fulfilment.v1-core-o1',
  saga: 'shop.fulfilment.v1',
  tenant: 'core',
  key: 'o1',
  status: 'parked',
  revision: 3,
  updatedAtMs: 1,
  dueAtMs: undefined,
  shard: 0,
  reason: 'late',
} as const;

test('the index in a file is in the file of the events, and is durable', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-saga-index-'));
  try {
    for (const [url, left] of [
      ['memory:', []],
      [`sqlite:${join(folder, 'events.db')}`, [entry]],
    ] as const) {
      {
        await using index = await openSagaIndex(url);
        await index.put(entry);
      }
      await using index = await openSagaIndex(url);
      assert.deepEqual(await index.list({}), left, url);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('rejects a URL that it cannot understand, without its password', async () => {
  for (const url of ['redis://u:secret@h/shop', 'mysql://u:secret@h/db', '']) {
    await assert.rejects(
      () => openSagaIndex(url),
      (error) => hasCode(error, 'CONFIG_INVALID') && !error.message.includes('secret'),
    );
  }
});

for (const scheme of ['redis', 'redis+cluster']) {
  test(`${scheme}: an address where nothing listens is a retryable error`, async () => {
    await using unused = await reservePort();
    await assert.rejects(
      () => openSagaIndex(`${scheme}://${unused.host}:${unused.port}`),
      (error) => hasCode(error, 'STORE_UNAVAILABLE') && error.retryable,
    );
  });
}
