// The event store on any engine: validation, envelopes, erasure, paging and live reading.

import { aborted, systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { createIds, type IdSource } from '../foundation/ids.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import type { FormatOptions } from '../contracts/event-form.ts';
import { encodePayload, type PayloadOptions } from '../contracts/json-payload.ts';
import {
  checkExpected,
  checkFollowing,
  checkFormat,
  checkStream,
  checkSubject,
  checkTogether,
  checkTransaction,
  prepareAppend,
  storeLimits,
} from './prepare-append.ts';
import { compileFilter } from './event-filter.ts';
import { forgottenStream, subjectForgottenType } from './erasure.ts';
import { createEventReader, eventFeed, streamReads } from './event-feed.ts';
import type {
  AppendOptions,
  AppendResult,
  EventStore,
  StreamAppend,
  StreamInfo,
  StreamMetadata,
} from './event-store.ts';
import {
  softDeleted,
  streamDeleted,
  versionConflict,
  type ExpectedRevision,
} from './expected-revision.ts';
import { rowsBytes, toPageBound } from './page-bound.ts';
import { logPublished, observeAppend } from './observe-append.ts';
import { createPersonalData } from './personal-data.ts';
import { isVisible } from './retention.ts';
import { bisect, startOf, startPosition, toPosition, toSequence } from './position.ts';
import {
  decodeReadable,
  decodeRows,
  type RecordedEvent,
  type StoredRow,
} from './recorded-event.ts';
import type { AllPage, StoreEngine, StreamWrite, WriteOptions } from './store-engine.ts';
import {
  checkMetadata,
  fromMetadataPayload,
  metadataStream,
  metadataType,
  tombstoneType,
  toMetadataPayload,
  toRetention,
} from './stream-metadata.ts';
import { streamsAbout } from './streams-about.ts';

export interface EventStoreOptions extends PayloadOptions, FormatOptions {
  readonly clock?: Clock | undefined;
  readonly ids?: IdSource | undefined;
  readonly observer?: Observer | undefined;
  /**
   * `strict` (default): event types follow the naming rules and the stream belongs to the envelope's
   * tenant. `open`: any names, for servers that speak another system's protocol.
   */
  readonly names?: 'strict' | 'open' | undefined;
}

/** Maximum delay before a subscription retries after a database failure. */
const pauseMsMax = 2_000;
/**
 * Creates the event store on an engine; called by the engines, not by users.
 *
 * @example
 * import { createEventStore, type EventStore, type StoreEngine } from 'millrace/store';
 *
 * const storeOn = (engine: StoreEngine): EventStore => createEventStore(engine, { names: 'open' });
 */
export function createEventStore(engine: StoreEngine, options: EventStoreOptions = {}): EventStore {
  const { clock = systemClock, ids = createIds(), observer = silentObserver } = options;
  let closed = false;
  checkFormat(options);

  const assertOpen = (): void => {
    if (closed) throw new MillraceError('STORE_CLOSED', 'the event store is closed');
  };

  const decode = (rows: readonly StoredRow[]): Promise<RecordedEvent[]> =>
    decodeRows(rows, engine.subjectKeys);

  /** One event that cannot be read must not stop a subscription. */
  const decodeLive = (rows: readonly StoredRow[]): Promise<RecordedEvent[]> =>
    decodeReadable(rows, engine.subjectKeys);

  const keysWithin = (transaction: unknown): StoreEngine['subjectKeys'] => ({
    get: (subjects, { create }) => engine.subjectKeys.get(subjects, { create, transaction }),
    forget: (subject, nowMs) => engine.subjectKeys.forget(subject, nowMs),
  });

  type AppendWrite = WriteOptions & Pick<AppendOptions, 'system'>;

  const write = (
    appends: readonly StreamAppend[],
    writeOptions: AppendWrite,
  ): Promise<readonly AppendResult[]> =>
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

  const systemWrite = (
    stream: string,
    type: string,
    payload: unknown,
    more: Partial<StreamWrite>,
  ): StreamWrite => {
    const eventId = ids.next();
    const meta = {
      occurredAt: new Date(clock.now()).toISOString(),
      correlationId: eventId,
      tenant: '',
    };
    const aggregate = { bc: '', type: '', id: stream };
    return {
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
  };

  const setRetention = async (
    stream: string,
    metadata: StreamMetadata,
    expected: ExpectedRevision | undefined,
  ): Promise<void> => {
    const payload = toMetadataPayload(metadata);
    const retention = {
      of: stream,
      values: toRetention(fromMetadataPayload(payload)),
      expected,
    };
    await commit([systemWrite(metadataStream(stream), metadataType, payload, { retention })], {});
  };

  const lastOf = (stream: string) =>
    engine.readStream({
      stream,
      direction: 'backwards',
      from: Number.MAX_SAFE_INTEGER,
      limit: 1,
      bytesMax: 1,
      nowMs: clock.now(),
    });

  const stateOf = async (stream: string) =>
    engine.streamState === undefined ? (await lastOf(stream)).state : engine.streamState(stream);

  const statesOf = async (streams: readonly string[]) => {
    if (engine.streamStates !== undefined) return engine.streamStates(streams);
    const states = await Promise.all(streams.map(stateOf));
    return new Map(streams.map((stream, index) => [stream, states[index]]));
  };

  const metadataOf = async (stream: string): Promise<StreamMetadata> => {
    const [latest] = await decode((await lastOf(metadataStream(stream))).rows);
    return fromMetadataPayload(latest?.payload);
  };

  /** Checks first, because a reader that was busy when the store closed was not woken. */
  const whenMore = async (after: number, signal: AbortSignal): Promise<void> => {
    assertOpen();
    await engine.whenMore(after, signal);
  };

  const pause = async (failures: number, err: unknown, signal: AbortSignal): Promise<void> => {
    observer.log?.warn({ failures, err }, 'live read failed, retrying');
    await clock.sleep(Math.min(50 * 2 ** failures, pauseMsMax), signal);
  };

  return {
    capabilities: engine.capabilities,

    async append(stream, events, { expected = 'any', follows, ...writeOptions } = {}) {
      const [result] = await write([{ stream, events, expected, follows }], writeOptions);
      if (result === undefined)
        throw new MillraceError('STORE_CORRUPT', 'the engine returned fewer outcomes than writes');
      return result;
    },

    async appendMany(appends, writeOptions = {}) {
      if (!engine.capabilities.multiStreamAppend && appends.length > 1) {
        throw new MillraceError(
          'NOT_SUPPORTED',
          'this engine cannot append to several streams at once',
          {
            details: { capability: 'multiStreamAppend' },
          },
        );
      }
      return write(appends, writeOptions);
    },

    readStream(stream, readOptions = {}) {
      const { direction = 'forwards', hidden = false, signal } = readOptions;
      const liveFrom = hidden ? 0 : undefined;
      const backwards = direction === 'backwards';
      return createEventReader(readOptions, {
        start: readOptions.from ?? (backwards ? Number.MAX_SAFE_INTEGER : 0),
        async read(from, bound) {
          assertOpen();
          if (from < 0) return { events: [], next: from, end: true };
          const nowMs = clock.now();
          const query = { stream, direction, from, liveFrom, ...bound, nowMs, signal };
          const { state, rows, end } = await engine.readStream(query);
          if (state?.tombstoned === true && !hidden) throw streamDeleted(stream);
          const last = rows.at(-1)?.revision ?? from;
          const isLast = last === (backwards ? 0 : state?.revision);
          return {
            events: await decode(rows),
            next: backwards ? last - 1 : last + 1,
            end: end || isLast,
          };
        },
      });
    },

    readAll(readOptions = {}) {
      const { direction = 'forwards', signal } = readOptions;
      const filter = compileFilter(readOptions.filter);
      const { start, isInclusive } = startOf(engine, readOptions);
      let considered = start;
      const reader = createEventReader(readOptions, {
        start,
        async read(after, bound) {
          assertOpen();
          const query = { direction, after, ...bound, filter, signal };
          const page = await engine.readAll(
            isInclusive && after === start ? { ...query, isInclusive } : query,
          );
          considered = page.considered;
          return { events: await decode(page.rows), next: page.considered, end: page.end };
        },
      });
      return {
        ...reader,
        get position() {
          return toPosition(considered);
        },
      };
    },

    async findEvent(stream, eventId) {
      assertOpen();
      const row = await engine.findEvent(stream, eventId);
      return row === undefined ? undefined : (await decodeLive([row]))[0];
    },

    async areVisible(events) {
      assertOpen();
      const states = await statesOf([...new Set(events.map(({ stream }) => stream))]);
      return events.map(({ stream, revision, recordedAt }) => {
        const state = states.get(stream);
        const row = { revision, recordedAtMs: Date.parse(recordedAt) };
        return state?.tombstoned === false && isVisible(state, row, clock.now());
      });
    },

    async *subscribe(subscribeOptions = {}) {
      const { after = startPosition, filter, signal } = subscribeOptions;
      const bound = toPageBound(subscribeOptions);
      const rowFilter = compileFilter(filter);
      assertOpen();
      yield* eventFeed(
        {
          async read(from, readSignal, isLive) {
            assertOpen();
            const query = { direction: 'forwards', after: from, filter: rowFilter } as const;
            const page = await engine.readAll({ ...query, ...bound, isLive, signal: readSignal });
            // Without the rows: an unread page holds each payload once.
            const { rows, ...rest } = page;
            return { ...rest, events: await decodeLive(rows), bytes: rowsBytes(rows) };
          },
          whenMore,
        },
        {
          after: after === 'end' ? await engine.head() : toSequence(after),
          signal,
          pause,
          aroundLoad: subscribeOptions.aroundLoad,
          checkpointEvery: subscribeOptions.checkpointEvery ?? storeLimits.checkpointEvery,
        },
      );
    },

    async *subscribeToStream(stream, subscribeOptions = {}) {
      const { after = -1, signal } = subscribeOptions;
      const bound = toPageBound(subscribeOptions);
      assertOpen();
      const start = after === 'end' ? ((await stateOf(stream))?.revision ?? -1) : after;
      const prefixed = compileFilter({ system: true, streamPrefixes: [stream] });
      const filter = { ...prefixed, stream: (name: string) => name === stream };
      const loadLive = async (position: number, readSignal: AbortSignal): Promise<AllPage> => {
        assertOpen();
        const query = { direction: 'forwards', after: position, filter, isLive: true } as const;
        return engine.readAll({ ...query, ...bound, signal: readSignal });
      };
      const read = streamReads({
        stream,
        start: { after: start, isLive: after === 'end' },
        load: (query) => {
          assertOpen();
          return engine.readStream({ ...query, ...bound, nowMs: clock.now() });
        },
        loadLive: engine.capabilities.hiddenEvents === false ? loadLive : undefined,
        head: () => engine.head(),
        decode: decodeLive,
      });
      yield* eventFeed(
        { read, whenMore },
        {
          after: 0,
          signal,
          pause,
          aroundLoad: subscribeOptions.aroundLoad,
          checkpointEvery: Number.POSITIVE_INFINITY,
        },
      );
    },

    async streamInfo(stream): Promise<StreamInfo | undefined> {
      assertOpen();
      const state = await stateOf(stream);
      if (state === undefined) return undefined;
      const { truncateBefore } = state;
      const soft = truncateBefore === softDeleted;
      const { truncateBefore: _stale, ...metadata } = await metadataOf(stream);
      return {
        stream,
        revision: state.revision,
        deleted: state.tombstoned ? 'tombstone' : soft ? 'soft' : 'no',
        // Only the stream's row, not its metadata event, shows that an append revived the stream.
        metadata: { ...metadata, ...(truncateBefore > 0 && !soft ? { truncateBefore } : {}) },
      };
    },

    async setStreamMetadata(stream, metadata, { system } = {}) {
      assertOpen();
      checkStream(stream, system === true ? 'open' : options.names);
      checkMetadata(stream, metadata);
      await setRetention(stream, metadata, undefined);
    },

    async deleteStream(stream, { expected = 'any', keepsMetadata = true } = {}) {
      assertOpen();
      checkStream(stream, options.names);
      checkExpected(expected);
      const metadata = keepsMetadata ? await metadataOf(stream) : {};
      await setRetention(stream, { ...metadata, truncateBefore: softDeleted }, expected);
    },

    async tombstoneStream(stream, { expected = 'any' } = {}) {
      assertOpen();
      checkStream(stream, options.names);
      checkExpected(expected);
      await commit([systemWrite(stream, tombstoneType, {}, { expected, tombstone: true })], {});
    },

    async head() {
      assertOpen();
      return toPosition(await engine.head());
    },

    async positionBefore(atMs) {
      assertOpen();
      const sequence = engine.positionBefore?.(atMs) ?? bisect(engine, atMs);
      return toPosition(await sequence);
    },

    async scavenge(scavengeOptions = {}) {
      assertOpen();
      return engine.scavenge({ ...scavengeOptions, nowMs: clock.now() });
    },

    async forget(subject) {
      assertOpen();
      checkSubject(subject);
      const forgotten = await engine.subjectKeys.forget(subject, clock.now());
      for (const stream of await streamsAbout(engine, subject)) {
        const payload = { subject };
        await commit([systemWrite(forgottenStream(stream), subjectForgottenType, payload, {})], {});
      }
      return { forgotten };
    },
    personalData: createPersonalData(engine.subjectKeys),

    async [Symbol.asyncDispose]() {
      if (closed) return;
      closed = true;
      await engine[Symbol.asyncDispose]();
    },
  };
}

/** True if no event has personal data, so that the append needs no await. */
function isReady(
  prepared: readonly (StreamWrite | Promise<StreamWrite>)[],
): prepared is readonly StreamWrite[] {
  return !prepared.some((each) => each instanceof Promise);
}
