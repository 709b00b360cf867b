// The event store in KurrentDB (EventStoreDB), through its official client.

import { systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { silentObserver } from '../../foundation/observer.ts';
import { createEventStore, type EventStoreOptions } from '../../store/create-event-store.ts';
import { decodeRows } from '../../store/decode-rows.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { StoreEngine, SubjectKeys } from '../../store/store-engine.ts';
import { consumeGroup, type ConsumeOptions, type Delivery } from './competing-consumers.ts';
import { hasMultiStreamAppend, type Client } from './kurrentdb-client.ts';
import { connectKurrentdb } from './kurrentdb-connection.ts';
import { storeClosed } from './kurrentdb-error.ts';
import { createKurrentdbAppender } from './kurrentdb-appender.ts';
import { createKurrentdbKeys } from './kurrentdb-keys.ts';
import { createKurrentdbLive } from './kurrentdb-live.ts';
import { createKurrentdbReader } from './kurrentdb-reader.ts';

export interface KurrentdbOptions extends EventStoreOptions {
  /**
   * Where the keys of data subjects are kept. Default: in streams of the server, which gives a
   * forgotten key's bytes up with its next scavenge, and its backups later.
   */
  readonly keys?: SubjectKeys;
  /** The backstop behind the server's own word that there is more. Default: 5,000. */
  readonly pollIntervalMs?: number;
}

export interface KurrentdbEventStore extends EventStore {
  /** Shares events among consumers, by a persistent subscription of the server's. */
  consume(options: ConsumeOptions): AsyncIterable<Delivery>;
}

/**
 * Opens the event store in a KurrentDB or EventStoreDB, by URL or with a client of yours. A client
 * of yours is left open, and is not replaced when it fails.
 *
 * The older client, `@eventstore/db-client`, must not be loaded into the same process: the messages
 * of the two register themselves under the same global names.
 *
 * @example
 * import { kurrentdbEventStore } from 'millrace/adapters/kurrentdb';
 *
 * await using store = await kurrentdbEventStore('kurrentdb://localhost:2113?tls=false');
 * for await (const { event, ack } of store.consume({ group: 'mailer' })) {
 *   console.log(event.type);
 *   await ack();
 * }
 */
export async function kurrentdbEventStore(
  target: string | Client,
  options: KurrentdbOptions = {},
): Promise<KurrentdbEventStore> {
  const {
    keys,
    pollIntervalMs = 5_000,
    names = 'strict',
    clock = systemClock,
    observer = silentObserver,
  } = options;
  const onFailure = (err: unknown): void =>
    observer.log?.warn({ err }, 'the connection to KurrentDB failed and is tried again');

  const connection = await connectKurrentdb(target, onFailure);
  let multiStreamAppend: boolean;
  try {
    multiStreamAppend = await connection.ask(hasMultiStreamAppend);
  } catch (error) {
    await connection[Symbol.asyncDispose]();
    throw error;
  }
  const live = createKurrentdbLive(connection, { pollIntervalMs, onFailure });
  const reader = createKurrentdbReader(connection, { names, seen: () => live.seen() });
  const write = createKurrentdbAppender({ connection, reader, onAppended: () => live.wakeAll() });
  const subjectKeys = keys ?? createKurrentdbKeys(connection);

  const engine: StoreEngine = {
    capabilities: {
      multiStreamAppend,
      callerTransaction: false,
      durable: true,
      crossProcess: true,
      scavenge: false,
      // The client's bridge cuts the time of an event down to seconds.
      exactTimes: false,
    },
    write,
    readStream: (query) => reader.readStream(query),
    readAll: (query) => reader.readAll(query),
    findEvent: (stream, eventId) => reader.findEvent(stream, eventId),
    streamState: (stream) => reader.streamState(stream),
    head: async () => Math.max(await reader.head(), live.seen() ?? 0),
    whenMore: (after, signal) => live.whenMore(after, signal),
    async scavenge() {
      throw new MillraceError(
        'NOT_SUPPORTED',
        'KurrentDB scavenges as a whole: start it there, or let its schedule do it',
        { details: { capability: 'scavenge' } },
      );
    },
    subjectKeys,
    async [Symbol.asyncDispose]() {
      await live[Symbol.asyncDispose]();
      await connection[Symbol.asyncDispose]();
    },
  };
  const store = createEventStore(engine, options);
  return Object.assign(store, {
    async *consume(consumeOptions: ConsumeOptions) {
      if (connection.isClosed) throw storeClosed();
      const decode = (rows: Parameters<typeof decodeRows>[0]) => decodeRows(rows, subjectKeys);
      yield* consumeGroup({ connection, decode, names, clock, onFailure }, consumeOptions);
    },
  });
}
