// `$ce-<category>` and `$et-<type>` are views of all events, not stored streams. The number of a link in them is the
// sequence of the store: stable and increasing, but with gaps.

import type { EventFilter } from '../../../store/event-filter.ts';
import { RpcError, status } from '../rpc-error.ts';

/** Undefined: an ordinary stream. */
export function indexFilter(stream: string): EventFilter | undefined {
  if (stream.startsWith('$ce-') && stream.length > 4) return { category: stream.slice(4) };
  if (stream.startsWith('$et-') && stream.length > 4) {
    return { types: [stream.slice(4)], system: true };
  }
  return undefined;
}

/** Streams of other system projections of KurrentDB, which no engine has an index for. */
const unsupported: readonly (readonly [test: RegExp, what: string])[] = [
  [/^\$streams$/, 'the first event of every stream'],
  [/^\$category-/, 'the first event of every stream of a category'],
  [/^\$bc-/, 'the events of a correlation id'],
];

/** An error is better than a stream that is always empty. */
export function rejectUnsupported(stream: string): void {
  const [, what] = unsupported.find(([test]) => test.test(stream)) ?? [];
  if (what === undefined) return;
  throw new RpcError(
    `'${stream}' (${what}) is not supported by this server: read $all, $ce-<category> or $et-<type>`,
    { status: status.unimplemented },
  );
}
