// Documents that were lost where they are kept (a Redis that was emptied) are folded again, in the version that
// is asked, while its projection runs on: every write is fenced by its event, so that neither undoes the other.

import type { EventStore } from '../store/event-store.ts';
import type { Position } from '../store/position.ts';
import { projectEvents } from './run/project-events.ts';
import { projectionLimits } from './limits.ts';
import type { Projection } from './projection.ts';
import type { ReadModelStore } from './read-model-store.ts';

export interface RestoreOptions {
  readonly readModels: ReadModelStore;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Brings back the documents of a projection from the events; those that are there stay as they are. A projection
 * that makes no document of an event in the middle of a history (it returns null) loses nothing of what happens
 * meanwhile. Returns how many events it read.
 *
 * @example
 * import { memoryEventStore } from 'millrace/adapters/memory';
 * import { memoryReadModels, projection, readModel, restoreProjection } from 'millrace/projections';
 *
 * const accounts = projection({
 *   name: 'sub:banking:accounts:v1',
 *   readModel: readModel<{ readonly opened: boolean }>({ bc: 'banking', aggregate: 'account', version: 1 }),
 *   on: { 'account.opened.v1': () => ({ opened: true }) },
 * });
 * await restoreProjection(memoryEventStore(), accounts, { readModels: memoryReadModels() });
 */
export async function restoreProjection<Document extends object>(
  store: EventStore,
  projection: Projection<Document>,
  { readModels, signal }: RestoreOptions,
): Promise<number> {
  let after: Position | undefined;
  let count = 0;
  for (;;) {
    const before = count;
    const reading = store.readAll({
      filter: projection.filter,
      pageSize: projectionLimits.rebuildPage,
      ...(after === undefined ? {} : { after }),
      ...(signal === undefined ? {} : { signal }),
    });
    for await (const page of reading.pages()) {
      await projectEvents(readModels, projection, page);
      after = page.at(-1)?.position ?? after;
      count += page.length;
    }
    // What was appended while the last page was written may have found no document yet.
    if (count === before) return count;
  }
}
