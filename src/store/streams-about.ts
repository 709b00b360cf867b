// Finds the streams with events about a person.

import { subjectHeader, subjectOf } from './erasure.ts';
import { compileFilter } from './event-filter.ts';
import { pageLimits } from './page-bound.ts';
import { toRecordedEvent } from './recorded-event.ts';
import type { StoreEngine } from './store-engine.ts';

const pageSize = 1_000;

/** Reads all events once: an index by person would cost every append, and people are forgotten rarely. */
export async function streamsAbout(
  engine: Pick<StoreEngine, 'readAll'>,
  subject: string,
): Promise<ReadonlySet<string>> {
  const streams = new Set<string>();
  const query = {
    direction: 'forwards' as const,
    limit: pageSize,
    bytesMax: pageLimits.bytesDefault,
    filter: compileFilter(),
  };
  let after = 0;
  for (;;) {
    const { rows, considered, end } = await engine.readAll({ ...query, after });
    for (const row of rows) {
      // Most events have no such header, and their metadata need not be parsed.
      if (!row.meta.includes(subjectHeader)) continue;
      if (subjectOf(toRecordedEvent(row)) === subject) streams.add(row.stream);
    }
    if (end) return streams;
    after = considered;
  }
}
