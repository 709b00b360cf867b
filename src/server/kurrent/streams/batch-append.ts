// Streams/BatchAppend: one call for all appends of a client. Each append gets a reply with its correlation id when it is
// durable, in any order.

import { whenAborted } from '../../../foundation/async/when-aborted.ts';
import type { CallInfo, Requests, Send } from '../calls.ts';
import type { KurrentContext } from '../context.ts';
import type { Fields, Wire } from '../protocol/message.ts';
import { nothing } from '../protocol/shared-messages.ts';
import {
  invalidRequest,
  maximumAppendSizeExceeded,
  streamDeleted,
  wrongExpectedVersion,
  type WireBatchRequest,
  type WireBatchResponse,
} from '../protocol/streams-messages.ts';
import { RpcError, shuttingDown, status, toStatus, type StatusDetails } from '../rpc-error.ts';
import { countAppend, areManyRunning } from '../append-bytes.ts';
import { appendForeign } from './append-events.ts';
import { toSuccess } from './append.ts';
import { createBatchCollector, type Batch, type Collected } from './batch-collector.ts';
import { hasCode } from '../../../foundation/error.ts';
import type { ExpectedRevision } from '../../../store/expected-revision.ts';
import { toRpcError } from '../to-rpc-error.ts';
import { wrongVersionDetails } from './expected.ts';
import { wireStream } from './stream-name.ts';

