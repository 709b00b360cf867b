// Bounded reading, page by page: the limit counts over all pages, and a page is asked for once.

import { aborted } from '../foundation/clock.ts';
import type { EventReader, ReadOptions } from './event-store.ts';
import { nextTurn } from './next-turn.ts';
import type { RecordedEvent } from './recorded-event.ts';

export interface PageSource {
  readonly start: number;
  readonly pageSize: number;
  readonly read: (
    from: number,
    limit: number,
  ) => Promise<{
    readonly events: readonly RecordedEvent[];
    readonly next: number;
    readonly end: boolean;
  }>;
}

export function createEventReader(options: ReadOptions, source: PageSource): EventReader {
  async function* pages(): AsyncGenerator<readonly RecordedEvent[], void, undefined> {
    let left = Math.floor(options.limit ?? Number.POSITIVE_INFINITY);
    let from = source.start;
    let end = false;
    while (!end && left > 0) {
      if (options.signal?.aborted === true) throw aborted(options.signal);
      const page = await source.read(from, Math.min(source.pageSize, left));
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
