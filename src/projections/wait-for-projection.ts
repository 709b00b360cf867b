// Read your writes from a process that does not run the projection itself.

import type { Position } from '../store/position.ts';
import { createSubscriptionRunner } from '../subscriptions/subscription-runner.ts';
import { hostOf, type HostOptions, type ProjectionStore } from './projection-host.ts';
import type { Projection } from './projection.ts';
import { projectionSubscription } from './start-projection.ts';
import { waitWithTimeout, type WaitOptions } from './wait-with-timeout.ts';

/** How often the checkpoint is looked at. */
const pollMs = 50;

/**
 * Waits until the documents of a projection, whichever process runs it, hold everything up to a
 * position. It learns of that when the owner has written its checkpoint, about once a second.
 *
 * @example
 * import { memoryEventStore } from 'millrace/adapters/memory';
 * import { projection, readModel, waitForProjection } from 'millrace/projections';
 * import type { Position } from 'millrace/store';
 *
 * const store = memoryEventStore();
 * const accounts = projection({
 *   name: 'sub:banking:accounts:v1',
 *   readModel: readModel<{ readonly opened: boolean }>({ bc: 'banking', aggregate: 'account', version: 1 }),
 *   on: { 'account.opened.v1': () => ({ opened: true }) },
 * });
 * const afterAppend = (position: Position) =>
 *   waitForProjection(store, accounts, position, { timeoutMs: 2_000 });
 */
export async function waitForProjection<Document extends object>(
  store: ProjectionStore,
  projection: Projection<Document>,
  position: Position,
  options: WaitOptions & HostOptions = {},
): Promise<void> {
  const { readModels, storage, clock } = hostOf(store, options);
  // Never started: it only looks at the checkpoints.
  const observer = createSubscriptionRunner(store, projectionSubscription(projection, readModels), {
    storage,
    clock,
    pollMs,
  });
  await waitWithTimeout(projection.name, { ...options, clock }, (signal) =>
    observer.waitFor(position, signal),
  );
}
