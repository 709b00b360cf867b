// Ready-made `run` functions: loops over prepared inputs, concurrent operations, timed operations.

import type { Runner } from './benchmark.ts';

type Run = Runner['run'];

const keptMax = 8;
let loops = 0;

/**
 * Calls a synchronous operation on one item after the other, in a cycle. The results are stored in an
 * array, so that the compiler cannot remove the work.
 *
 * @example
 * const runner = { run: each(streamNames, (stream) => parseStreamName(stream)) };
 */
export function each<Item>(items: readonly Item[], operation: (item: Item) => unknown): Run {
  loops += 1;
  // V8 optimises a shared loop for its first subject, which makes it slow for the others. Each subject
  // gets its own function; the number prevents V8 from reusing cached code.
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

/** Keeps `inFlight` asynchronous operations running until `n` are done. */
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

/** For latency cases: one operation after the other, each timed separately. */
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
