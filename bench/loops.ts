// Ready-made `run` functions: over prepared inputs, with operations in flight, with timed operations.

import type { Runner } from './benchmark.ts';

type Run = Runner['run'];

const keptMax = 8;
let loops = 0;

/**
 * Does a synchronous operation on one item after the other, round and round. What it returns
 * escapes into an array, so that the compiler cannot leave the work out.
 *
 * @example
 * const runner = { run: each(streamNames, (stream) => parseStreamName(stream)) };
 */
export function each<Item>(items: readonly Item[], operation: (item: Item) => unknown): Run {
  loops += 1;
  // A loop that several subjects share is optimised for the first of them and slow for the rest.
  // Each gets code of its own; the number keeps the engine's cache from taking two for one.
  // oxlint-disable-next-line typescript/no-implied-eval, no-new-func -- the text is constant
  const makeLoop = new Function(
    'items',
    'operation',
    `// loop ${loops}
    const kept = new Array(${keptMax}).fill(undefined);
    const length = items.length;
    let at = 0;
    return (n) => {
      for (let done = 0; done < n; done += 1) {
        kept[done & ${keptMax - 1}] = operation(items[at]);
        at = at + 1 === length ? 0 : at + 1;
      }
      return kept;
    };`,
  ) as (items: readonly Item[], operation: (item: Item) => unknown) => Run;
  return makeLoop(items, operation);
}

/** Keeps `inFlight` asynchronous operations under way until `n` are done. */
export function eachInFlight(
  inFlight: number,
  operation: (index: number) => Promise<unknown>,
): Run {
  let next = 0;
  return async (n) => {
    const end = next + n;
    let kept: unknown;
    const worker = async (): Promise<void> => {
      while (next < end) {
        const index = next;
        next += 1;
        kept = await operation(index);
      }
    };
    await Promise.all(Array.from({ length: Math.min(inFlight, n) }, worker));
    return kept;
  };
}

/** For latency cases: one operation after the other, each timed from its call to its end. */
export function timed(operation: (index: number) => unknown): Run {
  let next = 0;
  return async (n, record) => {
    let kept: unknown;
    for (let done = 0; done < n; done += 1) {
      const startedAt = performance.now();
      kept = await operation(next);
      record(performance.now() - startedAt);
      next += 1;
    }
    return kept;
  };
}
