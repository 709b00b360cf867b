// Reading page by page: bounded readers, and live feeds that catch up and then wait for more. The consumer
// pulls, so memory holds one page being consumed and one being fetched, whatever the lag.

import { aborted } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';
import type { EventReader, FeedItem, PageLoading, ReadOptions } from './event-store.ts';
import { streamDeleted } from './expected-revision.ts';
import { nextTurn } from '../foundation/async/next-turn.ts';
import { rowsBytes, toPageBound, type PageBound } from './page-bound.ts';
import { toPosition } from './position.ts';
import type { RecordedEvent, StoredRow } from './recorded-event.ts';
import type { AllPage, StreamPage, StreamQuery } from './store-engine.ts';
import { tombstoneType } from './stream-metadata.ts';

interface PageSource {
  readonly start: number;
  readonly read: (
    from: number,
    bound: PageBound,
  ) => Promise<{
    readonly events: readonly RecordedEvent[];
    readonly next: number;
    readonly end: boolean;
  }>;
}

export function createEventReader(options: ReadOptions, source: PageSource): EventReader {
  async function* pages(): AsyncGenerator<readonly RecordedEvent[], void, undefined> {
    const { limit, bytesMax } = toPageBound(options);
    const { aroundLoad = (load) => load() } = options;
    let left = Math.floor(options.limit ?? Number.POSITIVE_INFINITY);
    let from = source.start;
    let end = false;
    while (!end && left > 0) {
      if (options.signal?.aborted === true) throw aborted(options.signal);
      const bound = { limit: Math.min(limit, left), bytesMax };
      const page = await aroundLoad(() => source.read(from, bound));
      left -= page.events.length;
      from = page.next;
      end = page.end;
      if (page.events.length > 0) yield page.events;
      if (!end && left > 0) await nextTurn();
    }
  }

  return {
    pages,
    async *[Symbol.asyncIterator]() {
      for await (const page of pages()) yield* page;
    },
    async toArray() {
      const all: RecordedEvent[] = [];
      for await (const page of pages()) all.push(...page);
      return all;
    },
  };
}

/** One page of a feed; all sequences up to `considered` were checked against the filter. */
interface FeedPage {
  readonly events: readonly RecordedEvent[];
  readonly bytes: number;
  readonly considered: number;
  /** The number of checked events, if sequences do not count events. */
  readonly scanned?: number | undefined;
  readonly end: boolean;
}

export interface FeedSource {
  /** `isLive`: the feed had reached the end, and `whenMore` reports events that this read leaves out. */
  readonly read: (after: number, signal: AbortSignal, isLive: boolean) => Promise<FeedPage>;
  readonly whenMore: (after: number, signal: AbortSignal) => Promise<void>;
}

export interface FeedOptions {
  readonly after: number;
  readonly signal: AbortSignal | undefined;
  /** Waits before the next retry; `failures` counts consecutive failures. Rejects when aborted. */
  readonly pause: (failures: number, error: unknown, signal: AbortSignal) => Promise<void>;
  /** Called for each page; then no page is fetched ahead. */
  readonly aroundLoad?: PageLoading | undefined;
  /** A checkpoint is emitted after this many events without a match. */
  readonly checkpointEvery: number;
}

export async function* eventFeed(
  source: FeedSource,
  options: FeedOptions,
): AsyncGenerator<FeedItem, void, undefined> {
  // Exiting the loop must also end a pending wait.
  const exit = new AbortController();
  const signal =
    options.signal === undefined ? exit.signal : AbortSignal.any([exit.signal, options.signal]);
  let after = options.after;
  /** The number of checked events since the last reported position. */
  let unreported = 0;
  let live = false;
  let next: Promise<FeedPage> | undefined;
  // A lost database connection does not end a subscription: it retries from the same position.
  const withRetry = async <T>(work: () => Promise<T>): Promise<T> => {
    for (let failures = 1; ; failures += 1) {
      try {
        return await work();
      } catch (error) {
        if (!hasCode(error, 'STORE_UNAVAILABLE') || !error.retryable) throw error;
        await options.pause(failures, error, signal);
      }
    }
  };
  const { aroundLoad = (load) => load() } = options;
  const read = (from: number): Promise<FeedPage> =>
    withRetry(() => aroundLoad(() => source.read(from, signal, live)));
  try {
    for (;;) {
      const page = await (next ?? read(after));
      // Some engines ignore the signal; an abort must not wait until the whole store is read.
      if (signal.aborted) throw aborted(signal);
      const before = after;
      after = page.considered;
      unreported += page.scanned ?? after - before;
      // Fetch the next page while the consumer processes this one.
      const isAhead = !page.end && options.aroundLoad === undefined;
      next = isAhead ? markHandled(read(after)) : undefined;
      if (live && !page.end) {
        live = false;
        // This page is not delivered yet, so its position is not a safe checkpoint.
        yield { kind: 'fellBehind', position: toPosition(before) };
      }
      if (page.events.length > 0) {
        unreported = 0;
        const { events, bytes } = page;
        yield { kind: 'events', events, bytes, position: toPosition(after) };
      } else if (unreported >= options.checkpointEvery) {
        unreported = 0;
        yield { kind: 'checkpoint', position: toPosition(after) };
      }
      if (!page.end) {
        await nextTurn();
        continue;
      }
      if (!live) {
        live = true;
        unreported = 0;
        yield { kind: 'caughtUp', position: toPosition(after) };
      }
      await withRetry(() => source.whenMore(after, signal));
    }
  } catch (error) {
    // The caller's signal ends a subscription normally; any other error is a failure.
    if (options.signal?.aborted !== true || !isAbort(error)) throw error;
  } finally {
    exit.abort();
  }
}

