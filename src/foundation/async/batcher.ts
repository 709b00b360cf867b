// Batches concurrent calls without a timer: while the allowed number of calls is running, new items wait and share the next
// call, so batches grow with the load. Items with the same key are processed in order.

export interface Batcher<Item, Result> {
  add(item: Item): Promise<Result>;
  /** Items that wait for a call. */
  readonly waiting: number;
  /** Resolves when no call is running. */
  idle(): Promise<void>;
}

export interface BatcherOptions<Item> {
  readonly batchMax: number;
  /** Concurrent calls. Default: 1. */
  readonly callsMax?: number | undefined;
  /** An item waits until the call of an earlier item with the same key has ended. */
  readonly keyOf?: ((item: Item) => string | undefined) | undefined;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly key: string | undefined;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

export function createBatcher<Item, Result>(
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
  { batchMax, callsMax = 1, keyOf = () => undefined }: BatcherOptions<Item>,
): Batcher<Item, Result> {
  let queue: Waiting<Item, Result>[] = [];
  const busy = new Set<string>();
  const working = new Set<Promise<void>>();
  let workers = 0;

  /** All waiting items of one key are taken together, or none. */
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
      // Items of one turn of the event loop share a call, including items that follow by promises, such as the
      // claim after jobs have ended.
      await new Promise<void>((resolve) => process.nextTick(resolve));
      const batch = take();
      if (batch.length === 0) {
        // Synchronously: an item that is added next starts a new worker.
        workers -= 1;
        return;
      }
      await call(batch);
    }
  }

  /** No waiting item is missed: the worker that runs the last call of a key takes the next batch after it. */
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
