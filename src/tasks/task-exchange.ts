// The one way of a process to its engine's records: changes that come together go together, and a claim
// goes along with them.

import { createGather } from './gather.ts';
import type { ChangeOutcome, ClaimRequest, TaskChange, TaskEngine } from './task-engine.ts';
import type { StoredTask } from './task-job.ts';

export interface TaskExchange {
  change(change: TaskChange): Promise<ChangeOutcome>;
  /** With the changes that are about to go; undefined: there were none, or another claim went. */
  claimAlong(request: ClaimRequest): Promise<readonly StoredTask[] | undefined>;
  idle(): Promise<void>;
}

type Item =
  | { readonly change: TaskChange; readonly claim?: undefined }
  | { readonly claim: ClaimRequest; readonly change?: undefined };
type Answer = ChangeOutcome | readonly StoredTask[] | undefined;

export function createTaskExchange(engine: TaskEngine, now: () => number): TaskExchange {
  const send = async (items: readonly Item[]): Promise<readonly Answer[]> => {
    const changes = items.flatMap(({ change }) => (change === undefined ? [] : [change]));
    const claims = items.flatMap(({ claim }) => (claim === undefined ? [] : [claim]));
    const { outcomes, claimed } = await engine.exchange(changes, claims[0], now());
    const results = outcomes.values();
    let isGiven = false;
    return items.map(({ change }): Answer => {
      if (change !== undefined) return results.next().value ?? { kind: 'stale', head: undefined };
      // A call takes one claim along.
      const own = isGiven ? undefined : claimed;
      isGiven = true;
      return own;
    });
  };
  const gather = createGather<Item, Answer>(send, {
    callsMax: engine.callsAtOnce ?? 1,
    // What is said of a job is stored in the order in which it was said.
    keyOf: ({ change }) => change?.id,
  });

  return {
    change: (change) => gather.add({ change }) as Promise<ChangeOutcome>,
    async claimAlong(request) {
      if (gather.waiting === 0) return undefined;
      return gather.add({ claim: request }) as Promise<readonly StoredTask[] | undefined>;
    },
    idle: () => gather.idle(),
  };
}
