// The event store in MongoDB. It has the `events` collection of the architecture document, and a commit log that gives
// all events one order without gaps (see commit-log.ts).

import type { Db, MongoClient } from 'mongodb';
import { systemClock } from '../../foundation/clock.ts';
import { convertErrors, MillraceError } from '../../foundation/error.ts';
import { silentObserver } from '../../foundation/observer.ts';
import { createEventStore } from '../../store/create-event-store.ts';
import type { EventStore, EventStoreOptions } from '../../store/event-store.ts';
import type { StoreEngine } from '../../store/store-engine.ts';
import { openCommitLog, type CommitLog } from './commit-log.ts';
import { createMongodbAppender } from './appender.ts';
import { connectMongodb, unavailable } from './connection.ts';
import { createMongodbKeys } from './subject-keys.ts';
import { createMongodbListener, type MongodbListener } from './listener.ts';
import { createMongodbReader } from './reader.ts';
import { scavengeMongodb } from './scavenge.ts';
import { checkMongodb, collectionsOf, migrateMongodb } from './collections.ts';
import { createMongodbEventTypes } from './event-types.ts';
import { createStreamStates } from './stream-states.ts';

export interface MongoOptions extends EventStoreOptions {
  /** Default: the database of the URL, or `millrace`; for a `MongoClient`, its default. */
  readonly database?: string | undefined;
  /** The collection of events, and the prefix of the other collections. Default: `events`. */
  readonly collection?: string | undefined;
  /** `auto` (default) creates missing collections and indexes when the store is opened. */
  readonly migrate?: 'auto' | 'off' | undefined;
  /** Pool size of the client that the store creates for a URL. Default: 10. */
  readonly connectionsMax?: number | undefined;
  /**
   * How often an idle live reader polls for events of other processes on a server without change streams; with
   * change streams, a fallback. Default: 250.
   */
  readonly pollIntervalMs?: number | undefined;
}

interface OpenedMongodb {
  readonly store: EventStore;
  readonly db: Db;
  /** A replica set or a sharded cluster, which has transactions and change streams. */
  readonly isReplicated: boolean;
}

export async function mongodbEventStore(
  target: string | MongoClient | Db,
  options: MongoOptions = {},
): Promise<OpenedMongodb> {
  const {
    database,
    collection = 'events',
    migrate = 'auto',
    connectionsMax = 10,
    pollIntervalMs = 250,
    clock = systemClock,
    observer = silentObserver,
  } = options;
  const onFailure = (err: unknown): void =>
    observer.log?.warn({ collection, err }, 'background work failed, retrying');

  const connection = await connectMongodb(target, { database, connectionsMax });
  const collections = collectionsOf(connection.db, collection);
  const types = createMongodbEventTypes(collections.types);
  const states = createStreamStates(collections.events, types, () => log.end);
  let log: CommitLog;
  let listener: MongodbListener;
  let isReplicated: boolean;
  try {
    if (migrate === 'auto') await migrateMongodb(connection.db, collections);
    await checkMongodb(collections);
    const hello = await connection.db.command({ hello: 1 });
    isReplicated = hello['setName'] !== undefined || hello['msg'] === 'isdbgrid';
    listener = createMongodbListener(collections, () => log, {
      hasChangeStreams: isReplicated,
      pollIntervalMs,
      onFailure,
    });
    log = await openCommitLog(collections, {
      onForeign() {
        states.clear();
        types.refresh();
      },
      onMore: () => listener.wakeAll(),
      onFailure,
    });
  } catch (error) {
    await connection[Symbol.asyncDispose]();
    throw unavailable(error);
  }
  const appender = createMongodbAppender({
    collections,
    log,
    states,
    types,
    now: () => clock.now(),
  });
  const reader = createMongodbReader({ collections, log, states, types });

  let closed = false;

  const reading = <T>(read: () => Promise<T>): Promise<T> =>
    convertErrors(read, (error) => (closed ? storeClosed(error) : unavailable(error)));

  const engine: StoreEngine = {
    capabilities: {
      multiStreamAppend: true,
      callerTransaction: false,
      durable: true,
      crossProcess: isReplicated,
    },
    async write(writes, writeOptions) {
      if (closed) throw storeClosed();
      return appender.write(writes, writeOptions);
    },
    readStream: (query) => reading(() => reader.readStream(query)),
    streamStates: (streams) => reading(async () => states.load(streams, await log.advance())),
    readAll: (query) => reading(() => reader.readAll(query)),
    findEvent: (stream, eventId) => reading(() => reader.findEvent(stream, eventId)),
    head: () => reading(async () => (await log.advance()).position),
    whenMore: (after, signal) => listener.whenMore(after, signal),
    scavenge: (scavengeOptions) => scavengeMongodb({ collections, log, states }, scavengeOptions),
    subjectKeys: createMongodbKeys(collections.keys),
    async [Symbol.asyncDispose]() {
      closed = true;
      await appender.drain();
      await listener[Symbol.asyncDispose]();
      await log.close();
      await connection[Symbol.asyncDispose]();
    },
  };
  return { store: createEventStore(engine, options), db: connection.db, isReplicated };
}

function storeClosed(cause?: unknown): MillraceError {
  return new MillraceError('STORE_CLOSED', 'the event store was closed', { cause });
}
