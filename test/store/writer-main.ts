// A writer process: opens the store after a message from the parent, then appends until it is killed or
// has done all its operations.

import pg from 'pg';
import { checkOut } from '../../src/engines/postgres/connection/connection.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { openHistory } from '../../src/testing/history-file.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import { runWriter } from './operations.ts';
import { openStore, type EngineName } from './rig.ts';

export interface WriterInput {
  readonly engine: EngineName;
  readonly url: string;
  readonly history: string;
  readonly name: string;
  readonly seed: number;
  readonly streams: number;
  /** The number of concurrent operations. */
  readonly inFlight: number;
  readonly transactionsPercent: number;
  /** The total number of operations; unlimited by default. */
  readonly operations?: number | undefined;
}

export type WriterMessage =
  | { readonly kind: 'loaded' | 'ready' | 'done' }
  | { readonly kind: 'ok'; readonly count: number };

const input = childInput() as WriterInput;
const startMessage = Promise.withResolvers<void>();
process.once('message', () => startMessage.resolve());
report({ kind: 'loaded' });
await startMessage.promise;

using history = openHistory(input.history);
await using store = await openStore(input.engine, input.url, { connectionsMax: 4 });
const pool =
  input.transactionsPercent > 0
    ? new pg.Pool({ connectionString: input.url, max: input.inFlight })
    : undefined;
pool?.on('error', () => undefined);
report({ kind: 'ready' });

let left = input.operations ?? Number.POSITIVE_INFINITY;
let count = 0;
await Promise.all(
  Array.from({ length: input.inFlight }, (_, index) => {
    const settings = { ...input, writer: `${input.name}-${index}` };
    const random = seededRandom(input.seed * 1_000 + index);
    const onOk = (): void => {
      count += 1;
      report({ kind: 'ok', count });
    };
    const connect = pool && (() => checkOut(pool));
    return runWriter({ store, history, random, settings, onOk, connect }, () => left-- > 0);
  }),
);
await pool?.end();
report({ kind: 'done' });
// An open channel to the parent would keep this process alive.
process.channel?.unref();

function report(message: WriterMessage): void {
  tellParent(message);
}
