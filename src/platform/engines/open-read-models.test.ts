import assert from 'node:assert/strict';
import { join } from 'node:path';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { hasCode } from '../../foundation/error.ts';
import { documentsOf } from '../../projections/documents.ts';
import { readModel } from '../../projections/read-model.ts';
import { reservePort } from '../../testing/servers/reserve-port.ts';
import { openReadModels } from './open-read-models.ts';

const currencies = readModel<{ readonly code: string }>({
  bc: 'banking',
  aggregate: 'currency',
  version: 1,
});
const source = { tenant: 'core', id: 'USD', stream: 'banking.currency.v1-core-USD', revision: 0 };

test('documents in memory are lost when they are closed, documents in a file are not', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-read-models-'));
  try {
    for (const [url, left] of [
      ['memory:', undefined],
      [`sqlite:${join(folder, 'events.db')}`, 'usd'],
    ] as const) {
      {
        await using store = await openReadModels(url);
        await documentsOf(store, currencies).put(source, { code: 'usd' });
      }
      await using store = await openReadModels(url);
      const found = await documentsOf(store, currencies).get('core', 'USD');
      assert.equal(found?.document.code, left, url);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('rejects a URL that it cannot understand, without its password', async () => {
  for (const url of ['redis://u:secret@h/shop', 'mysql://u:secret@h/db', '']) {
    await assert.rejects(
      () => openReadModels(url),
      (error) => hasCode(error, 'CONFIG_INVALID') && !error.message.includes('secret'),
    );
  }
});

for (const scheme of ['redis', 'redis+cluster']) {
  test(`${scheme}: an address where nothing listens is a retryable error`, async () => {
    await using unused = await reservePort();
    await assert.rejects(
      () => openReadModels(`${scheme}://${unused.host}:${unused.port}`),
      (error) => hasCode(error, 'STORE_UNAVAILABLE') && error.retryable,
    );
  });
}
