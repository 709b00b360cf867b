// Maintains a saga index outside the event database: checks regularly whether the index is complete, and
// otherwise rebuilds the entries of this process's shards from the saga streams.

import type { Clock } from '../foundation/clock.ts';
import type { Observer } from '../foundation/observer.ts';
import { sweepLoop } from '../loops/sweep-loop.ts';
import type { EventStore } from '../store/event-store.ts';
import { shardOf } from '../subscriptions/rules/lane-of.ts';
import { sagaLimits, type Saga } from './saga.ts';
import { sagaTypes } from './saga-fact.ts';
import type { SagaIndexUpkeep } from './saga-index.ts';

export interface KeepSagaIndexOptions {
  readonly store: EventStore;
  readonly saga: Saga;
  readonly upkeep: SagaIndexUpkeep;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly pollMs: number;
  /** The shards that this process owns. */
  readonly shards: () => readonly number[];
  /** Loads the saga and writes its index entry. */
  readonly enter: (stream: string) => Promise<void>;
}

export function keepSagaIndex(options: KeepSagaIndexOptions): AsyncDisposable {
  const { saga, upkeep, clock, observer, pollMs } = options;

  async function rebuildIncomplete(signal: AbortSignal): Promise<void> {
    const shards = options.shards();
    if (shards.length === 0) return;
    const incomplete = await upkeep.incomplete({ saga: saga.category, shards });
    if (incomplete.length === 0) return;
    const fields = { saga: saga.subscription, shards: incomplete };
    observer.log?.info(fields, 'rebuilding saga index from its streams');
    const done = await upkeep.renew({ saga: saga.category, shards: incomplete });
    const sagas = await fill(options, new Set(incomplete), signal);
    await done();
    observer.log?.info({ ...fields, sagas }, 'saga index rebuilt');
  }

  return sweepLoop(rebuildIncomplete, {
    everyMs: pollMs,
    clock,
    onFailure: (err) => observer.log?.warn({ saga: saga.category, err }, 'saga index unavailable'),
  });
}

/** Concurrent changes are written by the handler of their event. Returns the number of sagas. */
async function fill(
  { store, saga, enter }: KeepSagaIndexOptions,
  shards: ReadonlySet<number>,
  signal: AbortSignal,
): Promise<number> {
  const of = saga.tuning.shards ?? 1;
  // Events of one saga are close together, so a bounded set avoids most repeated writes.
  const recent = new Set<string>();
  let count = 0;
  const own = store.readAll({ filter: { types: sagaTypes(saga) }, signal });
  for await (const events of own.pages()) {
    const streams = new Set(
      events
        .map(({ stream }) => stream)
        .filter((stream) => stream.startsWith(`${saga.category}-`) && !recent.has(stream))
        .filter((stream) => shards.has(shardOf(stream, of))),
    );
    const fresh = [...streams];
    for (let at = 0; at < fresh.length; at += sagaLimits.fillAtOnce) {
      signal.throwIfAborted();
      await Promise.all(fresh.slice(at, at + sagaLimits.fillAtOnce).map(enter));
    }
    count += fresh.length;
    for (const stream of fresh) recent.add(stream);
    for (const stream of recent) {
      if (recent.size <= sagaLimits.settledMax) break;
      recent.delete(stream);
    }
  }
  return count;
}
