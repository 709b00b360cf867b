// One read of the store for all shards of a subscription in a process. The last pages are buffered. A shard
// that lags further behind reads alone, does not delay the others, and rejoins once it has caught up.

import type { EventFilter } from '../../store/event-filter.ts';
import type { EventStore, FeedItem } from '../../store/event-store.ts';
import { positionDistance, type Position } from '../../store/position.ts';
import type { RecordedEvent } from '../../store/recorded-event.ts';
import { shardOf } from '../rules/lane-of.ts';

export interface SharedFeedOptions {
  readonly store: Pick<EventStore, 'subscribe'>;
  readonly filter: EventFilter | undefined;
  readonly shards: number;
  readonly pageSize: number;
  /** Number of buffered pages for shards that lag behind. */
  readonly pagesMax: number;
}

interface ReadShardOptions {
  readonly shard: number;
  readonly after: Position;
  readonly signal: AbortSignal;
}

export interface SharedFeed {
  /** The items of the store's feed for one shard. */
  read(options: ReadShardOptions): AsyncIterable<FeedItem>;
}

interface Page {
  readonly kind: FeedItem['kind'];
  readonly position: Position;
  /** By shard; undefined if the page has no event of the shard. */
  readonly events: readonly (readonly RecordedEvent[] | undefined)[];
}

/** A running read with its buffered pages. */
interface Hub {
  readonly feed: AsyncIterator<FeedItem>;
  readonly ending: AbortController;
  readonly readers: Set<Reader>;
  readonly waiters: Set<() => void>;
  pages: Page[];
  /** Number of dropped pages, which is the number of the first buffered page. */
  dropped: number;
  /** The buffered pages start after this position. */
  base: Position;
  head: Position;
  isLive: boolean;
  isPulling: boolean;
  isOver: boolean;
  failure: { readonly error: unknown } | undefined;
}

interface Reader {
  /** Number of the next page. */
  next: number;
}

/** How many pages of the usual size a reader may be ahead. */
const pagesAheadMax = 2;

