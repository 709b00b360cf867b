// Appends: expected revisions, idempotent repeats, and unchanged data.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { serveMemory, type ClientCases } from './client-cases.ts';
import {
  bytesEvent,
  collect,
  event,
  events,
  idsOf,
  rejectsWith,
  revisionsOf,
  unique,
} from './official-clients.ts';

export const appendCases: ClientCases = ({ api, append, kind }) => {
  test('the first event of a stream has revision 0 and the position that a read returns', async () => {
    const stream = unique();
    const result = await append(stream, event());
    assert.equal(result.success, true);
    assert.equal(result.nextExpectedRevision, 0n);
    const [read] = await collect(
      api.readAll({ direction: 'backwards', maxCount: 1, fromPosition: 'end' }),
    );
    assert.equal(read?.event?.streamId, stream);
    assert.deepEqual(read?.event?.position, result.position);
  });

  test('an empty binary event is stored', async () => {
    const stream = unique();
    await append(stream, bytesEvent(new Uint8Array()));
    const [read] = await collect(api.readStream(stream));
    const data = read?.event?.data as Uint8Array | undefined;
    assert.deepEqual([data?.length, read?.event?.isJson], [0, false]);
  });

  test('the result of several events has the revision and position of the last one', async () => {
    const stream = unique();
    const sent = events(5);
    const { nextExpectedRevision } = await append(stream, sent);
    assert.equal(nextExpectedRevision, 4n);
    const read = await collect(api.readStream(stream));
    assert.deepEqual(idsOf(read), idsOf(sent));
    assert.deepEqual(revisionsOf(read), [0, 1, 2, 3, 4]);
  });

  test('no_stream: appends to a new stream', async () => {
    assert.equal((await append(unique(), events(2), 'no_stream')).nextExpectedRevision, 1n);
  });

  test('no_stream: an existing stream is a version conflict with the expected and the actual version', async () => {
    const stream = unique();
    await append(stream, events(3));
    const error = await rejectsWith('wrong-expected-version', () =>
      append(stream, event(), 'no_stream'),
    );
    assert.deepEqual([error.streamName, error.expected, error.actual], [stream, 'no_stream', 2n]);
    assert.equal((await collect(api.readStream(stream))).length, 3);
  });

  test('an append that expects a revision follows it directly', async () => {
    const stream = unique();
    await append(stream, events(2));
    assert.equal((await append(stream, events(2), 1n)).nextExpectedRevision, 3n);
  });

  test('an append that expects an older revision fails with a version conflict', async () => {
    const stream = unique();
    await append(stream, events(4));
    const error = await rejectsWith('wrong-expected-version', () => append(stream, event(), 1n));
    assert.deepEqual([error.expected, error.actual], [1n, 3n]);
  });

  test('an append that expects a later revision fails with a version conflict', async () => {
    const stream = unique();
    await append(stream, event());
    const error = await rejectsWith('wrong-expected-version', () => append(stream, event(), 7n));
    assert.deepEqual([error.expected, error.actual], [7n, 0n]);
  });

  test('an append that expects a revision of an unknown stream fails and does not create it', async () => {
    const stream = unique();
    const error = await rejectsWith('wrong-expected-version', () => append(stream, event(), 3n));
    assert.deepEqual([error.expected, error.actual], [3n, 'no_stream']);
    await rejectsWith('stream-not-found', () => collect(api.readStream(stream)));
  });

  test('stream_exists: appends to an existing stream', async () => {
    const stream = unique();
    await append(stream, event());
    assert.equal((await append(stream, event(), 'stream_exists')).nextExpectedRevision, 1n);
  });

  test('stream_exists: an unknown stream is a version conflict', async () => {
    const error = await rejectsWith('wrong-expected-version', () =>
      append(unique(), event(), 'stream_exists'),
    );
    assert.deepEqual([error.expected, error.actual], ['stream_exists', 'no_stream']);
  });

  test('stream_exists: metadata alone makes a stream exist', async () => {
    const stream = unique();
    await api.setStreamMetadata(stream, { maxCount: 10 });
    assert.equal((await append(stream, event(), 'stream_exists')).nextExpectedRevision, 0n);
  });

  for (const expected of ['any', 'no_stream', 'stream_exists', 2n] as const) {
    test(`repeating an append with ${expected} returns the first result and stores one copy`, async () => {
      const stream = unique();
      const before = expected === 2n || expected === 'stream_exists' ? 3 : 0;
      if (before > 0) await append(stream, events(before));
      const sent = events(2);
      const first = await append(stream, sent, expected);
      const again = await append(stream, sent, expected);
      assert.deepEqual(again, first);
      assert.equal((await collect(api.readStream(stream))).length, before + 2);
    });
  }

  test('a repeat is recognized after later appends', async () => {
    const stream = unique();
    const sent = events(2);
    const first = await append(stream, sent, 'no_stream');
    for (let round = 0; round < 3; round += 1) await append(stream, events(20));
    assert.deepEqual((await append(stream, sent, 'no_stream')).position, first.position);
    assert.deepEqual((await append(stream, sent, 'any')).position, first.position);
  });

  test('a repeat with an additional event is a version conflict', async () => {
    const stream = unique();
    const sent = events(2);
    await append(stream, sent);
    for (const expected of ['any', 'no_stream'] as const) {
      await rejectsWith('wrong-expected-version', () =>
        append(stream, [...sent, event()], expected),
      );
    }
    assert.equal((await collect(api.readStream(stream))).length, 2);
  });

  test('other events at the revisions of an earlier append are a version conflict', async () => {
    const stream = unique();
    await append(stream, events(3), 'no_stream');
    await rejectsWith('wrong-expected-version', () => append(stream, events(3), 'no_stream'));
  });

  test('two streams may contain events with the same id', async () => {
    const [a, b] = [unique(), unique()];
    const sent = event();
    await append(a, sent, 'no_stream');
    await append(b, sent, 'no_stream');
    assert.deepEqual(idsOf(await collect(api.readStream(b))), [sent.id]);
  });

  test('binary data is returned unchanged', async () => {
    const stream = unique();
    const data = Uint8Array.from({ length: 512 }, (_, index) => index % 256);
    await append(stream, bytesEvent(data));
    const [read] = await collect(api.readStream(stream));
    assert.equal(read?.event?.isJson, false);
    assert.deepEqual(Buffer.from(read.event.data), Buffer.from(data));
  });

  test('JSON data and metadata are returned unchanged', async () => {
    const stream = unique();
    const data = { text: 'Grüße 世界 👩‍👧', list: [1, null, false, { deep: '' }], __proto: 1 };
    const metadata = { $correlationId: randomUUID(), tags: ['a', 'b'], n: 1.5 };
    await append(stream, event({ data, metadata }));
    const [read] = await collect(api.readStream(stream));
    assert.deepEqual(read?.event?.data, data);
    assert.deepEqual(read?.event?.metadata, metadata);
    assert.equal(read?.event?.isJson, true);
  });

  test('metadata that is not JSON is returned unchanged', async () => {
    const stream = unique();
    const metadata = Uint8Array.from([0, 255, 1, 254, 128]);
    await append(stream, event({ metadata }));
    const [read] = await collect(api.readStream(stream));
    assert.deepEqual(Buffer.from(read?.event?.metadata as Uint8Array), Buffer.from(metadata));
  });

  test('an event without metadata has none', async () => {
    const stream = unique();
    await append(stream, event());
    const [read] = await collect(api.readStream(stream));
    assert.equal(read?.event?.metadata, undefined);
  });

  test('numbers beyond the precision of JavaScript are returned unchanged', async () => {
    const stream = unique();
    const text = '{"big":12345678901234567890,"spaced": 1.0}';
    const raw = bytesEvent(Buffer.from(text));
    await append(stream, raw);
    const [read] = await collect(api.readStream(stream));
    assert.equal(Buffer.from(read?.event?.data as Uint8Array).toString(), text);
  });

  test('an append above the limit is rejected with the limit, and writes nothing', async () => {
    const stream = unique();
    const large = event({ data: { text: 'x'.repeat(1_100_000) } });
    const error = await rejectsWith('maximum-append-size-exceeded', () => append(stream, large));
    assert.equal(error.maxAppendSize, 1_048_576);
    await rejectsWith('stream-not-found', () => collect(api.readStream(stream)));
  });

  test('an append in many messages is one append', async () => {
    const stream = unique();
    const sent = events(300);
    const { nextExpectedRevision } = await append(stream, sent, 'no_stream', {
      batchAppendSize: 2_000,
    });
    assert.equal(nextExpectedRevision, 299n);
    assert.deepEqual(idsOf(await collect(api.readStream(stream))), idsOf(sent));
  });

  test('two hundred concurrent appends each get their own result', async () => {
    const streams = Array.from({ length: 200 }, () => unique());
    const results = await Promise.all(
      streams.map((stream, index) => append(stream, events(1 + (index % 3)), 'no_stream')),
    );
    assert.deepEqual(
      results.map(({ nextExpectedRevision }) => Number(nextExpectedRevision)),
      streams.map((_stream, index) => index % 3),
    );
    assert.equal(new Set(results.map(({ position }) => position?.commit)).size, 200);
  });

  test('one of twenty concurrent appends that expect no stream succeeds', async () => {
    const stream = unique();
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, () => append(stream, event(), 'no_stream')),
    );
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
    assert.equal((await collect(api.readStream(stream))).length, 1);
  });

  test('names can contain non-ASCII characters, also in errors', async () => {
    const stream = `${unique()}-Grüße-世界 "%&/`;
    await append(stream, event());
    const [read] = await collect(api.readStream(stream));
    assert.equal(read?.event?.streamId, stream);
    const error = await rejectsWith('wrong-expected-version', () => append(stream, event(), 9n));
    assert.equal(error.streamName, stream);
  });

  test('an event without a type is rejected', async () => {
    const stream = unique();
    await assert.rejects(() => append(stream, event({ type: '' })));
    await rejectsWith('stream-not-found', () => collect(api.readStream(stream)));
  });

  // With call credentials clients do not use BatchAppend: each append is a separate call.
  const credentials = { username: 'admin', password: 'changeit' };

  test('Append with credentials returns the same results', async () => {
    const stream = unique();
    const sent = events(3);
    const first = await append(stream, sent, 'no_stream', { credentials });
    assert.equal(first.nextExpectedRevision, 2n);
    assert.deepEqual(await append(stream, sent, 'no_stream', { credentials }), first);
    assert.deepEqual(idsOf(await collect(api.readStream(stream))), idsOf(sent));
  });

  for (const [expected, actual] of [
    ['no_stream', 1n],
    [5n, 1n],
    ['stream_exists', 'no_stream'],
  ] as const) {
    test(`Append with credentials reports a version conflict, expecting ${expected}`, async () => {
      const stream = unique();
      if (expected !== 'stream_exists') await append(stream, events(2));
      const error = await rejectsWith('wrong-expected-version', () =>
        append(stream, event(), expected, { credentials }),
      );
      assert.deepEqual(
        [error.streamName, error.expected, error.actual],
        [stream, expected, actual],
      );
    });
  }

  test('Append with credentials rejects an append above the limit', async () => {
    const large = event({ data: { text: 'x'.repeat(1_100_000) } });
    const error = await rejectsWith('maximum-append-size-exceeded', () =>
      append(unique(), large, 'any', { credentials }),
    );
    assert.equal(error.maxAppendSize, 1_048_576);
  });

  test('a client without thrown errors gets an unsuccessful result', async () => {
    await using served = await serveMemory();
    await using quiet = kind.connect(`${served.url}&throwOnAppendFailure=false`);
    const stream = unique();
    await quiet.append(stream, event());
    const result = await quiet.append(stream, event(), 5n);
    assert.equal(result.success, false);
  });
};
