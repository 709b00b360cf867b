// Bounded reading from the store, page by page; the reader says how large the next page may be.

import type { EventReader, EventStore } from '../../../store/event-store.ts';
import { toPosition, toSequence } from '../../../store/position.ts';
import type { RecordedEvent } from '../../../store/recorded-event.ts';
import type { PageSize } from './page-size.ts';
import type { ReadPlan } from './read-plan.ts';

interface PageOptions {
  readonly signal: AbortSignal;
  /** What the reader may see; absent: everything. */
  readonly keep?: ((event: RecordedEvent) => boolean) | undefined;
}

export async function* readPages(
  store: Pick<EventStore, 'readStream' | 'readAll'>,
  plan: ReadPlan,
  size: Pick<PageSize, 'current'>,
  { signal, keep }: PageOptions,
): AsyncGenerator<readonly RecordedEvent[], void, undefined> {
  let { from, limit: left } = plan;
  while (left > 0) {
    const limit = Math.min(left, size.current);
    const page = await openReader(store, { ...plan, from, limit }, signal).toArray();
    const kept = keep === undefined ? page : page.filter(keep);
    if (kept.length > 0) yield kept;
    const last = page.at(-1);
    if (last === undefined || page.length < limit) return;
    left -= kept.length;
    from = fromAfter(last, plan);
    if (from < 0) return;
  }
}

/** Where reading goes on behind this event, in the words of a plan. */
function fromAfter(last: RecordedEvent, { source, direction }: ReadPlan): number {
  const number = source.kind === 'stream' ? last.revision : toSequence(last.position);
  if (direction === 'forwards') return number + 1;
  // `$all` backwards begins below the point, everything else at it.
  return source.kind === 'all' ? number : number - 1;
}

function openReader(
  store: Pick<EventStore, 'readStream' | 'readAll'>,
  { source, direction, from, limit }: ReadPlan,
  signal: AbortSignal,
): EventReader {
  const about = { direction, limit, signal };
  const forwards = direction === 'forwards';
  if (source.kind === 'stream') {
    // Forwards from the end there is nothing.
    const at = from === 'start' ? 0 : from === 'end' ? Number.MAX_SAFE_INTEGER : from;
    return store.readStream(source.stream, { ...about, from: at });
  }
  const { filter } = source;
  if (typeof from === 'string') {
    if (from === (forwards ? 'start' : 'end')) return store.readAll({ ...about, filter });
    const after = forwards ? Number.MAX_SAFE_INTEGER : 0;
    return store.readAll({ ...about, filter, after: toPosition(after) });
  }
  // Reads begin AT a point, but `$all` backwards below it; the store's points are exclusive.
  const inclusive = forwards || source.kind === 'index';
  const after = inclusive ? (forwards ? Math.max(0, from - 1) : from + 1) : from;
  return store.readAll({ ...about, filter, after: toPosition(after) });
}
