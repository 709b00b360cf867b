// Live reading from the store in pages whose size is found while catching up.

import type { EventStore, FeedItem } from '../../../store/event-store.ts';
import { toPosition, toSequence } from '../../../store/position.ts';
import type { PageSize } from './page-size.ts';
import type { ReadPlan } from './read-plan.ts';

/** Smaller pages would take every burst of appends for falling behind. */
const livePageMin = 64;

export async function* followInPages(
  store: Pick<EventStore, 'subscribe' | 'subscribeToStream'>,
  { source }: Pick<ReadPlan, 'source'>,
  { start, size }: { readonly start: number; readonly size: Pick<PageSize, 'current'> },
  signal: AbortSignal,
): AsyncGenerator<FeedItem, void, undefined> {
  let after = start;
  let live = false;
  for (;;) {
    const pageSize: number = live ? Math.max(size.current, livePageMin) : size.current;
    const wasLive = live;
    let again = false;
    for await (const item of openFeed(after, pageSize)) {
      const told = item.kind === 'caughtUp' && wasLive;
      if (!told) yield item;
      if (item.kind === 'events' && source.kind === 'stream') {
        after = item.events.at(-1)?.revision ?? after;
      } else if (source.kind !== 'stream') {
        after = toSequence(item.position);
      }
      live ||= item.kind === 'caughtUp';
      // A feed's pages stay as they are, so it is left for another; but only once when it is live.
      again = !wasLive && (live || (item.kind === 'events' && size.current !== pageSize));
      if (again) break;
    }
    if (!again) return;
  }

  function openFeed(from: number, pageSize: number): AsyncIterable<FeedItem> {
    if (source.kind === 'stream') {
      return store.subscribeToStream(source.stream, { after: from, pageSize, signal });
    }
    const { filter } = source;
    const every = source.kind === 'all' ? source.checkpointEvery : undefined;
    return store.subscribe({
      after: toPosition(from),
      filter,
      pageSize,
      signal,
      ...(every === undefined ? {} : { checkpointEvery: every }),
    });
  }
}
