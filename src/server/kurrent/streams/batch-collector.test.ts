import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WireBatchRequest } from '../protocol/streams-messages.ts';
import { RpcError, status } from '../rpc-error.ts';
import { createBatchCollector } from './batch-collector.ts';

const id = (last: number): { string: string } => ({
  string: `00000000-0000-4000-8000-${String(last).padStart(12, '0')}`,
});

function chunk(
  batch: number,
  more: Partial<WireBatchRequest> & { readonly bytes?: number } = {},
): WireBatchRequest {
  const { bytes = 10, ...rest } = more;
  return {
    correlationId: id(batch),
    isFinal: false,
    proposedMessages: [
      {
        id: id(900 + batch),
        metadata: { type: 'a' },
        customMetadata: Buffer.alloc(0),
        data: Buffer.alloc(bytes),
      },
    ],
    ...rest,
  };
}

const options = { streamIdentifier: { streamName: Buffer.from('a-1') }, any: {} };
const limits = {
  appendBytesMax: 100,
  openBatchesMax: 2,
  openBatchBytesPerCallMax: 1_000,
  openAppendBytesMax: 1_000,
  openAppendIdleMsMax: 30_000,
};
const collectorOf = (more: Partial<typeof limits> = {}, ofAllCalls = { open: 0, running: 0 }) =>
  createBatchCollector({ ...limits, ...more }, ofAllCalls);

test('chunks of several batches interleave, and each batch is complete with its last chunk', () => {
  const collector = collectorOf();
  assert.equal(collector.add(chunk(1, { options }), 0).kind, 'open');
  assert.equal(collector.add(chunk(2, { options }), 0).kind, 'open');
  assert.equal(collector.add(chunk(1), 0).kind, 'open');
  const second = collector.add(chunk(2, { isFinal: true }), 0);
  const first = collector.add(chunk(1, { isFinal: true }), 0);
  assert.ok(first.kind === 'complete' && second.kind === 'complete');
  assert.deepEqual([first.batch.events.length, second.batch.events.length], [3, 2]);
  assert.equal(collector.size, 0);
});

test('an incomplete batch does not keep the messages of its chunks in memory', () => {
  const collector = collectorOf();
  // A decoded field is a view of its whole message, whatever else the message contains.
  const message = Buffer.alloc(1_000_000, 'a-1');
  const options1 = { streamIdentifier: { streamName: message.subarray(0, 3) }, any: {} };
  const [data, customMetadata] = [message.subarray(9, 12), message.subarray(0, 6)];
  const proposed = { id: id(900), metadata: { type: 'a' }, data, customMetadata };
  collector.add(chunk(1, { options: options1, proposedMessages: [proposed] }), 0);
  const complete = collector.add(chunk(1, { isFinal: true }), 0);
  assert.ok(complete.kind === 'complete');
  const { events, request } = complete.batch;
  const kept = [
    request.options?.streamIdentifier?.streamName,
    events[0]?.data,
    events[0]?.metadata,
  ];
  assert.deepEqual(kept.map(String), ['a-1', 'a-1', 'a-1a-1']);
  for (const bytes of kept) assert.ok((bytes?.buffer.byteLength ?? 0) < 100_000);
});

test('a too large batch is rejected once, and its later chunks are ignored', () => {
  const collector = collectorOf();
  collector.add(chunk(1, { options, bytes: 60 }), 0);
  const rejected = collector.add(chunk(1, { bytes: 60 }), 0);
  assert.ok(rejected.kind === 'rejected' && rejected.error instanceof RpcError);
  assert.equal(rejected.error.parts.exception, 'maximum-append-size-exceeded');
  assert.ok(rejected.request.options !== undefined);
  assert.equal(collector.add(chunk(1, { bytes: 60 }), 0).kind, 'open');
  assert.equal(collector.add(chunk(1, { isFinal: true }), 0).kind, 'open');
  assert.equal(collector.size, 0);
});

test('a batch without options, and batches beyond the maximum, are rejected', () => {
  const collector = collectorOf();
  assert.equal(collector.add(chunk(1), 0).kind, 'rejected');
  collector.add(chunk(2, { options }), 0);
  collector.add(chunk(3, { options }), 0);
  assert.equal(collector.add(chunk(4, { options }), 0).kind, 'rejected');
});

test('a deadline is a time or a duration', () => {
  const deadline = (more: object): number | undefined => {
    const collected = collectorOf().add(
      chunk(1, { options: { ...options, ...more }, isFinal: true }),
      5_000,
    );
    return collected.kind === 'complete' ? collected.batch.deadlineMs : undefined;
  };
  assert.equal(deadline({}), undefined);
  assert.equal(deadline({ deadlineAt: { seconds: 7, nanos: 500_000_000 } }), 7_500);
  assert.equal(deadline({ deadlineIn: { seconds: 2, nanos: 1_000_000 } }), 7_001);
});

test('incomplete batches are limited in bytes per call and for all calls', () => {
  const used = { open: 0, running: 0 };
  const bounds = { openBatchBytesPerCallMax: 60, openAppendBytesMax: 100, openBatchesMax: 9 };
  const first = collectorOf(bounds, used);
  const second = collectorOf(bounds, used);
  const size = (last: number): Partial<WireBatchRequest> & { bytes: number } => ({
    options,
    bytes: last,
  });
  assert.equal(first.add(chunk(1, size(50)), 0).kind, 'open');
  const rejected = first.add(chunk(2, size(50)), 0);
  assert.ok(rejected.kind === 'rejected' && rejected.error instanceof RpcError);
  assert.equal(rejected.error.parts.status, status.resourceExhausted);
  assert.equal(second.add(chunk(3, size(40)), 0).kind, 'open');
  assert.equal(second.add(chunk(4, size(30)), 0).kind, 'rejected');
  const { open: before } = used;
  assert.equal(first.add(chunk(1, { isFinal: true }), 0).kind, 'complete');
  assert.ok(used.open < before - 50, 'a complete batch is not counted');
  second.clear();
  assert.equal(used.open, 0);
});

test('a batch that gets no chunk for too long is rejected, and its memory is free', () => {
  const used = { open: 0, running: 0 };
  const collector = collectorOf({}, used);
  collector.add(chunk(1, { options }), 0);
  collector.add(chunk(2, { options }), 0);
  collector.add(chunk(2), 20_000);
  const rejected = collector.expire(30_000);
  assert.deepEqual(
    rejected.map(({ request }) => request.correlationId),
    [id(1)],
  );
  assert.equal(collector.size, 1);
  assert.deepEqual(collector.expire(50_000).length, 1);
  assert.deepEqual([collector.size, used.open], [0, 0]);
});
