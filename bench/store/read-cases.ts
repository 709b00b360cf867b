// Reads a stream, an aggregate with and without a snapshot, and all events.

import { createCommandHandler } from '../../src/aggregates/index.ts';
import { ours, type Case, type Goal, type Runner, type Subject } from '../benchmark.ts';
import { eachInFlight } from '../loops.ts';
import { account } from './account.ts';
import { bigAccount, readAccount } from './fill.ts';
import type { MillraceSubject } from './millrace-store.ts';
import { balanceAfter, streamOf, tenant, type Booking } from './sample-events.ts';
import type { CatchUp, Engine, Reading } from './subject-store.ts';

export interface FilledStores {
  readonly millrace: () => Promise<MillraceSubject>;
  /** Undefined if it could not be installed. */
  readonly emmett: (() => Promise<Reading>) | undefined;
  /** The number of events in each stream. */
  readonly total: number;
  /** The number of events read in one slice of catching up. */
  readonly sliceEvents: number;
}

/** The average number of events after the last snapshot, with a snapshot every 100 events. */
const eventsBehindSnapshot = 50;

export function readCases(engine: Engine, stores: FilledStores): Case[] {
  const { millrace, emmett, total, sliceEvents } = stores;
  const reading = (subject: string, open: () => Promise<Reading>, run: ReadOnce): Subject => ({
    name: subject,
    setup: async () => ({ run: eachInFlight(1, await checked(await open(), run)) }),
  });
  const both = (run: ReadOnce): Subject[] => [
    reading(ours, millrace, run),
    ...(emmett === undefined ? [] : [reading('emmett', emmett, run)]),
  ];
  const readCase = (name: string, subjects: readonly Subject[], goals: readonly Goal[]): Case => ({
    name: `${name} / ${engine}`,
    measure: 'throughput',
    subjects,
    goals,
  });
  return [
    readCase('read stream 1000', both(readThousand), [{ vs: 'emmett', ratioMin: 2 }]),
    readCase('load aggregate 10000', both(loadBig), [{ vs: 'emmett', ratioMin: 2 }]),
    readCase(
      'load aggregate 10000, snapshot',
      [
        { name: ours, setup: async () => withSnapshot(await millrace()) },
        reading('without snapshot', millrace, loadBig),
      ],
      [{ vs: 'without snapshot', ratioMin: 20 }],
    ),
    {
      ...readCase(
        'catch-up 200k',
        [
          catchingUp(ours, async () => (await millrace()).catchUp(total)),
          ...(emmett === undefined
            ? []
            : [catchingUp('emmett', async () => (await emmett()).catchUp(total))]),
        ],
        [{ vs: 'emmett', ratioMin: 5 }],
      ),
      // Whole pages only, because a slice that ends within a page would shift its cost to the next slice.
      batch: sliceEvents,
    },
  ];
}

/** Reads, and returns the result. */
type ReadOnce = (store: Reading) => Promise<number>;

const readThousand: ReadOnce = (store) => store.readStream(streamOf(readAccount.id));
const loadBig: ReadOnce = (store) => store.loadAggregate(bigAccount.id);

/** Every read must return the result of the first, and the first must be correct. */
async function checked(store: Reading, run: ReadOnce): Promise<() => Promise<number>> {
  const events = await store.readStream(streamOf(readAccount.id));
  if (events !== readAccount.events) throw new Error(`${events} events in the stream`);
  const first = await run(store);
  return async () => {
    const again = await run(store);
    if (again !== first) throw new Error(`${again} instead of ${first}`);
    return again;
  };
}

/** The snapshot is in the same database as the events. */
async function withSnapshot(subject: MillraceSubject): Promise<Runner> {
  const { db } = subject;
  const expected = await subject.loadAggregate(bigAccount.id);
  const stream = streamOf(bigAccount.id);
  let balance = 0;
  let eventId = '';
  const limit = bigAccount.events - eventsBehindSnapshot;
  for await (const event of db.store.readStream(stream, { limit })) {
    balance = balanceAfter(balance, event.type, event.payload as Booking);
    ({ eventId } = event);
  }
  const { codeVersion } = account.snapshot;
  const takenAt = new Date().toISOString();
  const snapshot = { revision: limit - 1, eventId, state: { balance }, codeVersion, takenAt };
  await db.snapshots.save(stream, snapshot);
  const accounts = createCommandHandler(db, account);
  return {
    run: eachInFlight(1, async () => {
      const { state } = await accounts.load({ tenant, id: bigAccount.id });
      if (state.balance !== expected) throw new Error(`${state.balance} instead of ${expected}`);
    }),
    teardown: async () => accounts[Symbol.asyncDispose](),
  };
}

function catchingUp(name: string, open: () => Promise<CatchUp>): Subject {
  return {
    name,
    async setup() {
      const reader = await open();
      return { run: (n) => reader.take(n), teardown: () => reader.close() };
    },
  };
}
