import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from '../../../engines/memory/index.ts';
import { hasCode } from '../../../foundation/error.ts';
import { newEvents } from '../../../testing/conformance/store/fixture.ts';
import { kurrentStoreOptions } from '../kurrent-server.ts';
import { metadataView } from './metadata-events.ts';

test('after a soft delete is reverted, the last metadata event has the new truncation', async () => {
  await using store = openMemory(kurrentStoreOptions).store;
  await store.append('a-1', newEvents(2));
  await store.deleteStream('a-1');
  await store.append('a-1', newEvents(1));
  await store.deleteStream('a-1');
  const shown = async (): Promise<unknown> => {
    const view = await metadataView({ store }, '$$a-1');
    const events = await store.readStream('$$a-1').toArray();
    const last = events.find(({ revision }) => revision === view?.last);
    return last === undefined ? undefined : view?.show(last).payload;
  };
  assert.deepEqual(await shown(), { $tb: Number.MAX_SAFE_INTEGER });
  await store.append('a-1', newEvents(1));
  assert.deepEqual(await shown(), { $tb: 3 });
  assert.equal(await metadataView({ store }, 'a-1'), undefined);
});

test('the metadata stream of a tombstoned stream is deleted too', async () => {
  await using store = openMemory(kurrentStoreOptions).store;
  await store.tombstoneStream('a-1');
  await assert.rejects(metadataView({ store }, '$$a-1'), (error) =>
    hasCode(error, 'STREAM_DELETED'),
  );
});
