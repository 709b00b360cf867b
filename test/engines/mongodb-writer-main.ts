// A process with several writers: appends until it is killed, or until it has done as much as it was
// asked for, and notes outside of the store what it asked for and what it was told.

import { mongodbEventStore } from '../../src/engines/mongodb/index.ts';
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
  /** In all; without it, for ever. */
  readonly operations?: number;
}

export type WriterMessage =
  | { readonly kind: 'loaded' }
  | { readonly kind: 'done' }
  | { readonly kind: 'ok'; readonly count: number };

const { url, database, name, seed, writers, operations, ...input } = childInput() as WriterInput;
tell({ kind: 'loaded' });
using history = openHistory(input.history);
await using store = await mongodbEventStore(url, { database, connectionsMax: 4 });
let left = operations ?? Number.POSITIVE_INFINITY;
let count = 0;
await Promise.all(
  Array.from({ length: writers }, (_, index) => {
    const settings = { writer: `${name}-${index}`, streams: 6, transactionsPercent: 0 };
    const random = seededRandom(seed * 1_000 + index);
    const onOk = (): void => {
      count += 1;
      tell({ kind: 'ok', count });
    };
    return runWriter({ store, history, random, settings, onOk }, () => left-- > 0);
  }),
);
tell({ kind: 'done' });
process.channel?.unref();

function tell(message: WriterMessage): void {
  tellParent(message);
}