/**
 * The reads of a live feed of one stream. Retention applies to the events that were stored before the first read: a live
 * reader gets every later event, although retention may hide it before the next read.
 */
export function streamReads({
  stream,
  start,
  load,
  loadLive,
  head,
  decode,
}: {
  readonly stream: string;
  /** `isLive`: the reader has no events to catch up with. */
  readonly start: { readonly after: number; readonly isLive: boolean };
  readonly load: (query: Omit<StreamQuery, 'nowMs' | keyof PageBound>) => Promise<StreamPage>;
  /** Reads the stream among all events. Only for engines whose reads of a stream cannot return hidden events. */
  readonly loadLive?: ((after: number, signal: AbortSignal) => Promise<AllPage>) | undefined;
  readonly head: () => Promise<number>;
  readonly decode: (rows: readonly StoredRow[]) => Promise<RecordedEvent[]>;
}): FeedSource['read'] {
  // The feed counts in sequences of the store, these in revisions of the stream.
  let from = start.after + 1;
  let liveFrom = start.isLive ? from : undefined;
  let hasCaughtUp = false;

  async function readLive(read: Promise<AllPage>): Promise<FeedPage> {
    const page = await read;
    const isGone = page.rows.some(({ type }) => type === tombstoneType);
    const rows = page.rows.filter((row) => row.revision >= from && row.type !== tombstoneType);
    const last = rows.at(-1);
    if (isGone && last === undefined) throw streamDeleted(stream);
    const events = await decode(rows);
    from = last === undefined ? from : last.revision + 1;
    const considered = isGone && last !== undefined ? last.sequence : page.considered;
    return { events, bytes: rowsBytes(rows), considered, end: page.end && !isGone };
  }

  return async (considered, signal) => {
    if (hasCaughtUp && loadLive !== undefined) return readLive(loadLive(considered, signal));
    // Read the head first: an event between the two reads is then found later instead of skipped.
    const headBefore = await head();
    const page = await load({ stream, direction: 'forwards', from, liveFrom, signal });
    const { state, end } = page;
    const isGone = state?.tombstoned === true;
    // A live reader gets the events before the tombstone first.
    const rows = isGone ? page.rows.filter(({ type }) => type !== tombstoneType) : page.rows;
    if (isGone && (liveFrom === undefined || rows.length === 0)) throw streamDeleted(stream);
    const events = await decode(rows);
    const last = rows.at(-1);
    const revision = state?.revision ?? -1;
    // Update last, so a failed read is retried from the same revision.
    liveFrom ??= revision + 1;
    // The tombstone itself is left for the next read, which throws.
    const isDone = end && !isGone;
    from = Math.max(from, (last?.revision ?? -1) + 1, isDone ? revision + 1 : 0);
    hasCaughtUp ||= isDone;
    const sequence = last?.sequence ?? considered;
    return {
      events,
      bytes: rowsBytes(rows),
      considered: isDone ? Math.max(sequence, headBefore) : sequence,
      end,
    };
  };
}

/** Marks a prefetched page as handled: it may fail after the consumer has left. */
function markHandled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

function isAbort(error: unknown): boolean {
  return hasCode(error, 'ABORTED') || (error instanceof Error && error.name === 'AbortError');
}
