// Emmett with its fastest settings: large batches for its consumers without a pause between them. On SQLite
// all calls share one connection, because with the default of one per call most concurrent appends fail.

import { randomUUID } from 'node:crypto';
import { importPeer } from '../peers.ts';
import type {
  Dumbo,
  EmmettConsumer,
  EmmettMessage,
  EmmettPostgres,
  EmmettProcessor,
  EmmettSqlite,
  EmmettStore,
} from './emmett-types.ts';
import { countRows } from './databases.ts';
import { balanceAfter, streamOf } from './sample-events.ts';
import {
  createSightings,
  inOrder,
  type Appending,
  type CatchUp,
  type Engine,
  type Follower,
  type Reading,
} from './subject-store.ts';

interface Opened {
  readonly store: EmmettStore;
  /** For a consumer that reads while other connections append. */
  readonly second: () => Promise<Opened>;
  readonly close: () => Promise<void>;
}

/** Of 100, 1,000, 5,000 and 10,000, the fastest on both engines. */
const catchUpPulling = { batchSize: 10_000, pullingFrequencyInMs: 0 };
/** A full batch is followed by the next immediately, and a batch of one is always full. */
const livePulling = { batchSize: 1, pullingFrequencyInMs: 0 };

export interface EmmettSubject extends Appending, Reading {
  /** Reads all events from the first, one after the other, and awaits each. */
  consume(total: number, handle: (message: EmmettMessage) => Promise<void>): Promise<void>;
}

export async function openEmmett(engine: Engine, address: string): Promise<EmmettSubject> {
  const opened = await (engine === 'sqlite' ? openSqlite(address) : openPostgres(address));
  const { store } = opened;
  await store.schema.migrate();
  return {
    append: (stream, there, events) =>
      store.appendToStream(
        stream,
        events.map(({ type, data, metadata }) => ({ type, data, metadata })),
        { expectedStreamVersion: BigInt(there) },
      ),
    count: () => countRows(engine, address, 'emt_messages'),
    readStream: async (stream) => (await store.readStream(stream)).events.length,
    async loadAggregate(accountId) {
      const { state } = await store.aggregateStream(streamOf(accountId), {
        initialState: () => ({ balance: 0 }),
        evolve: ({ balance }, { type, data }) => ({ balance: balanceAfter(balance, type, data) }),
      });
      return state.balance;
    },
    catchUp: (total) => catchUp(store, total),
    consume: (total, handle) => consumeAll(store, total, handle),
    follow: async () => follow(await opened.second()),
    close: () => opened.close(),
  };
}

async function openPostgres(url: string): Promise<Opened> {
  const emmett = await importPeer<EmmettPostgres>('@event-driven-io/emmett-postgresql');
  const { dumbo } = await importPeer<{
    dumbo: (options: { readonly connectionString: string }) => Dumbo;
  }>('@event-driven-io/dumbo');
  const pool = dumbo({ connectionString: url });
  const store = emmett.getPostgreSQLEventStore(url, {
    connectionOptions: { dumbo: pool },
    schema: { autoMigration: 'None' },
  });
  const opened: Opened = {
    store,
    // Every transaction has its own connection.
    second: async () => ({ ...opened, close: async () => undefined }),
    close: () => pool.close(),
  };
  return opened;
}

async function openSqlite(fileName: string): Promise<Opened> {
  const emmett = await importPeer<EmmettSqlite>('@event-driven-io/emmett-sqlite');
  const connection = emmett.sqliteConnection({ fileName });
  await connection.command('PRAGMA synchronous = FULL');
  await connection.command('PRAGMA busy_timeout = 10000');
  const store = emmett.getSQLiteEventStore({
    fileName,
    connectionOptions: { singleton: true, connection },
    schema: { autoMigration: 'None' },
  });
  return {
    store,
    // On a shared connection, appends and the consumer would end each other's transactions.
    second: () => openSqlite(fileName),
    close: async () => connection.close(),
  };
}

/** A consumer with an empty handler, which blocks between slices. */
function catchUp(store: EmmettStore, total: number): CatchUp {
  const check = inOrder(total);
  let consuming: Promise<void> | undefined;
  let left = 0;
  let paused = Promise.withResolvers<void>();
  let resumed = Promise.withResolvers<void>();
  let closing = false;
  let last = -1;

  const eachMessage = async ({ data }: EmmettMessage): Promise<{ type: 'STOP' } | undefined> => {
    check(data.number);
    last = data.number;
    left -= 1;
    if (left === 0) {
      paused.resolve();
      await resumed.promise;
    }
    return closing || last === total - 1 ? { type: 'STOP' } : undefined;
  };

  const consume = async (): Promise<void> => {
    while (!closing) {
      await consumerOf(store, catchUpPulling, { startFrom: 'BEGINNING', eachMessage }).start();
      // The consumer ends without an error when its handler fails.
      if (!closing && last !== total - 1) throw new Error(`emmett stopped after event ${last}`);
    }
  };

  return {
    async take(count) {
      left = count;
      paused = Promise.withResolvers();
      resumed.resolve();
      resumed = Promise.withResolvers();
      consuming ??= consume();
      await Promise.race([paused.promise, consuming]);
    },
    async close() {
      closing = true;
      resumed.resolve();
      await consuming;
    },
  };
}

async function consumeAll(
  store: EmmettStore,
  total: number,
  handle: (message: EmmettMessage) => Promise<void>,
): Promise<void> {
  let count = 0;
  const eachMessage = async (message: EmmettMessage): Promise<{ type: 'STOP' } | undefined> => {
    await handle(message);
    count += 1;
    return count === total ? { type: 'STOP' } : undefined;
  };
  await consumerOf(store, catchUpPulling, { startFrom: 'BEGINNING', eachMessage }).start();
  // The consumer ends without an error when its handler fails.
  if (count !== total) throw new Error(`emmett stopped after ${count} of ${total} events`);
}

async function follow({ store, close }: Opened): Promise<Follower> {
  const sightings = createSightings();
  const consumer = consumerOf(store, livePulling, {
    startFrom: 'END',
    eachMessage: async ({ data }) => {
      sightings.seen(data.number);
      return undefined;
    },
  });
  const consuming = consumer.start();
  return {
    whenSeen: (number) => sightings.whenSeen(number),
    async close() {
      await consumer.stop();
      await consuming;
      await close();
    },
  };
}

function consumerOf(
  store: EmmettStore,
  pulling: { readonly batchSize: number; readonly pullingFrequencyInMs: number },
  options: Omit<EmmettProcessor, 'processorId'>,
): EmmettConsumer {
  const consumer = store.consumer({ pulling });
  const processor = { ...options, processorId: randomUUID() };
  if (consumer.reactor === undefined) consumer.processor?.(processor);
  else consumer.reactor(processor);
  return consumer;
}
