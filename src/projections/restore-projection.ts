// Restores lost documents, for example after a Redis flush, in the active version while its projection runs.
// Every write is fenced by its event, so restore and projection do not undo each other.

import type { Position } from '../store/position.ts';
import { resolveTenants, type ResolveTenant } from '../store/stream-owners.ts';
import { projectionLimits, type Projection } from './projection.ts';
import { projectEvents } from './run/project-events.ts';
import type { ProjectionRoles } from './start-projection.ts';

export interface RestoreOptions {
  readonly signal?: AbortSignal | undefined;
  readonly resolveTenant?: ResolveTenant | undefined;
}

/**
 * Restores the missing documents of a projection from the events; existing documents do not change. Events
 * appended during the restore are included if the projection returns null for events without a document.
 * Returns the number of events read.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { projection, readModel, restoreProjection } from 'millrace/projections';
 *
 * const accounts = projection({
 *   name: 'sub:banking:accounts:v1',
 *   readModel: readModel<{ readonly opened: boolean }>({ bc: 'banking', aggregate: 'account', version: 1 }),
 *   on: { 'account.opened.v1': () => ({ opened: true }) },
 * });
 * await restoreProjection(openMemory(), accounts);
 */
export async function restoreProjection<Document extends object>(
  { store, readModels }: Pick<ProjectionRoles, 'readModels' | 'store'>,
  projection: Projection<Document>,
  { signal, resolveTenant: resolve }: RestoreOptions = {},
): Promise<number> {
  let after: Position | undefined;
  let count = 0;
  for (;;) {
    const before = count;
    const { filter } = projection;
    const reading = store.readAll({
      filter,
      after,
      signal,
      pageSize: projectionLimits.rebuildPage,
    });
    for await (const page of reading.pages()) {
      const resolved = await resolveTenants(page, resolve);
      await projectEvents(readModels, projection, resolved);
      after = page.at(-1)?.position ?? after;
      count += page.length;
    }
    // The projection may have skipped events appended during the last write, because their document was missing.
    if (count === before) return count;
  }
}
