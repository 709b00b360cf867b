// Appends to several streams with version 2 of the protocol.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClientCases } from './client-cases.ts';
import {
  bytesEvent,
  collect,
  event,
  events,
  idsOf,
  rejectsWith,
  unique,
} from './official-clients.ts';

export const multiStreamCases: ClientCases = ({ api, append, kind }) => {
  const options = { skip: kind.hasMultiStream ? false : 'this client knows one stream at a time' };

  test('appends to all streams and returns the revision of each', options, async () => {
    const streams = [unique(), unique(), unique()];
    const sent = streams.map((_stream, index) => events(index + 1));
    const { responses, position } = await api.multiStreamAppend(
      streams.map((streamName, index) => ({
        streamName,
        events: sent[index] ?? [],
        expectedState: 'no_stream' as const,
      })),
    );
    assert.deepEqual(
      responses.map(({ streamName, revision }) => [streamName, revision]),
      streams.map((stream, index) => [stream, BigInt(index)]),
    );
    assert.ok(position > 0n);
    for (const [index, stream] of streams.entries()) {
      assert.deepEqual(idsOf(await collect(api.readStream(stream))), idsOf(sent[index] ?? []));
    }
  });

  test('a version conflict in one stream prevents all writes', options, async () => {
    const [fine, taken] = [unique(), unique()];
    await append(taken, events(2));
    const error = await rejectsWith('wrong-expected-version', () =>
      api.multiStreamAppend([
        { streamName: fine, events: [event()], expectedState: 'no_stream' },
        { streamName: taken, events: [event()], expectedState: 'no_stream' },
      ]),
    );
    assert.deepEqual([error.streamName, error.expected, error.actual], [taken, 'no_stream', 1n]);
    await rejectsWith('stream-not-found', () => collect(api.readStream(fine)));
  });

  test('a tombstoned stream prevents all writes', options, async () => {
    const [fine, dead] = [unique(), unique()];
    await api.tombstoneStream(dead);
    await rejectsWith('stream-tombstoned', () =>
      api.multiStreamAppend([
        { streamName: fine, events: [event()], expectedState: 'any' },
        { streamName: dead, events: [event()], expectedState: 'any' },
      ]),
    );
    await rejectsWith('stream-not-found', () => collect(api.readStream(fine)));
  });

  test('repeating an append returns the same revisions and stores one copy', options, async () => {
    const streams = [unique(), unique()];
    const requests = streams.map((streamName) => ({
      streamName,
      events: events(2),
      expectedState: 'no_stream' as const,
    }));
    const first = await api.multiStreamAppend(requests);
    assert.deepEqual((await api.multiStreamAppend(requests)).responses, first.responses);
    for (const stream of streams) {
      assert.equal((await collect(api.readStream(stream))).length, 2);
    }
  });

  test('properties become the metadata of the event', options, async () => {
    const streamName = unique();
    const metadata = { $correlationId: 'c-1', who: 'jane' };
    await api.multiStreamAppend([
      { streamName, events: [event({ metadata })], expectedState: 'any' },
    ]);
    const [read] = await collect(api.readStream(streamName));
    const stored = read?.event?.metadata as Record<string, unknown>;
    assert.equal(stored['$correlationId'], 'c-1');
    assert.equal(stored['who'], 'jane');
  });

  test('binary data is returned unchanged', options, async () => {
    const streamName = unique();
    const data = Uint8Array.from([0, 1, 254, 255]);
    await api.multiStreamAppend([{ streamName, events: [bytesEvent(data)], expectedState: 'any' }]);
    const [read] = await collect(api.readStream(streamName));
    assert.deepEqual(Buffer.from(read?.event?.data as Uint8Array), Buffer.from(data));
  });

  test('appended records keep the order of sending across streams', options, async () => {
    const [a, b] = [unique('rec'), unique('rec')];
    const sent = events(5);
    const { responses } = await api.appendRecords(
      sent.map((record, index) => ({ streamName: index % 2 === 0 ? a : b, record })),
    );
    assert.deepEqual(
      new Map(responses.map(({ streamName, revision }) => [streamName, revision])),
      new Map([
        [a, 2n],
        [b, 1n],
      ]),
    );
    const all = await collect(api.readAll());
    const mine = all.filter((read) => [a, b].includes(read.event?.streamId ?? ''));
    assert.deepEqual(idsOf(mine), idsOf(sent));
  });

  test(
    'a failed check of an unwritten stream prevents the append of records',
    options,
    async () => {
      const [written, looked] = [unique(), unique()];
      await append(looked, events(3));
      const check = { type: 'stream_state', streamName: looked } as const;
      await rejectsWith('append-consistency-violation', () =>
        api.appendRecords(
          [{ streamName: written, record: event() }],
          [{ ...check, expectedState: 0n }],
        ),
      );
      await rejectsWith('stream-not-found', () => collect(api.readStream(written)));
      await api.appendRecords(
        [{ streamName: written, record: event() }],
        [{ ...check, expectedState: 2n }],
      );
      assert.equal((await collect(api.readStream(written))).length, 1);
    },
  );
};
