// Collects the interleaved chunks of BatchAppend into batches, and rejects batches that are too large, have no start or
// receive no chunks. Pure.

import type { ExpectedRevision } from '../../../store/expected-revision.ts';
import { checkOpenBytes, exhausted, type AppendBytes } from '../append-bytes.ts';
import type { KurrentLimits } from '../kurrent-server.ts';
import { bytesOf, detached, readProposed, type ForeignEvent } from '../events/from-wire.ts';
import { toCount } from '../protocol/wire-number.ts';
import type { WireTime } from '../protocol/shared-messages.ts';
import type { WireBatchRequest } from '../protocol/streams-messages.ts';
import { badRequest } from '../rpc-error.ts';
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

interface RejectedBatch {
  readonly kind: 'rejected';
  readonly request: WireBatchRequest;
  readonly error: unknown;
}

export type Collected =
  /** Incomplete, or rejected before. */
  { readonly kind: 'open' } | { readonly kind: 'complete'; readonly batch: Batch } | RejectedBatch;

export interface BatchCollector {
  add(request: WireBatchRequest, nowMs: number): Collected;
  /** Rejects the batches that were idle for too long. */
  expire(nowMs: number): readonly RejectedBatch[];
  /** Drops all incomplete batches. */
  clear(): void;
  readonly size: number;
}

type BatchOptions = NonNullable<WireBatchRequest['options']>;

interface OpenBatch {
  readonly request: WireBatchRequest;
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: ForeignEvent[];
  readonly deadlineMs: number | undefined;
  bytes: number;
  activeAtMs: number;
  isRejected: boolean;
}

export function createBatchCollector(
  limits: Pick<
    KurrentLimits,
    | 'appendBytesMax'
    | 'openAppendBytesMax'
    | 'openAppendIdleMsMax'
    | 'openBatchBytesPerCallMax'
    | 'openBatchesMax'
  >,
  ofAllCalls: AppendBytes,
): BatchCollector {
  const open = new Map<string, OpenBatch>();
  let ofCall = 0;

  const charge = (bytes: number): void => {
    ofCall += bytes;
    ofAllCalls.open += bytes;
  };

  /** Releases the memory of a batch; later chunks are ignored while it is open. */
  const release = (batch: OpenBatch): void => {
    charge(-batch.bytes);
    batch.bytes = 0;
    batch.isRejected = true;
  };

  const checkRoom = (): void => {
    const { openBatchBytesPerCallMax: callMax } = limits;
    if (ofCall > callMax) throw exhausted(`incomplete batches of a call: at most ${callMax} bytes`);
    checkOpenBytes(ofAllCalls, limits);
  };

  const take = (batch: OpenBatch, { proposedMessages, isFinal }: WireBatchRequest): void => {
    for (const proposed of proposedMessages) {
      const event = readProposed(proposed);
      const bytes = bytesOf(event);
      batch.bytes += bytes;
      charge(bytes);
      if (batch.bytes > limits.appendBytesMax) throw appendTooLarge(limits.appendBytesMax);
      batch.events.push(event);
    }
    if (!isFinal) checkRoom();
  };

  const begin = (request: WireBatchRequest, nowMs: number): OpenBatch => {
    const { options } = request;
    if (options === undefined) throw badRequest('the first chunk of a batch must have options');
    return {
      // The first chunk also has events, which a rejected batch must not keep.
      request: { ...request, proposedMessages: [], options: detachedOptions(options) },
      stream: streamNameOf(options.streamIdentifier),
      expected: expectedOf(options, options.streamPosition),
      events: [],
      deadlineMs: deadlineOf(options, nowMs),
      bytes: 0,
      activeAtMs: nowMs,
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
            throw exhausted('too many incomplete batches');
          }
          batch = begin(request, nowMs);
          if (!request.isFinal) open.set(id, batch);
        }
        batch.activeAtMs = nowMs;
        if (!batch.isRejected) take(batch, request);
      } catch (error) {
        if (batch !== undefined) {
          release(batch);
          batch.events.length = 0;
        }
        if (request.isFinal) open.delete(id);
        return { kind: 'rejected', request: batch?.request ?? request, error };
      }
      if (!request.isFinal) return { kind: 'open' };
      open.delete(id);
      if (batch.isRejected) return { kind: 'open' };
      const complete = { ...batch };
      release(batch);
      return { kind: 'complete', batch: complete };
    },
    expire(nowMs) {
      const rejected: RejectedBatch[] = [];
      for (const [id, batch] of open) {
        if (batch.activeAtMs + limits.openAppendIdleMsMax > nowMs) continue;
        open.delete(id);
        if (batch.isRejected) continue;
        release(batch);
        const error = exhausted(`no chunk of the batch within ${limits.openAppendIdleMsMax} ms`);
        rejected.push({ kind: 'rejected', request: batch.request, error });
      }
      return rejected;
    },
    clear() {
      for (const batch of open.values()) release(batch);
      open.clear();
    },
  };
}

function detachedOptions(options: BatchOptions): BatchOptions {
  const { streamIdentifier } = options;
  if (streamIdentifier === undefined) return options;
  const streamName = detached(streamIdentifier.streamName);
  return { ...options, streamIdentifier: { ...streamIdentifier, streamName } };
}

function deadlineOf(options: BatchOptions, nowMs: number): number | undefined {
  if (options.deadlineAt !== undefined) return toMs(options.deadlineAt);
  return options.deadlineIn === undefined ? undefined : nowMs + toMs(options.deadlineIn);
}

function toMs({ seconds, nanos }: WireTime): number {
  return toCount(seconds) * 1_000 + Math.floor(nanos / 1_000_000);
}
