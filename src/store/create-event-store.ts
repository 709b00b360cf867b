// The event store on any engine: appends, paging, live reading, metadata and erasure.

import { systemClock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { silentObserver } from '../foundation/observer.ts';
import { createAppender } from './append-events.ts';
import {
  checkExpected,
  checkFormat,
  checkStream,
  checkSubject,
  storeLimits,
} from './prepare-append.ts';
import { compileFilter } from './event-filter.ts';
import { forgottenStream, subjectForgottenType } from './erasure.ts';
import { createEventReader, eventFeed, streamReads } from './event-feed.ts';
import type { EventStore, EventStoreOptions, StreamInfo, StreamMetadata } from './event-store.ts';
import { softDeleted, streamDeleted, type ExpectedRevision } from './expected-revision.ts';
import { rowsBytes, toPageBound } from './page-bound.ts';
import { createPersonalData } from './personal-data.ts';
import { isVisible } from './retention.ts';
import { bisect, startOf, startPosition, toPosition, toSequence } from './position.ts';
import {
  decodeReadable,
  decodeRows,
  type RecordedEvent,
  type StoredRow,
} from './recorded-event.ts';
import type { AllPage, StoreEngine } from './store-engine.ts';
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
  const { clock = systemClock, observer = silentObserver } = options;
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

  const { write, writeSystem } = createAppender(engine, options, assertOpen);

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
    await writeSystem(metadataStream(stream), metadataType, payload, { retention });
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
      await writeSystem(stream, tombstoneType, {}, { expected, tombstone: true });
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
        await writeSystem(forgottenStream(stream), subjectForgottenType, payload, {});
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
