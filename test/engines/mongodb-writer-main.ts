// A process with several writers that append until they are killed or have done all their operations.
// Every call and its outcome is recorded in a file outside the store.

import { openMongo } from '../../src/engines/mongodb/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { openHistory } from '../../src/testing/history-file.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import { runWriter } from '../store/operations.ts';

export interface WriterInput {
  readonly url: string;
  readonly database: string;
  readonly history: string;
  readonly name: string;
  readonly seed: number;
  readonly writers: number;
  /** The total number of operations; unlimited by default. */
  readonly operations?: number | undefined;
}

export type WriterMessage =
  | { readonly kind: 'loaded' }
  | { readonly kind: 'done' }
  | { readonly kind: 'ok'; readonly count: number };

const { url, database, name, seed, writers, operations, ...input } = childInput() as WriterInput;
report({ kind: 'loaded' });
using history = openHistory(input.history);
await using engine = await openMongo(url, { database, connectionsMax: 4 });
const { store } = engine;
let left = operations ?? Number.POSITIVE_INFINITY;
let count = 0;
await Promise.all(
  Array.from({ length: writers }, (_, index) => {
    const settings = { writer: `${name}-${index}`, streams: 6, transactionsPercent: 0 };
    const random = seededRandom(seed * 1_000 + index);
    const onOk = (): void => {
      count += 1;
      report({ kind: 'ok', count });
    };
    return runWriter({ store, history, random, settings, onOk }, () => left-- > 0);
  }),
);
report({ kind: 'done' });
process.channel?.unref();

function report(message: WriterMessage): void {
  tellParent(message);
}
