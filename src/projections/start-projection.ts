// Runs a projection in this process as a subscription with fenced writes. A repeated event changes nothing,
// so the checkpoint may lag behind the documents.

import { systemClock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import type { EventStore } from '../store/event-store.ts';
import { followErasures } from '../store/follow-erasures.ts';
import { startPosition, type Position } from '../store/position.ts';
import { Terminal } from '../foundation/handler-outcome.ts';
import {
  createSubscriptionRunner,
  type SubscriptionOptions,
  type SubscriptionRunner,
} from '../subscriptions/subscription-runner.ts';
import type { SubscriptionRoles } from '../subscriptions/subscription-storage.ts';
import { subscription, type Subscription } from '../subscriptions/subscription.ts';
import { projectionLimits, type Projection } from './projection.ts';
import type { ReadModelRoles, ReadModelStore } from './read-model-store.ts';
import { familyOf, type ReadModelVersion } from './read-model-versions.ts';
import { eraseDocuments } from './run/erase-documents.ts';
import { projectEvents } from './run/project-events.ts';
import { watchLoss } from './run/restore-lost.ts';
import { waitWithTimeout, type WaitOptions } from './run/wait-with-timeout.ts';

/** What a projection reads and stores; the handle of an engine with read models has these roles. */
export interface ProjectionRoles extends SubscriptionRoles, ReadModelRoles {}

/** Checks the roles of callers without types. */
export function checkRoles<Roles extends Partial<ReadModelRoles>>(roles: Roles): Roles {
  const { readModels, readModelVersions }: Partial<ReadModelRoles> = roles;
  if (readModels !== undefined && readModelVersions !== undefined) return roles;
  throw new MillraceError(
    'NOT_SUPPORTED',
    'this engine has no read models: pass `readModels` and `readModelVersions` of another engine, such as PostgreSQL or SQLite',
    { details: { role: readModels === undefined ? 'readModels' : 'readModelVersions' } },
  );
}

export interface ProjectionRunner extends Omit<SubscriptionRunner, 'waitFor' | 'start' | 'reset'> {
  /** Resolves when the documents include all events up to this position, for reading your own writes. */
  waitFor(position: Position, options?: WaitOptions): Promise<void>;
}

/**
 * Runs a projection: from its checkpoint, then live, until it stops.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { projection, readModel, startProjection } from 'millrace/projections';
 *
 * await using db = openMemory();
 * const accounts = projection({
 *   name: 'sub:banking:accounts:v1',
 *   readModel: readModel<{ readonly opened: boolean }>({ bc: 'banking', aggregate: 'account', version: 1 }),
 *   on: { 'account.opened.v1': () => ({ opened: true }) },
 * });
 * await using runner = await startProjection(db, accounts);
 * await runner.whenCaughtUp();
 */
export async function startProjection<Document extends object>(
  roles: ProjectionRoles,
  projection: Projection<Document>,
  options: SubscriptionOptions = {},
): Promise<ProjectionRunner> {
  const { store, readModelVersions: versions } = checkRoles(roles);
  const { clock = systemClock } = options;
  const { name, readModel } = projection;
  const key = { family: familyOf(readModel), version: readModel.version };
  const version = await versions.declare(
    { ...key, projection: name, target: await store.head() },
    clock.now(),
  );
  checkVersion(name, version);
  const each = projectionSubscription(projection, roles);
  const runner = createSubscriptionRunner(roles, each, options);
  const loss = watchLoss(roles, projection, {
    clock,
    observer: options.observer,
    reset: () => runner.reset(),
    waitFor: (position, signal) => runner.waitFor(position, signal),
  });
  try {
    await loss?.check();
    await runner.start();
  } catch (error) {
    await loss?.[Symbol.asyncDispose]();
    throw error;
  }
  loss?.start();
  const ending = new AbortController();
  const marking = version.status === 'building' ? markReady() : undefined;

  /** Marks the version as ready for a switch once it has caught up. */
  async function markReady(): Promise<void> {
    try {
      await runner.waitFor(version.target ?? startPosition, ending.signal);
      await versions.setStatus(key, { from: ['building'], to: 'ready' }, clock.now());
    } catch (err) {
      if (ending.signal.aborted) return;
      options.observer?.log?.warn({ sub: name, err }, 'could not mark the projection as ready');
    }
  }

  const stop = async (): Promise<void> => {
    ending.abort();
    await loss?.[Symbol.asyncDispose]();
    await runner.stop();
  };
  return {
    get state() {
      return runner.state;
    },
    get status() {
      return runner.status;
    },
    stop,
    [Symbol.asyncDispose]: stop,
    async whenCaughtUp(signal) {
      await runner.whenCaughtUp(signal);
      await marking;
    },
    lag: () => runner.lag(),
    pause: () => runner.pause(),
    resume: () => runner.resume(),
    poll: () => runner.poll(),
    waitFor: (position, waitOptions = {}) =>
      waitWithTimeout(name, { ...waitOptions, clock }, (signal) =>
        runner.waitFor(position, signal),
      ),
  };
}

/** The projection as a subscription. */
export function projectionSubscription<Document extends object>(
  projection: Projection<Document>,
  roles: { readonly store: EventStore; readonly readModels: ReadModelStore },
): Subscription {
  const { tuning } = projection;
  const erasures = followErasures(projection.filter);
  return subscription({
    ...tuning,
    batchSize: tuning.batchSize ?? projectionLimits.batchSize,
    lanes: tuning.lanes ?? projectionLimits.lanes,
    inFlightMax: projectionLimits.inFlightMax,
    name: projection.name,
    filter: erasures.filter,
    // A document needs all its events in order.
    onDeadLetter: 'park',
    async batchHandler(events) {
      try {
        const { own, erasedStreams } = erasures.split(events);
        await projectEvents(roles.readModels, projection, own);
        for (const stream of erasedStreams) await eraseDocuments(roles, projection, stream);
      } catch (error) {
        throw isDefect(error) ? new Terminal(error.message, { cause: error }) : error;
      }
    },
  });
}

/** Errors that no retry can fix. */
function isDefect(error: unknown): error is MillraceError {
  return hasCode(error, 'DOCUMENT_FOREIGN') || hasCode(error, 'PROJECTION_INVALID');
}

export function checkVersion(name: string, declared: ReadModelVersion): void {
  const { family, version, projection, status } = declared;
  const invalid = (reason: string): MillraceError =>
    new MillraceError('PROJECTION_INVALID', `${name}: ${reason}`, {
      details: { name, family, version, status },
    });
  if (projection !== name)
    throw invalid(`v${version} of ${family} belongs to the projection ${projection}`);
  if (status === 'retiring' || status === 'retired') {
    throw invalid(`v${version} of ${family} is ${status}: start a new version`);
  }
}

/** Poll interval for the checkpoint. */
const pollMs = 50;

/**
 * Waits until the documents of a projection in any process include all events up to a position. Polls
 * the checkpoint, which the owner writes about once a second.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { projection, readModel, waitForProjection } from 'millrace/projections';
 * import type { Position } from 'millrace/store';
 *
 * const db = openMemory();
 * const accounts = projection({
 *   name: 'sub:banking:accounts:v1',
 *   readModel: readModel<{ readonly opened: boolean }>({ bc: 'banking', aggregate: 'account', version: 1 }),
 *   on: { 'account.opened.v1': () => ({ opened: true }) },
 * });
 * const afterAppend = (position: Position) =>
 *   waitForProjection(db, accounts, position, { timeoutMs: 2_000 });
 */
export async function waitForProjection<Document extends object>(
  roles: SubscriptionRoles & Pick<ReadModelRoles, 'readModels'>,
  projection: Projection<Document>,
  position: Position,
  options: WaitOptions & Pick<SubscriptionOptions, 'clock'> = {},
): Promise<void> {
  const { clock = systemClock } = options;
  // This runner is never started and only reads the checkpoints.
  const reading = projectionSubscription(projection, roles);
  const observer = createSubscriptionRunner(roles, reading, { clock, pollMs });
  await waitWithTimeout(projection.name, { ...options, clock }, (signal) =>
    observer.waitFor(position, signal),
  );
}
