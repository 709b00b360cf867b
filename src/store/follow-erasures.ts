// A subscription that keeps copies of personal data gets the erasures in addition to its own events.

import { subjectForgottenType, withoutForgottenPrefix } from './erasure.ts';
import { compileFilter, matchesRow, type EventFilter } from './event-filter.ts';
import type { EventStore } from './event-store.ts';
import type { RecordedEvent } from './recorded-event.ts';

export interface FollowedErasures {
  readonly filter: EventFilter;
  /** Separates the events that match the original filter from the streams with erased events. */
  readonly split: (events: readonly RecordedEvent[]) => {
    readonly own: readonly RecordedEvent[];
    readonly erasedStreams: readonly string[];
  };
}

/** The parts of a filter are combined with "and", so parts without a list are checked after the read. */
export function followErasures(filter: EventFilter = {}): FollowedErasures {
  const { types, typePrefixes } = filter;
  const original = compileFilter(filter);
  return {
    filter: {
      ...(types === undefined ? {} : { types: [...types, subjectForgottenType] }),
      ...(typePrefixes === undefined
        ? {}
        : { typePrefixes: [...typePrefixes, subjectForgottenType] }),
      system: true,
    },
    split(events) {
      const erased = events.filter(({ type }) => type === subjectForgottenType);
      return {
        own: events.filter((event) => matchesRow(original, event, event.tenant)),
        erasedStreams: [...new Set(erased.map(({ stream }) => withoutForgottenPrefix(stream)))],
      };
    },
  };
}

/** Pages of all stored events of a stream, also of those that it no longer shows: copies of them may exist. */
export async function* everyEventOf(
  store: Pick<EventStore, 'capabilities' | 'readAll' | 'readStream'>,
  stream: string,
): AsyncIterable<readonly RecordedEvent[]> {
  if (store.capabilities.hiddenEvents !== false) {
    yield* store.readStream(stream, { hidden: true }).pages();
    return;
  }
  const filter = { streamPrefixes: [stream] };
  for await (const page of store.readAll({ filter }).pages()) {
    yield page.filter((event) => event.stream === stream);
  }
}
