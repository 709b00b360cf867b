// Collects the interleaved chunks of BatchAppend into batches, and rejects batches that are too large or have no start.
// Pure.

import type { ExpectedRevision } from '../../../store/expected-revision.ts';
import { bytesOf, readProposed, type ForeignEvent } from '../events/from-wire.ts';
import { toCount } from '../protocol/wire-number.ts';
import type { WireTime } from '../protocol/shared-messages.ts';
import type { WireBatchRequest } from '../protocol/streams-messages.ts';
import { badRequest, RpcError, status } from '../rpc-error.ts';
import { uuidText } from '../uuid.ts';
import { appendTooLarge } from './append.ts';
import { expectedOf } from './expected.ts';
import { streamNameOf } from './stream-name.ts';

export interface Batch {
  readonly request: WireBatchRequest;
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: readonly ForeignEvent[];
  readonly bytes: number;
  /** Milliseconds since the Unix epoch; undefined: none. */
  readonly deadlineMs: number | undefined;
}

export type Collected =
  /** Incomplete, or rejected before. */
  | { readonly kind: 'open' }
  | { readonly kind: 'complete'; readonly batch: Batch }
  | { readonly kind: 'rejected'; readonly request: WireBatchRequest; readonly error: unknown };

interface OpenBatch {
  readonly request: WireBatchRequest;
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: ForeignEvent[];
  readonly deadlineMs: number | undefined;
  bytes: number;
  isRejected: boolean;
}

export function createBatchCollector(limits: {
  readonly appendBytesMax: number;
  readonly openBatchesMax: number;
}): { add(request: WireBatchRequest, nowMs: number): Collected; readonly size: number } {
  const open = new Map<string, OpenBatch>();

  const begin = (request: WireBatchRequest, nowMs: number): OpenBatch => {
    const { options } = request;
    if (options === undefined) throw badRequest('the first chunk of a batch must have options');
    return {
      request,
      stream: streamNameOf(options.streamIdentifier),
      expected: expectedOf(options, options.streamPosition),
      events: [],
      deadlineMs: deadlineOf(options, nowMs),
      bytes: 0,
      isRejected: false,
    };
  };

  return {
    get size() {
      return open.size;
    },
    add(request, nowMs) {
      // Without a correlation id no reply can name the batch, so the whole call fails.
      const id = uuidText(request.correlationId);
      let batch = open.get(id);
      try {
        if (batch === undefined) {
          if (open.size >= limits.openBatchesMax) {
            throw new RpcError('too many incomplete batches', { status: status.resourceExhausted });
          }
          batch = begin(request, nowMs);
          if (!request.isFinal) open.set(id, batch);
        }
        if (!batch.isRejected) take(batch, request, limits.appendBytesMax);
      } catch (error) {
        if (batch !== undefined) {
          // Later chunks of this batch are ignored.
          batch.isRejected = true;
          batch.events.length = 0;
        }
        if (request.isFinal) open.delete(id);
        return { kind: 'rejected', request: batch?.request ?? request, error };
      }
      if (!request.isFinal) return { kind: 'open' };
      open.delete(id);
      return batch.isRejected ? { kind: 'open' } : { kind: 'complete', batch };
    },
  };
}

function take(batch: OpenBatch, request: WireBatchRequest, appendBytesMax: number): void {
  for (const proposed of request.proposedMessages) {
    const event = readProposed(proposed);
    batch.bytes += bytesOf(event);
    if (batch.bytes > appendBytesMax) throw appendTooLarge(appendBytesMax);
    batch.events.push(event);
  }
}

function deadlineOf(
  options: NonNullable<WireBatchRequest['options']>,
  nowMs: number,
): number | undefined {
  if (options.deadlineAt !== undefined) return toMs(options.deadlineAt);
  return options.deadlineIn === undefined ? undefined : nowMs + toMs(options.deadlineIn);
}

function toMs({ seconds, nanos }: WireTime): number {
  return toCount(seconds) * 1_000 + Math.floor(nanos / 1_000_000);
}
