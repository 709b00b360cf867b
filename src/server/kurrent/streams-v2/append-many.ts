// StreamsService/AppendSession and /AppendRecords: atomic appends to several streams.

import { hasCode } from '../../../foundation/error.ts';
import type { AppendResult, StreamAppend } from '../../../store/event-store.ts';
import type { ExpectedRevision } from '../../../store/expected-revision.ts';
import { toSequence } from '../../../store/position.ts';
import { countAppend } from '../append-bytes.ts';
import type { CallInfo } from '../calls.ts';
import type { KurrentContext } from '../context.ts';
import { bytesOf, type ForeignEvent } from '../events/from-wire.ts';
import { badRequest, RpcError } from '../rpc-error.ts';
import { toEnvelopes, withOpaqueRetry } from '../streams/append-events.ts';
import { streamOf } from '../to-rpc-error.ts';
import { expectedState, readRecord } from './read-record.ts';
import {
  alreadyInSession,
  emptySession,
  inconsistent,
  recordTooLarge,
  transactionTooLarge,
  withDetails,
  type Violation,
} from './append-errors.ts';
import type {
  WireRecord,
  WireRecordsRequest,
  WireRecordsResponse,
  WireSessionRequest,
  WireSessionResponse,
} from '../protocol/streams-v2-messages.ts';

interface Part {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: readonly ForeignEvent[];
}

export async function appendSession(
  context: KurrentContext,
  requests: AsyncIterable<WireSessionRequest>,
  info: CallInfo,
): Promise<WireSessionResponse> {
  const parts = new Map<string, Part>();
  using sizes = createSizes(context);
  for await (const { stream, records, expectedRevision } of requests) {
    if (parts.has(stream)) throw alreadyInSession(stream);
    const events = records.map((record) => sizes.take(stream, record));
    if (events.length === 0) throw badRequest(`stream '${stream}' has no records`);
    parts.set(stream, { stream, expected: expectedState(expectedRevision), events });
  }
  if (parts.size === 0) throw emptySession();
  sizes.run();
  const results = await commit(context, [...parts.values()], info);
  const output = results.map(({ stream, revision, position }) => ({
    stream,
    streamRevision: revision,
    position: toSequence(position),
  }));
  return { output, position: Math.max(...output.map(({ position }) => position)) };
}

export async function appendRecords(
  context: KurrentContext,
  { records, checks }: WireRecordsRequest,
  info: CallInfo,
): Promise<WireRecordsResponse> {
  if (records.length === 0) throw badRequest('the append has no records');
  using sizes = createSizes(context);
  const expectations = checks.flatMap(({ streamState }, checkIndex) => {
    if (streamState === undefined) return [];
    const expected = expectedState(streamState.expectedState);
    return [{ checkIndex, stream: streamState.stream, expected }];
  });
  const written = new Set(records.map(({ stream }) => stream));
  const unwritten = expectations.filter(({ stream }) => !written.has(stream));
  for (const { stream } of unwritten) await context.access.check(info.identity, stream, 'read');
  await checkUnwritten(context, unwritten);
  const expected = new Map(expectations.map((each) => [each.stream, each.expected]));
  // Adjacent records of one stream are one append, which keeps the order of all records.
  const parts: { stream: string; expected: ExpectedRevision; events: ForeignEvent[] }[] = [];
  for (const record of records) {
    const { stream } = record;
    let part = parts.at(-1);
    if (part?.stream !== stream) {
      // Only the first append to a stream checks its expected revision.
      const before = expected.get(stream) ?? 'any';
      expected.delete(stream);
      part = { stream, expected: before, events: [] };
      parts.push(part);
    }
    part.events.push(sizes.take(stream, record));
  }
  sizes.run();
  try {
    const results = await commit(context, parts, info);
    const revisions = new Map(results.map(({ stream, revision }) => [stream, revision]));
    return {
      revisions: [...revisions].map(([stream, revision]) => ({ stream, revision })),
      position: Math.max(...results.map(({ position }) => toSequence(position))),
    };
  } catch (error) {
    throw asViolation(error, expectations);
  }
}

async function commit(
  context: KurrentContext,
  parts: readonly Part[],
  { identity }: CallInfo,
): Promise<readonly AppendResult[]> {
  try {
    for (const { stream } of parts) await context.access.check(identity, stream, 'append');
    return await withOpaqueRetry(async (opaque) =>
      context.store.appendMany(
        await Promise.all(
          parts.map(async ({ stream, expected, events }): Promise<StreamAppend> => ({
            stream,
            expected,
            events: await toEnvelopes(context, { stream, events, identity }, opaque),
          })),
        ),
      ),
    );
  } catch (error) {
    const deleted = hasCode(error, 'STREAM_DELETED')
      ? await context.store.streamInfo(streamOf(error))
      : undefined;
    throw withDetails(error, deleted?.deleted === 'soft' ? 'soft' : 'tombstone');
  }
}

/** Checks the streams that are not written; the store checks the written ones. */
async function checkUnwritten(
  { store }: KurrentContext,
  expectations: readonly Omit<Violation, 'actual'>[],
): Promise<void> {
  const violations: Violation[] = [];
  for (const each of expectations) {
    const info = await store.streamInfo(each.stream);
    const actual = info === undefined || info.deleted === 'soft' ? -1 : info.revision;
    const fits =
      each.expected === 'any' ||
      (each.expected === 'exists'
        ? actual >= 0
        : each.expected === 'none'
          ? actual < 0
          : actual === each.expected);
    if (!fits) violations.push({ ...each, actual });
  }
  if (violations.length > 0) throw inconsistent(violations);
}

/** A conflict of a checked stream becomes a violation of its check. */
function asViolation(error: unknown, expectations: readonly Omit<Violation, 'actual'>[]): unknown {
  const conflict = error instanceof RpcError ? error.cause : error;
  if (!hasCode(conflict, 'VERSION_CONFLICT')) return error;
  const { stream, actual } = conflict.details;
  const violated = expectations.filter((each) => each.stream === stream);
  if (violated.length === 0) return error;
  return inconsistent(violated.map((each) => ({ ...each, actual: Number(actual) })));
}

function createSizes(context: KurrentContext): Disposable & {
  take(stream: string, record: WireRecord): ForeignEvent;
  /** All records are complete. */
  run(): void;
} {
  const { appendBytesMax } = context.limits;
  const counted = countAppend(context);
  let total = 0;
  return {
    run: () => counted.run(),
    [Symbol.dispose]: () => counted[Symbol.dispose](),
    take(stream, record) {
      if (stream === '') throw badRequest('a record needs a stream');
      const event = readRecord(record);
      const size = bytesOf(event);
      if (size > appendBytesMax) {
        throw recordTooLarge({ stream, recordId: event.eventId, size }, appendBytesMax);
      }
      total += size;
      if (total > appendBytesMax) throw transactionTooLarge(total, appendBytesMax);
      counted.take(size);
      return event;
    },
  };
}
