// A writer process of the rig: opens the store when told to, then appends until it is killed, or
// until it has done as much as it was asked for.

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
  /** Operations under way at once. */
  readonly inFlight: number;
  readonly transactionsPercent: number;
  /** In all; without it, for ever. */
  readonly operations?: number;
}

export type WriterMessage =
  | { readonly kind: 'loaded' | 'ready' | 'done' }
  | { readonly kind: 'ok'; readonly count: number };

const input = childInput() as WriterInput;
const told = Promise.withResolvers<void>();
process.once('message', () => told.resolve());
tell({ kind: 'loaded' });
await told.promise;

using history = openHistory(input.history);
await using store = await openStore(input.engine, input.url, { connectionsMax: 4 });
const pool =
  input.transactionsPercent > 0
    ? new pg.Pool({ connectionString: input.url, max: input.inFlight })
    : undefined;
pool?.on('error', () => undefined);
tell({ kind: 'ready' });

let left = input.operations ?? Number.POSITIVE_INFINITY;
let count = 0;
await Promise.all(
  Array.from({ length: input.inFlight }, (_, index) => {
    const settings = { ...input, writer: `${input.name}-${index}` };
    const random = seededRandom(input.seed * 1_000 + index);
    const onOk = (): void => {
      count += 1;
      tell({ kind: 'ok', count });
    };
    const connect = pool === undefined ? {} : { connect: () => checkOut(pool) };
    return runWriter({ store, history, random, settings, onOk, ...connect }, () => left-- > 0);
  }),
);
await pool?.end();
tell({ kind: 'done' });
// The channel to the parent would keep this process.
process.channel?.unref();

function tell(message: WriterMessage): void {
  tellParent(message);
}