export function createSharedFeed(options: SharedFeedOptions): SharedFeed {
  const { store, filter, shards, pageSize, pagesMax } = options;
  let current: Hub | undefined;

  const subscribe = (after: Position, signal: AbortSignal): AsyncIterable<FeedItem> =>
    store.subscribe({ after, signal, pageSize, filter });

  function open(after: Position): Hub {
    const ending = new AbortController();
    const hub: Hub = {
      feed: subscribe(after, ending.signal)[Symbol.asyncIterator](),
      ending,
      readers: new Set(),
      waiters: new Set(),
      pages: [],
      dropped: 0,
      base: after,
      head: after,
      isLive: false,
      isPulling: false,
      isOver: false,
      failure: undefined,
    };
    return hub;
  }

  /**
   * A reader slightly ahead skips known events; a reader far ahead would force the others to skip ahead. The buffered
   * pages show how far a page goes, because positions may count events or bytes.
   */
  function isClose({ base, head, pages }: Hub, position: Position): boolean {
    const pagesRead = Math.max(1, pages.length);
    const reach = (positionDistance(base, head) / pagesRead) * pagesAheadMax;
    return position >= base && positionDistance(head, position) <= reach;
  }

  function enter(hub: Hub, position: Position): Reader {
    const at = hub.pages.findIndex((page) => page.position > position);
    const reader = { next: hub.dropped + (at === -1 ? hub.pages.length : at) };
    hub.readers.add(reader);
    return reader;
  }

  function leave(hub: Hub, reader: Reader): void {
    hub.readers.delete(reader);
    if (hub.readers.size > 0) return;
    hub.ending.abort();
    // The feed has no reader left.
    hub.feed.return?.().catch(() => undefined);
    if (current === hub) current = undefined;
  }

  /** The first reader fetches the next page; the others read it from the buffer. */
  async function pull(hub: Hub): Promise<void> {
    hub.isPulling = true;
    try {
      const { done = false, value } = await hub.feed.next();
      if (done) hub.isOver = true;
      else buffer(hub, value);
    } catch (error) {
      hub.failure = { error };
      if (current === hub) current = undefined;
    } finally {
      hub.isPulling = false;
      for (const wake of hub.waiters) wake();
      hub.waiters.clear();
    }
  }

  function buffer(hub: Hub, item: FeedItem): void {
    if (item.kind === 'caughtUp') hub.isLive = true;
    if (item.kind === 'fellBehind') hub.isLive = false;
    if (item.position > hub.head) hub.head = item.position;
    const events = item.kind === 'events' ? split(item.events, shards) : [];
    hub.pages.push({ kind: item.kind, position: item.position, events });
    if (hub.pages.length <= pagesMax) return;
    hub.base = hub.pages.shift()?.position ?? hub.base;
    hub.dropped += 1;
  }

  function nextPage(hub: Hub, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        hub.waiters.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      hub.waiters.add(wake);
      signal.addEventListener('abort', wake, { once: true });
      if (signal.aborted) wake();
    });
  }

  /** Ends when its next page is no longer buffered; returns its position. */
  async function* together(
    hub: Hub,
    { shard, after, signal }: ReadShardOptions,
  ): AsyncGenerator<FeedItem, Position> {
    const reader = enter(hub, after);
    let position = after;
    let isLive = false;
    try {
      while (!signal.aborted && reader.next >= hub.dropped) {
        const page = hub.pages[reader.next - hub.dropped];
        if (page !== undefined) {
          reader.next += 1;
          const from = position;
          if (page.position > position) position = page.position;
          isLive = page.kind === 'caughtUp' || (isLive && page.kind !== 'fellBehind');
          yield itemOf(page, { shard, from, position });
        } else if (hub.isLive && !isLive) {
          // This reader joined after the others had caught up.
          isLive = true;
          yield { kind: 'caughtUp', position };
        } else if (hub.failure !== undefined) {
          throw hub.failure.error;
        } else {
          if (!hub.isPulling && !hub.isOver) void pull(hub);
          await nextPage(hub, signal);
        }
      }
      return position;
    } finally {
      leave(hub, reader);
    }
  }

  /** Ends when it is close to the other readers; returns its position. */
  async function* alone({
    shard,
    after,
    signal,
  }: ReadShardOptions): AsyncGenerator<FeedItem, Position> {
    let position = after;
    for await (const item of subscribe(after, signal)) {
      if (item.position > position) position = item.position;
      const events = item.kind === 'events' ? (split(item.events, shards)[shard] ?? []) : [];
      yield item.kind === 'events' ? { ...item, events } : item;
      if (current === undefined || isClose(current, position)) break;
    }
    return position;
  }

  return {
    async *read({ shard, after, signal }) {
      let position = after;
      while (!signal.aborted) {
        current ??= open(position);
        const request = { shard, after: position, signal };
        position = yield* isClose(current, position) ? together(current, request) : alone(request);
      }
    },
  };
}

function split(
  events: readonly RecordedEvent[],
  shards: number,
): readonly (readonly RecordedEvent[] | undefined)[] {
  if (shards === 1) return [events];
  const all: RecordedEvent[][] = [];
  for (const event of events) (all[shardOf(event.stream, shards)] ??= []).push(event);
  return all;
}

function itemOf(
  page: Page,
  { shard, from, position }: { shard: number; from: Position; position: Position },
): FeedItem {
  if (page.kind !== 'events') return { kind: page.kind, position };
  const all = page.events[shard] ?? [];
  const [first] = all;
  // A reader that joined within a page has already read a part of it.
  const isNew = first === undefined || first.position > from;
  const events = isNew ? all : all.filter((event) => event.position > from);
  return events.length === 0
    ? { kind: 'checkpoint', position }
    : { kind: 'events', events, position };
}
