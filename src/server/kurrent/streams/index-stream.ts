// `$ce-<category>` and `$et-<type>` are no streams of their own here, but views of all events:
// the number of a link in them is the store's sequence. It never changes, it grows along the view,
// and a reader that goes on after the last number it saw misses nothing; but numbers have gaps.

import type { EventFilter } from '../../../store/event-filter.ts';
import { Refusal, status } from '../refusal.ts';

/** Undefined: an ordinary stream. */
export function indexFilter(stream: string): EventFilter | undefined {
  if (stream.startsWith('$ce-') && stream.length > 4) return { category: stream.slice(4) };
  if (stream.startsWith('$et-') && stream.length > 4) {
    return { types: [stream.slice(4)], system: true };
  }
  return undefined;
}

/** Streams of KurrentDB's other system projections: no engine finds their events by an index. */
const unkept: readonly (readonly [test: RegExp, what: string])[] = [
  [/^\$streams$/, 'the first event of every stream'],
  [/^\$category-/, 'the first event of every stream of a category'],
  [/^\$bc-/, 'the events of a correlation id'],
];

/** To say so is better than a stream that is always empty. */
export function refuseUnkept(stream: string): void {
  const [, what] = unkept.find(([test]) => test.test(stream)) ?? [];
  if (what === undefined) return;
  throw new Refusal(
    `'${stream}' (${what}) is not kept by this server: read $all, $ce-<category> or $et-<type>`,
    { status: status.unimplemented },
  );
}