export async function batchAppend(
  context: KurrentContext,
  requests: Requests<WireBatchRequest>,
  send: Send<WireBatchResponse>,
  { identity }: CallInfo,
): Promise<void> {
  const { limits, clock, protocol } = context;
  const collector = createBatchCollector(limits, context.appendBytes);
  const left = new AbortController();
  let isExpiring = false;
  let inFlight = 0;
  let bytesInFlight = 0;
  let drained: (() => void) | undefined;

  const reply = (request: WireBatchRequest, response: WireBatchResponse): void => {
    // Stop reading requests while the client does not read its replies.
    const full = send({ ...aboutBatch(request), ...response });
    if (full === undefined) return;
    requests.pause();
    full.then(resumeIfRoom, () => undefined);
  };
  const hasRoom = (): boolean =>
    inFlight < limits.appendsInFlightMax &&
    bytesInFlight < limits.appendBytesInFlightMax &&
    // Only an append of this call makes it read on, so a call without one never stops reading.
    (inFlight === 0 || !areManyRunning(context));
  const resumeIfRoom = (): void => {
    if (drained === undefined && hasRoom()) requests.resume();
  };

  const rejectBatch = (request: WireBatchRequest, error: unknown): void => {
    const failure = batchError(error, limits);
    const level = failure.code === status.internal ? 'error' : 'debug';
    context.observer.log?.[level]({ err: error }, 'kurrent batch rejected');
    reply(request, { error: toStatus(protocol, failure) });
  };

  const run = async (batch: Batch): Promise<void> => {
    const { request, stream, expected, events, bytes, deadlineMs } = batch;
    inFlight += 1;
    bytesInFlight += bytes;
    if (!hasRoom()) requests.pause();
    let hasReplied = false;
    const giveUp = (): void => {
      if (!hasReplied) rejectBatch(request, deadlinePassed());
      hasReplied = true;
    };
    const timer =
      deadlineMs === undefined ? undefined : atDeadline(deadlineMs - clock.now(), giveUp);
    const counted = countAppend(context);
    try {
      counted.run(bytes);
      await context.access.check(identity, stream, 'append');
      const appended = await appendForeign(context, { stream, expected, events, identity });
      if (!hasReplied) reply(request, { success: toSuccess(appended) });
    } catch (error) {
      if (!hasReplied) rejectBatch(request, error);
    } finally {
      hasReplied = true;
      clearTimeout(timer);
      counted[Symbol.dispose]();
      inFlight -= 1;
      bytesInFlight -= bytes;
      resumeIfRoom();
      if (inFlight === 0) drained?.();
    }
  };

  const onCollected = (collected: Collected): void => {
    if (collected.kind === 'rejected') rejectBatch(collected.request, collected.error);
    if (collected.kind !== 'complete') return;
    const { batch } = collected;
    if (batch.deadlineMs !== undefined && batch.deadlineMs <= clock.now()) {
      rejectBatch(batch.request, deadlinePassed());
    } else {
      void run(batch);
    }
  };

  /** Runs while there are incomplete batches. */
  const expireBatches = async (): Promise<void> => {
    isExpiring = true;
    try {
      while (collector.size > 0) {
        await clock.sleep(limits.openAppendIdleMsMax, left.signal);
        for (const rejected of collector.expire(clock.now())) onCollected(rejected);
      }
    } catch (error) {
      if (!left.signal.aborted) throw error;
    } finally {
      isExpiring = false;
    }
  };

  const broken = new Promise<never>((_resolve, reject) => {
    requests.listen((request) => {
      try {
        onCollected(collector.add(request, clock.now()));
        if (collector.size > 0 && !isExpiring) expireBatches().catch(reject);
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
  });
  using stop = whenAborted(context.stopping);
  try {
    await Promise.race([requests.ended, broken, stop.aborted]);
    if (context.stopping.aborted) throw shuttingDown();
  } finally {
    requests.pause();
    left.abort();
    collector.clear();
    // Running appends complete and get their replies after the last request.
    if (inFlight > 0) await new Promise<void>((resolve) => (drained = resolve));
  }
}

function aboutBatch({ correlationId, options }: WireBatchRequest): WireBatchResponse {
  return {
    correlationId,
    streamIdentifier: options?.streamIdentifier,
    streamPosition: options?.streamPosition,
    any: options?.any,
    noStream: options?.noStream,
    streamExists: options?.streamExists,
  };
}

function deadlinePassed(): RpcError {
  return new RpcError('the deadline has passed', { status: status.deadlineExceeded });
}

/** Rounded up to 100 ms, so that many appends share a few timer lists. */
function atDeadline(ms: number, giveUp: () => void): NodeJS.Timeout {
  return setTimeout(giveUp, Math.min(Math.ceil(ms / 100) * 100, 0x7fff_ffff));
}

/** A rejected batch has its status in the reply; the call itself continues. */
interface BatchError {
  readonly code: number;
  readonly message: string;
  /** The only part that clients read. */
  readonly details: StatusDetails;
}

function batchError(error: unknown, limits: { readonly appendBytesMax: number }): BatchError {
  if (hasCode(error, 'VERSION_CONFLICT')) {
    const expected = error.details['expected'] as ExpectedRevision;
    return {
      code: status.failedPrecondition,
      message: error.message,
      details: named(
        'WrongExpectedVersion',
        wrongExpectedVersion,
        wrongVersionDetails(expected, Number(error.details['actual'])),
      ),
    };
  }
  const { message, parts } = toRpcError(error, limits);
  return { code: parts.status, message, details: detailsOf(message, parts, limits) };
}

function detailsOf(
  message: string,
  { status: code, exception, trailers }: ReturnType<typeof toRpcError>['parts'],
  { appendBytesMax }: { readonly appendBytesMax: number },
): StatusDetails {
  switch (exception) {
    case 'stream-deleted':
      return named('StreamDeleted', streamDeleted, {
        streamIdentifier: wireStream(trailers?.['stream-name'] ?? ''),
      });
    case 'maximum-append-size-exceeded':
      return named('MaximumAppendSizeExceeded', maximumAppendSizeExceeded, {
        maxAppendSize: appendBytesMax,
      });
    case 'access-denied':
      return named('AccessDenied', nothing, {});
    default:
  }
  if (code === status.deadlineExceeded) return named('Timeout', nothing, {});
  if (code === status.invalidArgument) return named('BadRequest', invalidRequest, { message });
  return named('Unknown', nothing, {});
}

function named<Message extends Fields>(
  name: string,
  message: Message,
  value: Wire<Message>,
): StatusDetails {
  return { type: `event_store.client.${name}`, message, value };
}
