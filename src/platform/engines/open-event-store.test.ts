import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createEnvelope } from '../../contracts/envelope.ts';
import { hasCode } from '../../foundation/error.ts';
import { openEventStore } from './open-event-store.ts';

const stream = 'banking.currency.v1-core-USD';
const created = () =>
  createEnvelope(
    { type: 'currency.created.v1', payload: { name: 'Dollar' } },
    { tenant: 'core', aggregate: { bc: 'banking', type: 'currency', id: 'USD' } },
  );

test('a store in memory is lost when it is closed, a store in a file is not', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-open-'));
  try {
    for (const [url, left] of [
      ['memory:', 0],
      [`sqlite:${join(folder, 'deep', 'events.db')}`, 1],
    ] as const) {
      {
        await using store = await openEventStore(url);
        await store.append(stream, [created()]);
      }
      await using again = await openEventStore(url);
      assert.equal((await again.readStream(stream).toArray()).length, left, url);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('the options of the store reach its engine', async () => {
  await using store = await openEventStore('memory:', { payloadBytesMax: 5 });
  await assert.rejects(
    () => store.append(stream, [created()]),
    (error) => hasCode(error, 'PAYLOAD_TOO_LARGE'),
  );
});

test('an unreachable server is reported without the password', async () => {
  await assert.rejects(
    () => openEventStore('postgres://app:hunter2secret@127.0.0.1:1/shop'),
    (error) =>
      hasCode(error, 'STORE_UNAVAILABLE') &&
      !JSON.stringify(error).includes('hunter2') &&
      !error.message.includes('hunter2'),
  );
});

test('a schema name that needs quotes is rejected before a query is sent', async () => {
  await assert.rejects(
    () => openEventStore('postgres://127.0.0.1:1/shop', { schema: 'a"b' }),
    (error) => hasCode(error, 'CONFIG_INVALID'),
  );
});
