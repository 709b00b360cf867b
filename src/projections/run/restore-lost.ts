// Detects that an engine has lost the documents or the checkpoint of a projection, and restores the documents from the
// events: the projection runs again from the start, and queries are rejected until it has caught up.

import { randomUUID } from 'node:crypto';
import type { Clock } from '../../foundation/clock.ts';
import type { Observer } from '../../foundation/observer.ts';
import { sweepLoop } from '../../loops/sweep-loop.ts';
import { generationsOf } from '../../subscriptions/generations.ts';
import type { Position } from '../../store/position.ts';
import type { SubscriptionRoles } from '../../subscriptions/subscription-storage.ts';
import { storageOf } from '../../subscriptions/with-leases.ts';
import type { ModelKey, ReadModelRoles } from '../read-model-store.ts';
import { familyOf } from '../read-model-versions.ts';

export interface LossWatch extends AsyncDisposable {
  /** Checks now; resolves when a restoration has started, not when it has ended. */
  check(): Promise<void>;
  /** Checks at intervals and when the connection is restored, until it is disposed. */
  start(): void;
}

export interface LossOptions {
  readonly clock: Clock;
  readonly observer: Observer | undefined;
  /** Moves the projection to the start. */
  readonly reset: () => Promise<void>;
  readonly waitFor: (position: Position, signal: AbortSignal) => Promise<void>;
}

const checkMs = 5_000;

/** Undefined: the engines of the projection lose nothing. */
export function watchLoss(
  roles: SubscriptionRoles & ReadModelRoles,
  { name, readModel }: { readonly name: string; readonly readModel: ModelKey },
  { clock, observer, reset, waitFor }: LossOptions,
): LossWatch | undefined {
  const { store, readModels, readModelVersions: versions } = roles;
  const { checkpoints } = storageOf(roles);
  const { marks } = readModels;
  if (marks === undefined && checkpoints.marks === undefined) return undefined;
  const key = { family: familyOf(readModel), version: readModel.version };
  const recordKey = `${key.family}.v${key.version}`;
  const generations = generationsOf(store);
  const ending = new AbortController();
  let checking: Promise<void> = Promise.resolve();
  let restoring: Promise<void> | undefined;

  /** The mark that is recorded but not stored next to the documents; undefined if nothing is lost. */
  async function lostDocuments(): Promise<string | undefined> {
    if (marks === undefined) return undefined;
    const mark = await marks.read(readModel);
    const isCurrent = (recorded: string | undefined): boolean =>
      mark !== undefined && recorded === mark;
    const known = generations.known(recordKey)?.mark;
    if (isCurrent(known)) return undefined;
    const recorded = (await generations.refresh()).get(recordKey);
    if (isCurrent(recorded?.mark)) return undefined;
    if (recorded === undefined) {
      const created = await marks.create(readModel, randomUUID());
      await generations.replace(recordKey, undefined, { mark: created });
      // Another engine had the documents of the events that the checkpoint has passed.
      return (await hasCheckpoint()) && !(await marks.hasDocuments(readModel))
        ? created
        : undefined;
    }
    // A generation that is new to this process: another process is restoring the documents. The next check finds out.
    return known === undefined || known === recorded.mark ? recorded.mark : undefined;
  }

  async function hasCheckpoint(): Promise<boolean> {
    const state = await checkpoints.get(name);
    return state?.positions.some((position) => position !== undefined) ?? false;
  }

  async function checkOnce(): Promise<void> {
    const lost = await lostDocuments();
    const isCheckpointLost = (await checkpoints.isLost?.(name)) ?? false;
    if (lost !== undefined || isCheckpointLost) await restore(lost);
    const known = (await versions.list(key.family)).find(({ version }) => version === key.version);
    if (known?.status === 'rebuilding') restoring ??= markReady();
  }

  async function restore(lost: string | undefined): Promise<void> {
    const mark = randomUUID();
    const isOurs = lost === undefined || (await generations.replace(recordKey, lost, { mark }));
    if (!isOurs) return;
    observer?.log?.warn({ sub: name, ...key }, 'documents lost, rebuilding them from the events');
    // The versions may be lost, too.
    await versions.declare({ ...key, projection: name, target: await store.head() }, clock.now());
    const from = ['building', 'ready'] as const;
    await versions.setStatus(key, { from, to: 'rebuilding' }, clock.now());
    if ((await checkpoints.get(name)) !== undefined) await reset();
    // Last: after a crash before this step, the next check starts again.
    const isCurrent = (await generations.refresh()).get(recordKey)?.mark === mark;
    if (lost !== undefined && isCurrent) await marks?.replace(readModel, mark);
  }

  async function markReady(): Promise<void> {
    try {
      await waitFor(await store.head(), ending.signal);
      await versions.setStatus(key, { from: ['rebuilding'], to: 'ready' }, clock.now());
      observer?.log?.info({ sub: name, ...key }, 'documents rebuilt');
    } catch (err) {
      if (!ending.signal.aborted) {
        observer?.log?.warn({ sub: name, err }, 'could not mark the projection as ready');
      }
    } finally {
      restoring = undefined;
    }
  }

  /** One after the other. */
  function check(): Promise<void> {
    checking = checking.then(checkOnce, checkOnce);
    return checking;
  }

  const onFailure = (err: unknown): void =>
    observer?.log?.warn({ sub: name, err }, 'could not check for lost documents');
  const stack = new AsyncDisposableStack();
  return {
    check,
    start() {
      stack.use(sweepLoop(check, { everyMs: checkMs, clock, onFailure }));
      const restored = (): void => void check().catch(onFailure);
      stack.defer((marks ?? checkpoints.marks)?.onRestored(restored) ?? (() => undefined));
    },
    async [Symbol.asyncDispose]() {
      ending.abort();
      await stack.disposeAsync();
      await restoring;
    },
  };
}
