// Races start, stop and dispose: a service must survive any order of these calls.

import assert from 'node:assert/strict';
import type { Lifecycle } from '../foundation/lifecycle.ts';
import { hasCode } from '../foundation/error.ts';
import { seededRandom } from './seeded-random.ts';

export interface LifecycleStressOptions {
  /** Creates a new service for each round. */
  readonly create: () => Lifecycle;
  /** Throws if a resource is still open (handles, connections, leases). */
  readonly assertReleased?: () => void | Promise<void>;
  readonly rounds?: number;
  readonly seed?: number;
}

/**
 * Runs rounds of random, overlapping starts and stops. After the final stop of each round, no resource may be open and
 * a start must work.
 *
 * @example
 * import { createLifecycle } from 'millrace/foundation';
 * import { stressLifecycle } from 'millrace/testing';
 *
 * await stressLifecycle({
 *   create: () => createLifecycle({ start: async () => {}, stop: async () => {} }),
 *   rounds: 10,
 * });
 */
export async function stressLifecycle(options: LifecycleStressOptions): Promise<void> {
  const { create, assertReleased, rounds = 500, seed = 1 } = options;
  const random = seededRandom(seed);
  for (let round = 0; round < rounds; round += 1) {
    const service = create();
    const calls: Promise<void>[] = [];
    for (let call = 0; call < 2 + random.below(6); call += 1) {
      const kind = random.below(5);
      if (kind < 2) calls.push(startOrStopped(service));
      else if (kind < 4) calls.push(service.stop());
      else await yieldTurns(random.below(4));
    }
    await Promise.all(calls);
    await service.stop();
    assert.equal(service.state, 'stopped', `round ${round} of seed ${seed}: not stopped`);
    await assertReleased?.();
    await service.start();
    assert.equal(service.state, 'started', `round ${round} of seed ${seed}: not started again`);
    await service[Symbol.asyncDispose]();
    await assertReleased?.();
  }
}

/** A concurrent stop may abort a start. */
async function startOrStopped(service: Lifecycle): Promise<void> {
  try {
    await service.start();
  } catch (error) {
    if (!hasCode(error, 'LIFECYCLE_STOPPED') && !hasCode(error, 'ABORTED')) throw error;
  }
}

async function yieldTurns(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate);
}
