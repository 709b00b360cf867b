// Soft deletes, which an append can revert, and tombstones, which are permanent.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClientCases } from './client-cases.ts';
import {
  collect,
  event,
  events,
  idsOf,
  rejectsWith,
  revisionsOf,
  unique,
} from './official-clients.ts';

export const deleteCases: ClientCases = ({ api, append }) => {
  test('a deleted stream is not found, and $all still has its events', async () => {
    const stream = unique();
    const sent = events(2);
    await append(stream, sent);
    const { position } = await api.deleteStream(stream);
    assert.ok(position !== undefined);
    await rejectsWith('stream-not-found', () => collect(api.readStream(stream)));
    const all = await collect(api.readAll());
    const left = all.filter((read) => read.event?.streamId === stream);
    assert.deepEqual(idsOf(left), idsOf(sent));
  });

  for (const expected of ['any', 'no_stream', 2n] as const) {
    test(`an append with ${expected} restores a deleted stream and continues its revisions`, async () => {
      const stream = unique();
      await append(stream, events(3));
      await api.deleteStream(stream);
      const sent = events(2);
      const { nextExpectedRevision } = await append(stream, sent, expected);
      assert.equal(nextExpectedRevision, 4n);
      const read = await collect(api.readStream(stream));
      assert.deepEqual(idsOf(read), idsOf(sent));
      assert.deepEqual(revisionsOf(read), [3, 4]);
    });
  }

  test('an append with stream_exists to a deleted stream is rejected as deleted', async () => {
    const stream = unique();
    await append(stream, event());
    await api.deleteStream(stream);
    const error = await rejectsWith('stream-deleted', () =>
      append(stream, event(), 'stream_exists'),
    );
    assert.equal(error.streamName, stream);
  });

  test('the metadata of a deleted stream shows the deletion until the stream is restored', async () => {
    const stream = unique();
    await append(stream, events(2));
    await api.deleteStream(stream);
    const deleted = await api.getStreamMetadata(stream);
    assert.ok(Number(deleted.metadata?.truncateBefore) >= Number.MAX_SAFE_INTEGER);
    await append(stream, event());
    const back = await api.getStreamMetadata(stream);
    assert.equal(Number(back.metadata?.truncateBefore), 2);
  });

  test('a restored stream has no other metadata', async () => {
    const stream = unique();
    await append(stream, events(2));
    await api.setStreamMetadata(stream, { maxCount: 1, owner: 'jane' });
    await api.deleteStream(stream);
    await append(stream, events(3));
    const { metadata } = await api.getStreamMetadata(stream);
    assert.deepEqual(Object.keys(metadata ?? {}), ['truncateBefore']);
    assert.equal((await collect(api.readStream(stream))).length, 3);
  });

  test('a stream that does not exist cannot be deleted', async () => {
    for (const expectedRevision of ['any', 'no_stream'] as const) {
      const stream = unique();
      const error = await rejectsWith('wrong-expected-version', () =>
        api.deleteStream(stream, { expectedRevision }),
      );
      assert.deepEqual([error.streamName, error.actual], [stream, -1n]);
      assert.equal((await append(stream, event(), 'no_stream')).nextExpectedRevision, 0n);
    }
  });

  test('a tombstone is an empty event with the highest revision in $all', async () => {
    const stream = unique();
    await append(stream, events(2));
    await api.tombstoneStream(stream);
    const all = await collect(api.readAll());
    const tombstone = all.find(
      ({ event: each }) => each?.streamId === stream && each.type === '$streamDeleted',
    )?.event;
    assert.deepEqual([tombstone?.revision, tombstone?.isJson], [2n ** 63n - 1n, false]);
    const data = tombstone?.data as Uint8Array | undefined;
    assert.equal(data?.length, 0);
  });

  test('a delete checks the expected revision', async () => {
    const stream = unique();
    await append(stream, events(3));
    const error = await rejectsWith('wrong-expected-version', () =>
      api.deleteStream(stream, { expectedRevision: 1n }),
    );
    assert.deepEqual([error.streamName, error.expected, error.actual], [stream, 1n, 2n]);
    assert.equal((await collect(api.readStream(stream))).length, 3);
    await api.deleteStream(stream, { expectedRevision: 2n });
    await rejectsWith('stream-not-found', () => collect(api.readStream(stream)));
  });

  test('a delete with no_stream rejects an existing stream', async () => {
    const stream = unique();
    await append(stream, event());
    await rejectsWith('wrong-expected-version', () =>
      api.deleteStream(stream, { expectedRevision: 'no_stream' }),
    );
  });

  test('a tombstoned stream rejects reads and appends', async () => {
    const stream = unique();
    await append(stream, events(2));
    await api.tombstoneStream(stream);
    const reading = await rejectsWith('stream-deleted', () => collect(api.readStream(stream)));
    assert.equal(reading.streamName, stream);
    for (const expected of ['any', 'no_stream', 'stream_exists', 1n] as const) {
      const error = await rejectsWith('stream-deleted', () => append(stream, event(), expected));
      assert.equal(error.streamName, stream);
    }
  });

  test('a tombstoned stream rejects Append with credentials', async () => {
    const stream = unique();
    await api.tombstoneStream(stream);
    const credentials = { username: 'admin', password: 'changeit' };
    const error = await rejectsWith('stream-deleted', () =>
      append(stream, event(), 'any', { credentials }),
    );
    assert.equal(error.streamName, stream);
  });

  test('a tombstone checks the expected revision', async () => {
    const stream = unique();
    await append(stream, events(2));
    const error = await rejectsWith('wrong-expected-version', () =>
      api.tombstoneStream(stream, { expectedRevision: 9n }),
    );
    assert.deepEqual([error.expected, error.actual], [9n, 1n]);
    assert.equal((await collect(api.readStream(stream))).length, 2);
  });

  test('a tombstoned stream rejects a second tombstone or delete', async () => {
    const stream = unique();
    await append(stream, event());
    await api.tombstoneStream(stream);
    await rejectsWith('stream-deleted', () => api.tombstoneStream(stream));
    await rejectsWith('stream-deleted', () => api.deleteStream(stream));
  });

  test('a stream that does not exist can get a tombstone', async () => {
    const stream = unique('ümläut-');
    await api.tombstoneStream(stream, { expectedRevision: 'no_stream' });
    const error = await rejectsWith('stream-deleted', () => append(stream, event()));
    assert.equal(error.streamName, stream);
  });
};
