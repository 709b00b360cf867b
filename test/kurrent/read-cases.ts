// Reads of streams in both directions, and of index streams.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ResolvedEvent } from '@kurrent/kurrentdb-client';
import type { ClientCases } from './client-cases.ts';
import { followed } from './follow.ts';
import {
  collect,
  event,
  events,
  idsOf,
  rejectsWith,
  revisionsOf,
  unique,
} from './official-clients.ts';

export const readCases: ClientCases = ({ api, append }) => {
  test('reads forwards from the first event to the last', async () => {
    const stream = unique();
    const sent = events(7);
    await append(stream, sent);
    const read = await collect(api.readStream(stream));
    assert.deepEqual(idsOf(read), idsOf(sent));
    assert.deepEqual(revisionsOf(read), [0, 1, 2, 3, 4, 5, 6]);
  });

  test('reads backwards from the last event to the first', async () => {
    const stream = unique();
    const sent = events(7);
    await append(stream, sent);
    const read = await collect(
      api.readStream(stream, { direction: 'backwards', fromRevision: 'end' }),
    );
    assert.deepEqual(idsOf(read), idsOf(sent.toReversed()));
  });

  test('reads forwards from a revision, inclusive', async () => {
    const stream = unique();
    await append(stream, events(6));
    const read = await collect(api.readStream(stream, { fromRevision: 3n }));
    assert.deepEqual(revisionsOf(read), [3, 4, 5]);
  });

  test('reads backwards from a revision, inclusive', async () => {
    const stream = unique();
    await append(stream, events(6));
    const from = { direction: 'backwards', fromRevision: 3n } as const;
    assert.deepEqual(revisionsOf(await collect(api.readStream(stream, from))), [3, 2, 1, 0]);
  });

  test('unsupported system streams are an error instead of empty', async () => {
    for (const stream of ['$streams', '$bc-1']) {
      await assert.rejects(
        collect(api.readStream(stream)),
        /not supported by this server|unsupported by the server/,
      );
    }
  });

  test('the count limits reads in both directions', async () => {
    const stream = unique();
    await append(stream, events(6));
    assert.deepEqual(revisionsOf(await collect(api.readStream(stream, { maxCount: 2 }))), [0, 1]);
    const newest = { direction: 'backwards', fromRevision: 'end', maxCount: 2 } as const;
    assert.deepEqual(revisionsOf(await collect(api.readStream(stream, newest))), [5, 4]);
  });

  test('a read beyond the end is empty and not an error', async () => {
    const stream = unique();
    await append(stream, events(2));
    assert.deepEqual(await collect(api.readStream(stream, { fromRevision: 9n })), []);
    const from = { direction: 'backwards', fromRevision: 9n } as const;
    assert.deepEqual(revisionsOf(await collect(api.readStream(stream, from))), [1, 0]);
  });

  test('an unknown stream is not found, and the error has its name', async () => {
    const stream = unique('missing-Grüße-');
    for (const direction of ['forwards', 'backwards'] as const) {
      const fromRevision = direction === 'forwards' ? 'start' : 'end';
      const error = await rejectsWith('stream-not-found', () =>
        collect(api.readStream(stream, { direction, fromRevision })),
      );
      assert.equal(error.streamName, stream);
    }
  });

  test('an event has all its fields', async () => {
    const stream = unique();
    const sent = event({ metadata: { who: 'jane' } });
    const before = Date.now();
    await append(stream, sent);
    const [read] = await collect(api.readStream(stream));
    const { created, position: _position, ...rest } = read?.event ?? assert.fail('no event');
    assert.deepEqual(rest, {
      id: sent.id,
      type: sent.type,
      data: sent.data,
      metadata: sent.metadata,
      streamId: stream,
      revision: 0n,
      isJson: true,
    });
    // The bridge of the newer client has a resolution of one second.
    assert.ok(created.getTime() >= before - 1_000 && created.getTime() <= Date.now());
  });

  test('two thousand events are read completely and in order', async () => {
    const stream = unique();
    const sent = events(2_000);
    for (let at = 0; at < sent.length; at += 500) await append(stream, sent.slice(at, at + 500));
    assert.deepEqual(idsOf(await collect(api.readStream(stream))), idsOf(sent));
  });

  test('cancelling a read keeps the connection usable', async () => {
    const stream = unique();
    await append(stream, events(500));
    for (let round = 0; round < 20; round += 1) {
      assert.equal((await collect(api.readStream(stream), 3)).length, 3);
    }
    assert.equal((await collect(api.readStream(stream))).length, 500);
  });

  test('fifty concurrent reads are independent', async () => {
    const streams = Array.from({ length: 50 }, () => unique());
    await Promise.all(streams.map((stream, index) => append(stream, events(1 + (index % 7)))));
    const reads = await Promise.all(streams.map((stream) => collect(api.readStream(stream))));
    for (const [index, read] of reads.entries()) {
      assert.equal(read.length, 1 + (index % 7));
      assert.ok(read.every((each) => each.event?.streamId === streams[index]));
    }
  });

  test('a category with resolved links: the events of its streams, each with its link', async () => {
    const category = unique('category');
    const [a, b, other] = [`${category}-1`, `${category}-2`, `${category}x-1`];
    const sent = events(4);
    await append(a, sent.slice(0, 2));
    await append(other, event());
    await append(b, sent.slice(2));
    const read = await collect(api.readStream(`$ce-${category}`, { resolveLinkTos: true }));
    assert.deepEqual(idsOf(read), idsOf(sent));
    assert.deepEqual(
      read.map(({ link }) => [link?.type, link?.streamId, linkText(link)]),
      [`0@${a}`, `1@${a}`, `0@${b}`, `1@${b}`].map((text) => ['$>', `$ce-${category}`, text]),
    );
  });

  test('a category without resolved links: only the links', async () => {
    const category = unique('category');
    await append(`${category}-1`, events(2));
    const read = await collect(api.readStream(`$ce-${category}`));
    assert.deepEqual(
      read.map(({ event: link }) => [link?.type, linkText(link)]),
      [
        ['$>', `0@${category}-1`],
        ['$>', `1@${category}-1`],
      ],
    );
  });

  test('a category, backwards with a count', async () => {
    const category = unique('category');
    const sent = events(5);
    await append(`${category}-1`, sent);
    const read = await collect(
      api.readStream(`$ce-${category}`, {
        direction: 'backwards',
        fromRevision: 'end',
        maxCount: 3,
        resolveLinkTos: true,
      }),
    );
    assert.deepEqual(idsOf(read), idsOf(sent.toReversed().slice(0, 3)));
  });

  test('a category can be read from the number of a link', async () => {
    const category = unique('category');
    const sent = events(5);
    await append(`${category}-1`, sent);
    const [, , third] = await collect(api.readStream(`$ce-${category}`));
    const rest = await collect(
      api.readStream(`$ce-${category}`, {
        fromRevision: third?.event?.revision ?? 0n,
        resolveLinkTos: true,
      }),
    );
    assert.deepEqual(idsOf(rest), idsOf(sent.slice(2)));
  });

  test('reads the events of an event type from all streams', async () => {
    const type = unique('Type');
    const sent = events(3, { type });
    await append(unique('a-'), [...sent.slice(0, 2), event()]);
    await append(unique('b-'), [event(), ...sent.slice(2)]);
    const read = await collect(api.readStream(`$et-${type}`, { resolveLinkTos: true }));
    assert.deepEqual(idsOf(read), idsOf(sent));
    assert.ok(read.every(({ link }) => link?.streamId === `$et-${type}`));
  });

  test('a link has no event after truncation, expiry, deletion and a tombstone', async () => {
    const category = unique('c');
    const streams = Array.from({ length: 5 }, (_, index) => `${category}-${index}`) as [
      string,
      string,
      string,
      string,
      string,
    ];
    const type = unique('Type');
    for (const stream of streams) await append(stream, events(2, { type }));
    await api.setStreamMetadata(streams[1], { truncateBefore: 1 });
    await api.setStreamMetadata(streams[2], { maxCount: 1 });
    await api.deleteStream(streams[3]);
    await api.tombstoneStream(streams[4]);
    const expected = [
      [`0@${streams[0]}`, true],
      [`1@${streams[0]}`, true],
      [`0@${streams[1]}`, false],
      [`1@${streams[1]}`, true],
      [`0@${streams[2]}`, false],
      [`1@${streams[2]}`, true],
      [`0@${streams[3]}`, false],
      [`1@${streams[3]}`, false],
      [`0@${streams[4]}`, false],
      [`1@${streams[4]}`, false],
    ];
    const shown = (read: readonly ResolvedEvent[]): unknown[] =>
      read
        .filter(({ link }) => !String(link?.data).includes('$'))
        .map(({ link, event: target }) => [
          Buffer.from(link?.data as Uint8Array).toString(),
          target !== undefined,
        ]);
    for (const index of [`$ce-${category}`, `$et-${type}`]) {
      const read = await collect(api.readStream(index, { resolveLinkTos: true }));
      assert.deepEqual(shown(read).slice(0, 10), expected);
      await using follower = followed(api.subscribeToStream(index, { resolveLinkTos: true }));
      assert.deepEqual(shown(await follower.count(10)).slice(0, 10), expected);
    }
  });

  test('a category without events is not found', async () => {
    await rejectsWith('stream-not-found', () => collect(api.readStream(`$ce-${unique()}`)));
  });
};

/** `revision@stream`; clients differ in whether they parse it as JSON. */
function linkText(link: { readonly data: unknown } | undefined): string {
  const data = link?.data;
  return data instanceof Uint8Array ? Buffer.from(data).toString() : String(data);
}
