// `$ce-<category>` and `$et-<type>` are no streams of their own here, but views of all events:
// the number of a link in them is the store's sequence. It never changes, it grows along the view,
// and a reader that goes on after the last number it saw misses nothing; but numbers have gaps.

import type { EventFilter } from '../../../store/event-filter.ts';

/** Undefined: an ordinary stream. */
export function indexFilter(stream: string): EventFilter | undefined {
  if (stream.startsWith('$ce-') && stream.length > 4) return { category: stream.slice(4) };
  if (stream.startsWith('$et-') && stream.length > 4) {
    return { types: [stream.slice(4)], system: true };
  }
  return undefined;
}
