// Benchmark of subscriptions, including checkpoints, compared with Emmett's processors: all events of a store
// through an empty handler (`in batches`: one that takes several events at once), and through one that
// maintains a read model. Events are counted: 200,000 in the full run, 12,000 in the
// quick one.

import { existsSync } from 'node:fs';
import { startSubscription, subscription } from '../src/subscriptions/index.ts';
import {
  ours,
  type Benchmark,
  type BenchmarkContext,
  type Case,
  type Subject,
} from './benchmark.ts';
import { openEmmett } from './store/emmett-store.ts';
import { fill } from './store/fill.ts';
import { openMillrace, type MillraceSubject } from './store/millrace-store.ts';
import { createDatabases, type NewDatabase } from './store/databases.ts';
import { engines, type Appending, type Engine } from './store/subject-store.ts';
import { readModelCases } from './subscriptions/read-model-cases.ts';

const emmettSqlite = '@event-driven-io/emmett-sqlite';

export const benchmark: Benchmark = {
  name: 'subscriptions',
  get peers() {
    return [
      '@event-driven-io/emmett-postgresql',
      ...(isEmmettThere('sqlite') ? [emmettSqlite] : []),
    ];
  },
  url: import.meta.url,
  cases: (context) => {
    const newDatabase = createDatabases(context);
    return [
      ...engines.map((engine) => noOpCase(engine, newDatabase, context)),
      ...readModelCases(newDatabase, context, isEmmettThere),
    ];
  },
};

function noOpCase(
  engine: Engine,
  newDatabase: NewDatabase,
  { quick, defer }: BenchmarkContext,
): Case {
  const total = quick ? 12_000 : 200_000;
  /** Opened and filled by the first subject that needs it, and closed after the last case. */
  const filled = <Store extends Appending>(
    open: (engine: Engine, address: string) => Promise<Store>,
  ): (() => Promise<Store>) => {
    let opened: Promise<Store> | undefined;
    const openFilled = async (): Promise<Store> => {
      const store = await open(engine, await newDatabase(engine));
      await fill(store, total);
      return store;
    };
    defer(async () => (await opened?.catch(() => undefined))?.close());
    return () => (opened ??= openFilled());
  };
  const millrace = filled(openMillrace);
  const emmett = filled(openEmmett);
  return {
    name: `subscription, no-op handler / ${engine}`,
    measure: 'throughput',
    // Measures a whole subscription, including its start, checkpoints and stop.
    batch: total,
    goals: [{ vs: 'emmett', ratioMin: 5 }],
    subjects: [
      { name: ours, setup: async () => ({ run: handleAll(await millrace(), 'handler') }) },
      {
        name: 'millrace, in batches',
        setup: async () => ({ run: handleAll(await millrace(), 'batchHandler') }),
      },
      ...(isEmmettThere(engine) ? [emmettSubject(emmett, total)] : []),
    ],
  };
}

let runs = 0;

/** Runs a new subscription from the first event until its checkpoint has passed the last one. */
function handleAll({ db }: MillraceSubject, kind: 'handler' | 'batchHandler') {
  return async (total: number): Promise<number> => {
    runs += 1;
    let count = 0;
    const name = `sub:bench:run-${String.fromCharCode(97 + (runs % 26))}:v${runs}`;
    const definition =
      kind === 'handler'
        ? { name, handler: async () => void (count += 1) }
        : { name, batchHandler: async ({ length }: { length: number }) => void (count += length) };
    const runner = await startSubscription(db, subscription(definition));
    await runner.whenCaughtUp();
    await runner.stop();
    if (count !== total) throw new Error(`${count} of ${total} events were handled`);
    return count;
  };
}

function emmettSubject(open: () => ReturnType<typeof openEmmett>, total: number): Subject {
  return {
    name: 'emmett',
    async setup() {
      const reader = (await open()).catchUp(total);
      return { run: (n) => reader.take(n), teardown: () => reader.close() };
    },
  };
}

/** Emmett's SQLite driver must be compiled on platforms without a binary, so it may be missing. */
function isEmmettThere(engine: Engine): boolean {
  const driver = new URL('node_modules/sqlite3/package.json', import.meta.url);
  return engine === 'postgres' || existsSync(driver);
}
