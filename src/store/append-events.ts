// Appends: validation and encoding, the write by the engine, and what is observed about it. The events keep the trace
// context that they were created with.

import { encodePayload } from '../contracts/json-payload.ts';
import { aborted, systemClock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { createIds } from '../foundation/ids.ts';
import {
  silentObserver,
  traceOf,
  type Logger,
  type Observer,
  type TraceContext,
} from '../foundation/observer.ts';
import type {
  AppendOptions,
  AppendResult,
  EventStoreOptions,
  StreamAppend,
} from './event-store.ts';
import { streamDeleted, versionConflict } from './expected-revision.ts';
import { toPosition } from './position.ts';
import {
  checkFollowing,
  checkTogether,
  checkTransaction,
  prepareAppend,
} from './prepare-append.ts';
import type { StoreEngine, StreamWrite, WriteOptions } from './store-engine.ts';

type AppendWrite = WriteOptions & Pick<AppendOptions, 'system'>;

export interface Appender {
  readonly write: (
    appends: readonly StreamAppend[],
    options: AppendWrite,
  ) => Promise<readonly AppendResult[]>;
  /** Writes one event of the store itself. */
  readonly writeSystem: (
    stream: string,
    type: string,
    payload: unknown,
    more: Partial<StreamWrite>,
  ) => Promise<void>;
}

export function createAppender(
  engine: StoreEngine,
  options: EventStoreOptions,
  assertOpen: () => void,
): Appender {
  const { clock = systemClock, ids = createIds(), observer = silentObserver } = options;

  const keysWithin = (transaction: unknown): StoreEngine['subjectKeys'] => ({
    get: (subjects, { create }) => engine.subjectKeys.get(subjects, { create, transaction }),
    forget: (subject, nowMs) => engine.subjectKeys.forget(subject, nowMs),
  });

  const write: Appender['write'] = (appends, writeOptions) =>
    observer.span === undefined
      ? writeLogged(appends, writeOptions)
      : observeAppend(observer.span, appends, () => writeLogged(appends, writeOptions));

  /** Events in a transaction of the caller are not published yet, and may never be. */
  const writeLogged = (
    appends: readonly StreamAppend[],
    writeOptions: AppendWrite,
  ): Promise<readonly AppendResult[]> =>
    observer.log === undefined || writeOptions.transaction !== undefined
      ? writeAll(appends, writeOptions)
      : logPublished(observer.log, appends, () => writeAll(appends, writeOptions));

  const writeAll = async (
    appends: readonly StreamAppend[],
    { system, ...writeOptions }: AppendWrite,
  ): Promise<readonly AppendResult[]> => {
    assertOpen();
    checkTogether(appends);
    checkFollowing(engine, appends);
    const { transaction } = writeOptions;
    checkTransaction(engine, transaction);
    const rules = system === true ? { ...options, names: 'open' as const } : options;
    const subjectKeys = transaction === undefined ? engine.subjectKeys : keysWithin(transaction);
    // Encode everything before the first await: afterwards the caller may modify the events.
    const prepared = appends.map((append) => prepareAppend(append, rules, subjectKeys));
    const writes = isReady(prepared)
      ? prepared
      : await Promise.all(prepared.map((each) => Promise.resolve(each)));
    return commit(writes, writeOptions);
  };

  const commit = async (
    writes: readonly StreamWrite[],
    writeOptions: WriteOptions,
  ): Promise<readonly AppendResult[]> => {
    const { signal } = writeOptions;
    if (signal?.aborted === true) throw aborted(signal);
    const outcomes = await engine.write(writes, writeOptions);
    // One rejected write means that nothing was written; throw the first reason.
    return writes.map((each, index) => {
      const outcome = outcomes[index];
      if (outcome === undefined)
        throw new MillraceError('STORE_CORRUPT', 'the engine returned fewer outcomes than writes');
      const { retention } = each;
      if (outcome.kind === 'deleted') throw streamDeleted(retention?.of ?? each.stream);
      if (outcome.kind === 'conflict') {
        const { stream, expected } =
          retention?.expected === undefined
            ? each
            : { stream: retention.of, expected: retention.expected };
        throw versionConflict({ stream, expected }, outcome.actual);
      }
      const isDuplicate = outcome.kind === 'duplicate';
      for (const { type } of observer.count === undefined ? [] : each.rows) {
        if (isDuplicate) observer.count?.('events_duplicates_total', { event_type: type });
        else observer.count?.('events_published_total', { event_type: type });
      }
      return {
        stream: each.stream,
        revision: outcome.revision,
        position: toPosition(outcome.sequence),
        isDuplicate,
      };
    });
  };

  const writeSystem: Appender['writeSystem'] = async (stream, type, payload, more) => {
    const eventId = ids.next();
    const meta = {
      occurredAt: new Date(clock.now()).toISOString(),
      correlationId: eventId,
      tenant: '',
    };
    const aggregate = { bc: '', type: '', id: stream };
    const systemWrite: StreamWrite = {
      stream,
      expected: 'any',
      rows: [
        {
          eventId,
          type,
          tenant: '',
          payload: encodePayload(payload, options).json,
          meta: JSON.stringify({ ...meta, aggregate }),
        },
      ],
      ...more,
    };
    await commit([systemWrite], {});
  };

  return { write, writeSystem };
}

/** True if no event has personal data, so that the append needs no await. */
function isReady(
  prepared: readonly (StreamWrite | Promise<StreamWrite>)[],
): prepared is readonly StreamWrite[] {
  return !prepared.some((each) => each instanceof Promise);
}

/** The span is a child of the first event's trace, linked to the traces of the other events. */
async function observeAppend<Result>(
  startSpan: NonNullable<Observer['span']>,
  appends: readonly StreamAppend[],
  work: () => Promise<Result>,
): Promise<Result> {
  const events = appends.flatMap((append) => append.events);
  const [first] = events;
  const traces = new Map<string, TraceContext>();
  for (const { headers } of events) {
    const trace = traceOf(headers);
    if (trace !== undefined) traces.set(trace.traceparent, trace);
  }
  const [parent, ...links] = traces.values();
  const span = startSpan(
    'append events',
    {
      stream: appends[0]?.stream,
      tenant: first?.tenant,
      correlationId: first?.correlationId,
      ...(events.length === 1
        ? { eventId: first?.eventId, eventType: first?.type }
        : { events: events.length }),
    },
    parent,
    links,
  );
  try {
    return await work();
  } catch (error) {
    // A conflict is a normal outcome: the command is decided again.
    if (hasCode(error, 'VERSION_CONFLICT')) span.set({ outcome: 'conflict' });
    else span.fail(error);
    throw error;
  } finally {
    span.end();
  }
}

/**
 * Logs the ids of the published events, without payloads: the correlation id finds all lines of a flow. Level debug,
 * because a busy store publishes thousands of events each second.
 */
async function logPublished(
  log: Logger,
  appends: readonly StreamAppend[],
  work: () => Promise<readonly AppendResult[]>,
): Promise<readonly AppendResult[]> {
  // Read before the first await: afterwards the caller may modify the events.
  const lines = appends.map(({ stream, events }) =>
    events.map(({ eventId, type, tenant, aggregate, correlationId, causationId }) => ({
      eventId,
      eventType: type,
      aggregateId: aggregate.id,
      correlationId,
      causationId,
      tenant,
      stream,
    })),
  );
  const results = await work();
  for (const [index, { isDuplicate }] of results.entries()) {
    for (const line of isDuplicate ? [] : (lines[index] ?? [])) log.debug(line, 'Event published');
  }
  return results;
}
