// The event store in MongoDB: the document's `events` collection, and a log of commits beside it
// that gives all events one order without holes (see commit-log.ts).

import type { Db, MongoClient } from 'mongodb';
import { aborted, systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { silentObserver } from '../../foundation/observer.ts';
import { createEventStore, type EventStoreOptions } from '../../store/create-event-store.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { StoreEngine } from '../../store/store-engine.ts';
import { openCommitLog, type CommitLog } from './commit-log.ts';
import { createMongodbAppender } from './mongodb-appender.ts';
import { connectMongodb, unavailable } from './mongodb-connection.ts';
import { createMongodbKeys } from './mongodb-keys.ts';
import { createMongodbLive, type MongodbLive } from './mongodb-live.ts';
import { createMongodbReader } from './mongodb-reader.ts';
import { scavengeMongodb } from './mongodb-scavenge.ts';
import { checkMongodb, collectionsOf, migrateMongodb } from './mongodb-schema.ts';
import { createMongodbTypes } from './mongodb-types.ts';
import { createStreamStates } from './stream-states.ts';

export interface MongodbOptions extends EventStoreOptions {
  /** Default: the URL's, or `millrace`; of a `MongoClient`, its own default. */
  readonly database?: string;
  /** The collection of events; those beside it begin with its name. Default: `events`. */
  readonly collection?: string;
  /** `auto` (default) creates missing collections and indexes when the store is opened. */
  readonly migrate?: 'auto' | 'off';
  /** Of our own client, when a URL is given. Default: 10. */
  readonly connectionsMax?: number;
  /**
   * How long other processes' events may stay unseen by an idle live reader on a server without
   * change streams; with them it is only the backstop. Default: 250.
   */
  readonly pollIntervalMs?: number;
}

/**
 * Opens the event store in a MongoDB database, by URL or with a `MongoClient` or `Db` of yours.
 *
 * @example
 * import { mongodbEventStore } from 'millrace/adapters/mongodb';
 *
 * await using store = await mongodbEventStore('mongodb://localhost:27017/shop');
 * console.log(await store.head());
 */
export async function mongodbEventStore(
  target: string | MongoClient | Db,
  options: MongodbOptions = {},
): Promise<EventStore> {
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
    observer.log?.warn({ collection, err }, 'work in the background failed and is tried again');

  const connection = await connectMongodb(target, { database, connectionsMax });
  const collections = collectionsOf(connection.db, collection);
  const types = createMongodbTypes(collections.types);
  const states = createStreamStates(collections.events, types, () => log.end);
  let log: CommitLog;
  let live: MongodbLive;
  let hasChangeStreams: boolean;
  try {
    if (migrate === 'auto') await migrateMongodb(connection.db, collections);
    await checkMongodb(collections);
    const hello = await connection.db.command({ hello: 1 });
    hasChangeStreams = hello['setName'] !== undefined || hello['msg'] === 'isdbgrid';
    live = createMongodbLive(collections, () => log, {
      hasChangeStreams,
      pollIntervalMs,
      onFailure,
    });
    log = await openCommitLog(collections, {
      onForeign(events) {
        states.follow(events);
        types.refresh();
      },
      isForeignWanted: () => states.size > 0,
      onMore: () => live.wakeAll(),
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

  const reading = async <T>(
    signal: AbortSignal | undefined,
    read: () => Promise<T>,
  ): Promise<T> => {
    if (signal?.aborted === true) throw aborted(signal);
    try {
      return await read();
    } catch (error) {
      throw closed ? storeClosed(error) : unavailable(error);
    }
  };

  const engine: StoreEngine = {
    capabilities: {
      multiStreamAppend: true,
      callerTransaction: false,
      durable: true,
      crossProcess: hasChangeStreams,
    },
    async write(writes, writeOptions) {
      if (closed) throw storeClosed();
      return appender.write(writes, writeOptions);
    },
    readStream: (query) => reading(query.signal, () => reader.readStream(query)),
    readAll: (query) => reading(query.signal, () => reader.readAll(query)),
    findEvent: (stream, eventId) => reading(undefined, () => reader.findEvent(stream, eventId)),
    head: () => reading(undefined, async () => (await log.advance()).position),
    whenMore: (after, signal) => live.whenMore(after, signal),
    scavenge: (scavengeOptions) => scavengeMongodb({ collections, log, states }, scavengeOptions),
    subjectKeys: createMongodbKeys(collections.keys),
    async [Symbol.asyncDispose]() {
      closed = true;
      await appender.drain();
      await live[Symbol.asyncDispose]();
      await log.close();
      await connection[Symbol.asyncDispose]();
    },
  };
  return createEventStore(engine, options);
}

function storeClosed(cause?: unknown): MillraceError {
  return new MillraceError('STORE_CLOSED', 'the event store was closed', { cause });
}
