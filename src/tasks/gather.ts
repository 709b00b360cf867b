// What is asked for while a call is under way goes as one call behind it, in order: nobody waits for a
// timer, and the more there is to do the larger the batches are.

import { taskLimits } from './task-limits.ts';

export interface Gather<Item, Result> {
  add(item: Item): Promise<Result>;
  /** What waits for its turn. */
  readonly waiting: number;
  /** Resolves when nothing is under way. */
  idle(): Promise<void>;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

export function createGather<Item, Result>(
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
  { batchMax = taskLimits.batchMax }: { readonly batchMax?: number } = {},
): Gather<Item, Result> {
  let queue: Waiting<Item, Result>[] = [];
  let working: Promise<void> | undefined;

  async function work(): Promise<void> {
    for (;;) {
      // What the same turn of the event loop asks for belongs to one call: also what follows from it by
      // way of promises, such as the claim of those that have just made room.
      await new Promise<void>((resolve) => process.nextTick(resolve));
      if (queue.length === 0) break;
      const batch = queue.slice(0, batchMax);
      queue = queue.slice(batchMax);
      try {
        const results = await run(batch.map(({ item }) => item));
        for (const [at, { resolve }] of batch.entries()) resolve(results[at] as Result);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    working = undefined;
  }

  return {
    get waiting() {
      return queue.length;
    },
    add(item) {
      return new Promise((resolve, reject) => {
        queue.push({ item, resolve, reject });
        working ??= work();
      });
    },
    async idle() {
      await working;
    },
  };
}
