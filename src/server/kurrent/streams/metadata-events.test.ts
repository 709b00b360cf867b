import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from '../../../engines/memory/index.ts';
import { hasCode } from '../../../foundation/error.ts';
import { newEvents } from '../../../testing/conformance/store/fixture.ts';
import { kurrentStoreOptions } from '../kurrent-server.ts';
import { metadataView } from './metadata-events.ts';

test('after a soft delete is reverted, the last metadata event has the new truncation, older ones are unchanged', async () => {
  await using store = openMemory(kurrentStoreOptions).store;
  await store.append('a-1', newEvents(2));
  await store.deleteStream('a-1');
  await store.append('a-1', newEvents(1));
  await store.deleteStream('a-1');
  assert.equal(await metadataView({ store }, '$$a-1'), undefined);
  await store.append('a-1', newEvents(1));
  const show = await metadataView({ store }, '$$a-1');
  assert.ok(show !== undefined);
  const events = await store.readStream('$$a-1').toArray();
  assert.deepEqual(
    events.map((event) => show(event).payload),
    [{ $tb: Number.MAX_SAFE_INTEGER }, { $tb: 3 }],
  );
  assert.equal(await metadataView({ store }, 'a-1'), undefined);
});

test('the metadata stream of a tombstoned stream is deleted too', async () => {
  await using store = openMemory(kurrentStoreOptions).store;
  await store.tombstoneStream('a-1');
  await assert.rejects(metadataView({ store }, '$$a-1'), (error) =>
    hasCode(error, 'STREAM_DELETED'),
  );
});
