// The event store in KurrentDB (EventStoreDB), through its official client.

import { withinTime } from '../../foundation/async/within-time.ts';
import { systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { silentObserver } from '../../foundation/observer.ts';
import { createEventStore, type EventStoreOptions } from '../../store/create-event-store.ts';
import { decodeRows } from '../../store/recorded-event.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { SubjectKeys } from '../../store/erasure.ts';
import type { StoreEngine } from '../../store/store-engine.ts';
import { consumeGroup, type ConsumeOptions, type Delivery } from './competing-consumers.ts';
import { hasMultiStreamAppend, type Client } from './client.ts';
import { connectKurrentdb } from './connection.ts';
import { storeClosed } from './errors.ts';
import { createKurrentdbAppender } from './appender.ts';
import { createKurrentdbKeys } from './subject-keys.ts';
import { createKurrentdbListener } from './listener.ts';
import { createKurrentdbReader } from './reader.ts';

export interface KurrentOptions extends EventStoreOptions {
  /**
   * Stores the keys of data subjects. Default: streams of the server, which deletes the bytes of a forgotten key
   * with its next scavenge, and from backups later.
   */
  readonly keys?: SubjectKeys | undefined;
  /** How often live readers poll in addition to the server's notifications. Default: 5,000. */
  readonly pollIntervalMs?: number | undefined;
}

export interface KurrentdbEventStore extends EventStore {
  /** Distributes events among consumers through a persistent subscription of the server. */
  consume(options: ConsumeOptions): AsyncIterable<Delivery>;
}

const openMsMax = 5_000;

export async function kurrentdbEventStore(
  target: string | Client,
  options: KurrentOptions = {},
): Promise<KurrentdbEventStore> {
  const {
    keys,
    pollIntervalMs = 5_000,
    names = 'strict',
    clock = systemClock,
    observer = silentObserver,
  } = options;
  const onFailure = (err: unknown): void =>
    observer.log?.warn({ err }, 'connection lost, reconnecting');

  const connection = await connectKurrentdb(target, onFailure);
  let multiStreamAppend: boolean;
  try {
    // The client has no limit for a server that accepts the connection and does not respond.
    const late = (): never => {
      throw new MillraceError('STORE_UNAVAILABLE', `KurrentDB did not respond in ${openMsMax} ms`);
    };
    const opening = connection.request(hasMultiStreamAppend);
    multiStreamAppend = await withinTime(opening, { ms: openMsMax, late });
  } catch (error) {
    await connection[Symbol.asyncDispose]();
    throw error;
  }
  const listener = createKurrentdbListener(connection, { pollIntervalMs, onFailure });
  const reader = createKurrentdbReader(connection, { names, seen: () => listener.seen() });
  const write = createKurrentdbAppender({
    connection,
    reader,
    onAppended: () => listener.wakeAll(),
  });
  const subjectKeys = keys ?? createKurrentdbKeys(connection);

  const engine: StoreEngine = {
    capabilities: {
      multiStreamAppend,
      callerTransaction: false,
      durable: true,
      crossProcess: true,
      scavenge: false,
      // The client's bridge truncates event times to seconds.
      exactTimes: false,
      // The server hides events from reads of the stream as soon as retention covers them.
      everyLiveEvent: false,
    },
    write,
    readStream: (query) => reader.readStream(query),
    readAll: (query) => reader.readAll(query),
    findEvent: (stream, eventId) => reader.findEvent(stream, eventId),
    streamState: (stream) => reader.streamState(stream),
    head: async () => Math.max(await reader.head(), listener.seen() ?? 0),
    whenMore: (after, signal) => listener.whenMore(after, signal),
    async scavenge() {
      throw new MillraceError(
        'NOT_SUPPORTED',
        'KurrentDB scavenges the whole database: start a scavenge on the server, or schedule it there',
        { details: { capability: 'scavenge' } },
      );
    },
    subjectKeys,
    async [Symbol.asyncDispose]() {
      await listener[Symbol.asyncDispose]();
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
