// Stream metadata and the events that it hides.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClientCases } from './client-cases.ts';
import { followed } from './follow.ts';
import { collect, event, events, rejectsWith, revisionsOf, unique } from './official-clients.ts';

export const metadataCases: ClientCases = ({ api, append }) => {
  test('metadata is returned unchanged, including custom members', async () => {
    const stream = unique();
    const metadata = {
      maxCount: 10,
      maxAge: 3_600,
      truncateBefore: 2,
      cacheControl: 60,
      acl: { readRoles: ['$all'], writeRoles: ['writers'] },
      owner: { name: 'jane', tags: [1, 2] },
    };
    await api.setStreamMetadata(stream, metadata);
    const { metadata: read, streamName } = await api.getStreamMetadata(stream);
    assert.deepEqual(read, metadata);
    assert.equal(streamName, stream);
  });

  test('a stream without metadata has none', async () => {
    const stream = unique();
    await append(stream, event());
    const { metadata, metastreamRevision } = await api.getStreamMetadata(stream);
    assert.deepEqual([metadata, metastreamRevision], [undefined, undefined]);
  });

  test('metadata has its own revisions, which can be expected', async () => {
    const stream = unique();
    await api.setStreamMetadata(stream, { maxCount: 1 }, expecting('no_stream'));
    await api.setStreamMetadata(stream, { maxCount: 2 }, expecting(0n));
    const { metadata } = await api.getStreamMetadata(stream);
    assert.deepEqual(metadata, { maxCount: 2 });
    // The metadata revision of the clients is its position.
    assert.deepEqual(revisionsOf(await collect(api.readStream(`$$${stream}`))), [1]);
  });

  test('the metadata stream shows only its last event, to reads and subscriptions', async () => {
    const stream = unique();
    for (const maxCount of [1, 2, 3]) await api.setStreamMetadata(stream, { maxCount });
    const read = async (options: object): Promise<number[]> =>
      revisionsOf(await collect(api.readStream(`$$${stream}`, options)));
    assert.deepEqual(await read({ maxCount: 1 }), [2]);
    assert.deepEqual(await read({ fromRevision: 1n }), [2]);
    assert.deepEqual(await read({ fromRevision: 3n }), []);
    const backwards = { direction: 'backwards' } as const;
    assert.deepEqual(await read({ ...backwards, fromRevision: 'end' }), [2]);
    assert.deepEqual(await read({ ...backwards, fromRevision: 1n }), []);
    await using follower = followed(api.subscribeToStream(`$$${stream}`));
    await follower.caughtUp();
    await api.setStreamMetadata(stream, {});
    assert.deepEqual(revisionsOf(await follower.count(2)), [2, 3]);
  });

  test('a maximum count or age of 0 hides nothing', async () => {
    const stream = unique();
    await append(stream, events(3));
    for (const metadata of [{ maxCount: 0 }, { maxAge: 0 }]) {
      await append(`$$${stream}`, {
        ...event({ type: '$metadata' }),
        data: Object.fromEntries(
          Object.entries(metadata).map(([key, value]) => [`$${key}`, value]),
        ),
      });
      assert.equal((await collect(api.readStream(stream))).length, 3);
    }
  });

  test('metadata is an event of the metadata stream', async () => {
    const stream = unique();
    await api.setStreamMetadata(stream, { maxCount: 3 });
    const [read] = await collect(api.readStream(`$$${stream}`));
    assert.equal(read?.event?.type, '$metadata');
    assert.deepEqual(read?.event?.data, { $maxCount: 3 });
  });

  test('a maximum count shows only the newest events, in both directions', async () => {
    const stream = unique();
    await append(stream, events(6));
    await api.setStreamMetadata(stream, { maxCount: 2 });
    assert.deepEqual(revisionsOf(await collect(api.readStream(stream))), [4, 5]);
    const newest = { direction: 'backwards', fromRevision: 'end' } as const;
    assert.deepEqual(revisionsOf(await collect(api.readStream(stream, newest))), [5, 4]);
    await append(stream, event());
    assert.deepEqual(revisionsOf(await collect(api.readStream(stream))), [5, 6]);
  });

  test('a truncation hides earlier events, and a read from before starts there', async () => {
    const stream = unique();
    await append(stream, events(6));
    await api.setStreamMetadata(stream, { truncateBefore: 4 });
    assert.deepEqual(revisionsOf(await collect(api.readStream(stream))), [4, 5]);
    const from = { fromRevision: 1n } as const;
    assert.deepEqual(revisionsOf(await collect(api.readStream(stream, from))), [4, 5]);
  });

  test('the stricter of truncation and maximum count applies', async () => {
    const stream = unique();
    await append(stream, events(8));
    await api.setStreamMetadata(stream, { truncateBefore: 2, maxCount: 3 });
    assert.deepEqual(revisionsOf(await collect(api.readStream(stream))), [5, 6, 7]);
    await api.setStreamMetadata(stream, { truncateBefore: 7, maxCount: 3 });
    assert.deepEqual(revisionsOf(await collect(api.readStream(stream))), [7]);
  });

  test('a maximum age keeps recent events visible', async () => {
    const stream = unique();
    await append(stream, events(2));
    await api.setStreamMetadata(stream, { maxAge: 3_600 });
    assert.deepEqual(revisionsOf(await collect(api.readStream(stream))), [0, 1]);
  });

  test('hidden events still count for revisions and repeats', async () => {
    const stream = unique();
    const sent = events(3);
    await append(stream, sent);
    await api.setStreamMetadata(stream, { truncateBefore: 3 });
    assert.equal((await append(stream, sent, 'no_stream')).nextExpectedRevision, 2n);
    assert.equal((await append(stream, event(), 2n)).nextExpectedRevision, 3n);
    assert.deepEqual(revisionsOf(await collect(api.readStream(stream))), [3]);
  });

  test('hidden events are still in $all', async () => {
    const stream = unique();
    await append(stream, events(4));
    await api.setStreamMetadata(stream, { maxCount: 1 });
    const all = await collect(api.readAll());
    assert.equal(all.filter((read) => read.event?.streamId === stream).length, 4);
  });

  test('new metadata makes hidden events visible again', async () => {
    const stream = unique();
    await append(stream, events(3));
    await api.setStreamMetadata(stream, { maxCount: 1 });
    await api.setStreamMetadata(stream, { owner: 'jane' });
    assert.equal((await collect(api.readStream(stream))).length, 3);
  });

  test('metadata with a wrong expected revision is rejected', async () => {
    const stream = unique();
    await api.setStreamMetadata(stream, { maxCount: 1 });
    await rejectsWith('wrong-expected-version', () =>
      api.setStreamMetadata(stream, { maxCount: 2 }, expecting(7n)),
    );
  });
};

/** With the names of both clients. */
function expecting(revision: 'no_stream' | bigint): object {
  return { streamState: revision, expectedRevision: revision };
}
