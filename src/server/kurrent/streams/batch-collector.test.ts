import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WireBatchRequest } from '../protocol/streams-messages.ts';
import { RpcError } from '../rpc-error.ts';
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
const limits = { appendBytesMax: 100, openBatchesMax: 2 };

test('chunks of several batches interleave, and each batch is complete with its last chunk', () => {
  const collector = createBatchCollector(limits);
  assert.equal(collector.add(chunk(1, { options }), 0).kind, 'open');
  assert.equal(collector.add(chunk(2, { options }), 0).kind, 'open');
  assert.equal(collector.add(chunk(1), 0).kind, 'open');
  const second = collector.add(chunk(2, { isFinal: true }), 0);
  const first = collector.add(chunk(1, { isFinal: true }), 0);
  assert.ok(first.kind === 'complete' && second.kind === 'complete');
  assert.deepEqual([first.batch.events.length, second.batch.events.length], [3, 2]);
  assert.equal(collector.size, 0);
});

test('a too large batch is rejected once, and its later chunks are ignored', () => {
  const collector = createBatchCollector(limits);
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
  const collector = createBatchCollector(limits);
  assert.equal(collector.add(chunk(1), 0).kind, 'rejected');
  collector.add(chunk(2, { options }), 0);
  collector.add(chunk(3, { options }), 0);
  assert.equal(collector.add(chunk(4, { options }), 0).kind, 'rejected');
});

test('a deadline is a time or a duration', () => {
  const deadline = (more: object): number | undefined => {
    const collected = createBatchCollector(limits).add(
      chunk(1, { options: { ...options, ...more }, isFinal: true }),
      5_000,
    );
    return collected.kind === 'complete' ? collected.batch.deadlineMs : undefined;
  };
  assert.equal(deadline({}), undefined);
  assert.equal(deadline({ deadlineAt: { seconds: 7, nanos: 500_000_000 } }), 7_500);
  assert.equal(deadline({ deadlineIn: { seconds: 2, nanos: 1_000_000 } }), 7_001);
});
