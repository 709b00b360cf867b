// Follows the store in pages, whose size is adjusted while catching up.

import type { EventStore, FeedItem } from '../../../store/event-store.ts';
import { toPosition, toSequence } from '../../../store/position.ts';
import type { PageSize } from './page-size.ts';
import type { ReadPlan } from './read-plan.ts';

/** With smaller pages every burst of appends would count as falling behind. */
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
      const isRepeated = item.kind === 'caughtUp' && wasLive;
      if (!isRepeated) yield item;
      if (item.kind === 'events' && source.kind === 'stream') {
        after = item.events.at(-1)?.revision ?? after;
      } else if (source.kind !== 'stream') {
        after = toSequence(item.position);
      }
      live ||= item.kind === 'caughtUp';
      // The page size of a feed is fixed, so another size needs a new feed; after catching up only once.
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
    const checkpointEvery = source.kind === 'all' ? source.checkpointEvery : undefined;
    return store.subscribe({ after: toPosition(from), filter, pageSize, signal, checkpointEvery });
  }
}
