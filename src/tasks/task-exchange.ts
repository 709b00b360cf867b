// The connection of a process to the records of its engine: concurrent changes share a call, and a claim joins them.

import { createBatcher } from '../foundation/batcher.ts';
import type { ChangeOutcome, ClaimRequest, TaskChange, TaskEngine } from './task-engine.ts';
import type { StoredTask } from './task-job.ts';
import { taskLimits } from './task-limits.ts';

export interface TaskExchange {
  change(change: TaskChange): Promise<ChangeOutcome>;
  /** Joins waiting changes; undefined: there were none, or another claim joined them first. */
  claimAlong(request: ClaimRequest): Promise<readonly StoredTask[] | undefined>;
  idle(): Promise<void>;
}

type Item =
  | { readonly change: TaskChange; readonly claim?: undefined }
  | { readonly claim: ClaimRequest; readonly change?: undefined };
type ItemResult = ChangeOutcome | readonly StoredTask[] | undefined;

export function createTaskExchange(engine: TaskEngine, now: () => number): TaskExchange {
  const send = async (items: readonly Item[]): Promise<readonly ItemResult[]> => {
    const changes = items.flatMap(({ change }) => (change === undefined ? [] : [change]));
    const claims = items.flatMap(({ claim }) => (claim === undefined ? [] : [claim]));
    const { outcomes, claimed } = await engine.exchange(changes, claims[0], now());
    const results = outcomes.values();
    let isGiven = false;
    return items.map(({ change }): ItemResult => {
      if (change !== undefined) return results.next().value ?? { kind: 'stale', head: undefined };
      // A call contains one claim.
      const own = isGiven ? undefined : claimed;
      isGiven = true;
      return own;
    });
  };
  const batcher = createBatcher<Item, ItemResult>(send, {
    batchMax: taskLimits.batchMax,
    callsMax: engine.callsAtOnce ?? 1,
    // Changes of one job are stored in order.
    keyOf: ({ change }) => change?.id,
  });

  return {
    change: (change) => batcher.add({ change }) as Promise<ChangeOutcome>,
    async claimAlong(request) {
      if (batcher.waiting === 0) return undefined;
      return batcher.add({ claim: request }) as Promise<readonly StoredTask[] | undefined>;
    },
    idle: () => batcher.idle(),
  };
}
