// Many who ask for one thing each, asked for together: one call goes on, and those who come meanwhile share
// the next. A call that fails is made again, until nobody may wait any longer.

import { aborted, type Clock } from '../foundation/clock.ts';

export interface BatchOptions {
  readonly sizeMax: number;
  readonly clock: Clock;
  /** Once it has fired, a call is made once and not again. */
  readonly hurry: AbortSignal;
  readonly onFailure: (error: unknown) => void;
}

const outageMs = { first: 100, max: 5_000 };

export function inBatches<Item, Answer>(
  run: (items: readonly Item[]) => Promise<readonly Answer[]>,
  { sizeMax, clock, hurry, onFailure }: BatchOptions,
): (item: Item) => Promise<Answer> {
  const waiting: { readonly item: Item; readonly asked: PromiseWithResolvers<Answer> }[] = [];
  let isRunning = false;

  async function runAll(): Promise<void> {
    // A turn for those who ask in the same one.
    await Promise.resolve();
    let waitMs = outageMs.first;
    while (waiting.length > 0) {
      const batch = waiting.splice(0, sizeMax);
      try {
        const answers = await run(batch.map(({ item }) => item));
        for (const [at, { asked }] of batch.entries()) asked.resolve(answers[at] as Answer);
        waitMs = outageMs.first;
      } catch (error) {
        onFailure(error);
        if (hurry.aborted) {
          for (const { asked } of batch) asked.reject(aborted(hurry));
          continue;
        }
        waiting.unshift(...batch);
        await clock.sleep(waitMs, hurry).catch(() => undefined);
        waitMs = Math.min(waitMs * 2, outageMs.max);
      }
    }
    isRunning = false;
  }

  return (item) => {
    const asked = Promise.withResolvers<Answer>();
    waiting.push({ item, asked });
    if (!isRunning) {
      isRunning = true;
      void runAll();
    }
    return asked.promise;
  };
}
