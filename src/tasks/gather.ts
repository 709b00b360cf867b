// What is asked for while as many calls are under way as may be goes as one call behind them: nobody waits
// for a timer, and the more there is to do the larger the batches are. What has the same key goes in order.

import { taskLimits } from './task-limits.ts';

export interface Gather<Item, Result> {
  add(item: Item): Promise<Result>;
  /** What waits for its turn. */
  readonly waiting: number;
  /** Resolves when nothing is under way. */
  idle(): Promise<void>;
}

export interface GatherOptions<Item> {
  readonly batchMax?: number | undefined;
  /** Calls under way at once. Default: 1. */
  readonly callsMax?: number | undefined;
  /** Of two items with the same one, the second goes when the call of the first is over. */
  readonly keyOf?: ((item: Item) => string | undefined) | undefined;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly key: string | undefined;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

export function createGather<Item, Result>(
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
  {
    batchMax = taskLimits.batchMax,
    callsMax = 1,
    keyOf = () => undefined,
  }: GatherOptions<Item> = {},
): Gather<Item, Result> {
  let queue: Waiting<Item, Result>[] = [];
  const busy = new Set<string>();
  const working = new Set<Promise<void>>();
  let workers = 0;

  /** Of one key all that wait go together, or stay together. */
  function take(): readonly Waiting<Item, Result>[] {
    const isFree = ({ key }: Waiting<Item, Result>): boolean => key === undefined || !busy.has(key);
    if (busy.size === 0) {
      const batch = queue.slice(0, batchMax);
      queue = queue.slice(batchMax);
      return batch;
    }
    const batch: Waiting<Item, Result>[] = [];
    const rest: Waiting<Item, Result>[] = [];
    for (const each of queue) (batch.length < batchMax && isFree(each) ? batch : rest).push(each);
    queue = rest;
    return batch;
  }

  async function call(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    const keys = new Set(batch.flatMap(({ key }) => key ?? []));
    for (const key of keys) busy.add(key);
    try {
      const results = await run(batch.map(({ item }) => item));
      for (const [at, { resolve }] of batch.entries()) resolve(results[at] as Result);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    } finally {
      for (const key of keys) busy.delete(key);
    }
  }

  async function work(): Promise<void> {
    for (;;) {
      // What the same turn of the event loop asks for belongs to one call: also what follows from it by
      // way of promises, such as the claim of those that have just made room.
      await new Promise<void>((resolve) => process.nextTick(resolve));
      const batch = take();
      if (batch.length === 0) {
        // At once: whoever adds something in the next moment begins another one.
        workers -= 1;
        return;
      }
      await call(batch);
    }
  }

  /** Nothing that waits is left behind: whoever has the last of its key under way looks again. */
  function begin(): void {
    if (workers >= callsMax) return;
    workers += 1;
    const one: Promise<void> = work().finally(() => working.delete(one));
    working.add(one);
  }

  return {
    get waiting() {
      return queue.length;
    },
    add(item) {
      return new Promise((resolve, reject) => {
        queue.push({ item, key: keyOf(item), resolve, reject });
        begin();
      });
    },
    async idle() {
      while (working.size > 0) await Promise.all(working);
    },
  };
}
