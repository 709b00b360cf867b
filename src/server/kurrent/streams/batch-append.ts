// Streams/BatchAppend: one call for all appends of a client, each answered by its correlation id as
// soon as it is durable, in whatever order that happens.

import { whenAborted } from '../../../foundation/when-aborted.ts';
import type { CallInfo, Requests, Send } from '../calls.ts';
import type { KurrentContext } from '../context.ts';
import type { WireBatchRequest, WireBatchResponse } from '../protocol/wire-types.ts';
import { Refusal, shuttingDown, status } from '../refusal.ts';
import { toStatus } from '../status-details.ts';
import { appendForeign } from './append-events.ts';
import { toSuccess } from './append.ts';
import { createBatchCollector, type Batch, type Collected } from './batch-collector.ts';
import { batchError } from './batch-error.ts';

export async function batchAppend(
  context: KurrentContext,
  requests: Requests<WireBatchRequest>,
  send: Send<WireBatchResponse>,
  { identity }: CallInfo,
): Promise<void> {
  const { limits, clock, protocol } = context;
  const collector = createBatchCollector(limits);
  let inFlight = 0;
  let bytesInFlight = 0;
  let drained: (() => void) | undefined;

  const answer = (request: WireBatchRequest, response: WireBatchResponse): void => {
    // A client that does not read its answers is not read from either.
    const full = send({ ...aboutBatch(request), ...response });
    if (full === undefined) return;
    requests.pause();
    full.then(resumeIfRoom, () => undefined);
  };
  const hasRoom = (): boolean =>
    inFlight < limits.appendsInFlightMax && bytesInFlight < limits.appendBytesInFlightMax;
  const resumeIfRoom = (): void => {
    if (drained === undefined && hasRoom()) requests.resume();
  };

  const refuse = (request: WireBatchRequest, error: unknown): void => {
    const failure = batchError(error, limits);
    context.observer.log?.debug({ err: error }, 'kurrent batch refused');
    answer(request, { error: toStatus(protocol, failure) });
  };

  const run = async (batch: Batch): Promise<void> => {
    const { request, stream, expected, events, bytes, deadlineMs } = batch;
    inFlight += 1;
    bytesInFlight += bytes;
    if (!hasRoom()) requests.pause();
    let answered = false;
    const giveUp = (): void => {
      if (!answered) refuse(request, deadlinePassed());
      answered = true;
    };
    const timer =
      deadlineMs === undefined ? undefined : atDeadline(deadlineMs - clock.now(), giveUp);
    try {
      context.access.checkWrite(identity, stream);
      const appended = await appendForeign(context, { stream, expected, events });
      if (!answered) answer(request, { success: toSuccess(appended) });
    } catch (error) {
      if (!answered) refuse(request, error);
    } finally {
      answered = true;
      clearTimeout(timer);
      inFlight -= 1;
      bytesInFlight -= bytes;
      resumeIfRoom();
      if (inFlight === 0) drained?.();
    }
  };

  const onCollected = (collected: Collected): void => {
    if (collected.kind === 'refused') refuse(collected.request, collected.error);
    if (collected.kind !== 'whole') return;
    const { batch } = collected;
    if (batch.deadlineMs !== undefined && batch.deadlineMs <= clock.now()) {
      refuse(batch.request, deadlinePassed());
    } else {
      void run(batch);
    }
  };

  const broken = new Promise<never>((_resolve, reject) => {
    requests.listen((request) => {
      try {
        onCollected(collector.add(request, clock.now()));
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
    // What was taken is finished and answered, also when the client says no more.
    if (inFlight > 0) await new Promise<void>((resolve) => (drained = resolve));
  }
}

function aboutBatch({ correlationId, options }: WireBatchRequest): WireBatchResponse {
  return {
    correlationId,
    ...(options?.streamIdentifier === undefined
      ? {}
      : { streamIdentifier: options.streamIdentifier }),
    ...(options?.streamPosition === undefined ? {} : { streamPosition: options.streamPosition }),
    ...(options?.any === undefined ? {} : { any: options.any }),
    ...(options?.noStream === undefined ? {} : { noStream: options.noStream }),
    ...(options?.streamExists === undefined ? {} : { streamExists: options.streamExists }),
  };
}

function deadlinePassed(): Refusal {
  return new Refusal('the deadline has passed', { status: status.deadlineExceeded });
}

/** Rounded up, so that a thousand appends share a few timers. */
function atDeadline(ms: number, giveUp: () => void): NodeJS.Timeout {
  return setTimeout(giveUp, Math.min(Math.ceil(ms / 100) * 100, 0x7fff_ffff));
}
