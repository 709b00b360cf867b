// Benchmark of the event store: appending, reading, catching up and following, on SQLite and
// PostgreSQL. Every subject syncs every commit to disk.
//
// Calls are counted, except in `catch-up 200k`, which counts events: one long read, divided into
// slices. The full run reads 200,000 events, the quick run 12,000.

import { existsSync } from 'node:fs';
import { ours, type Benchmark, type BenchmarkContext, type Case } from './benchmark.ts';
import { appendCases, appenders } from './store/append-cases.ts';
import { openEmmett } from './store/emmett-store.ts';
import { fill } from './store/fill.ts';
import { latencyCase, type LatencySubject } from './store/latency-case.ts';
import { memoryCase } from './store/memory-case.ts';
import { openMillrace, openMillraceTwice } from './store/millrace-store.ts';
import { createDatabases, type NewDatabase } from './store/databases.ts';
import { openRaw } from './store/raw-store.ts';
import { readCases } from './store/read-cases.ts';
import { engines, type Appending, type Engine } from './store/subject-store.ts';

const emmettSqlite = '@event-driven-io/emmett-sqlite';

export const benchmark: Benchmark = {
  name: 'store',
  get peers() {
    return [
      '@event-driven-io/emmett-postgresql',
      ...(isEmmettThere('sqlite') ? [emmettSqlite] : []),
    ];
  },
  url: import.meta.url,
  cases: (context) => {
    const newDatabase = createDatabases(context);
    return engines.flatMap((engine) => casesOn(engine, newDatabase, context));
  },
};

function casesOn(engine: Engine, newDatabase: NewDatabase, context: BenchmarkContext): Case[] {
  const { quick, defer } = context;
  const total = quick ? 12_000 : 200_000;
  /** Opened by the first case that needs it, shared by the others, and closed after the last case. */
  const shared = <Store extends Appending>(
    open: (engine: Engine, address: string) => Promise<Store>,
    events = 0,
  ): (() => Promise<Store>) => {
    let opened: Promise<Store> | undefined;
    const openFilled = async (): Promise<Store> => {
      const store = await open(engine, await newDatabase(engine));
      await fill(store, events);
      return store;
    };
    defer(async () => (await opened?.catch(() => undefined))?.close());
    return () => (opened ??= openFilled());
  };
  const written = {
    [ours]: shared(openMillrace),
    emmett: shared(openEmmett),
    'raw insert': shared(openRaw),
  };
  const hasEmmett = isEmmettThere(engine);
  // New stores, because the faster subjects above have more events by now.
  const followed: LatencySubject[] = [
    { name: ours, open: shared(openMillrace) },
    ...(quick ? [] : [{ name: 'millrace, two processes', open: shared(openMillraceTwice) }]),
    ...(hasEmmett ? [{ name: 'emmett', open: shared(openEmmett) }] : []),
  ];
  return [
    ...appendCases(
      engine,
      appenders.filter((subject) => hasEmmett || subject !== 'emmett'),
      (subject) => written[subject as keyof typeof written](),
    ),
    ...readCases(engine, {
      millrace: shared(openMillrace, total),
      emmett: hasEmmett ? shared(openEmmett, total) : undefined,
      total,
      sliceEvents: total / (quick ? 6 : 20),
    }),
    latencyCase(engine, followed),
    ...(quick && engine === 'postgres' ? [] : [memoryCase(engine, newDatabase, { quick })]),
  ];
}

/** Emmett's SQLite driver must be compiled on platforms without a binary, so it may be missing. */
function isEmmettThere(engine: Engine): boolean {
  const driver = new URL('node_modules/sqlite3/package.json', import.meta.url);
  return engine === 'postgres' || existsSync(driver);
}
