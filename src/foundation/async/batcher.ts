// Batches concurrent calls without a timer: while a call is running, new items wait and share the next call, so batches
// grow with the load. Items are processed in order.

export interface Batcher<Item, Result> {
  add(item: Item): Promise<Result>;
  /** Resolves when no call is running. */
  idle(): Promise<void>;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

export function createBatcher<Item, Result>(
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
  { batchMax }: { readonly batchMax: number },
): Batcher<Item, Result> {
  let queue: Waiting<Item, Result>[] = [];
  let working: Promise<void> | undefined;

  async function call(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await run(batch.map(({ item }) => item));
      for (const [at, { resolve }] of batch.entries()) resolve(results[at] as Result);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  async function work(): Promise<void> {
    for (;;) {
      // Items of one turn of the event loop share a call, including items that follow by promises.
      await new Promise<void>((resolve) => process.nextTick(resolve));
      const batch = queue.slice(0, batchMax);
      queue = queue.slice(batchMax);
      if (batch.length === 0) {
        // Synchronously: an item that is added next starts to work again.
        working = undefined;
        return;
      }
      await call(batch);
    }
  }

  return {
    add(item) {
      return new Promise((resolve, reject) => {
        queue.push({ item, resolve, reject });
        working ??= work();
      });
    },
    async idle() {
      while (working !== undefined) await working;
    },
  };
}
