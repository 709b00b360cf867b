// The event store in KurrentDB (EventStoreDB), through its official client.

import { withinTime } from '../../foundation/async/within-time.ts';
import { systemClock, type Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { silentObserver } from '../../foundation/observer.ts';
import { createEventStore } from '../../store/create-event-store.ts';
import type { EventStore, EventStoreOptions } from '../../store/event-store.ts';
import type { SubjectKeys } from '../../store/erasure.ts';
import type { StoreEngine } from '../../store/store-engine.ts';
import { consumeGroup, type ConsumeOptions, type Delivery } from './competing-consumers.ts';
import { serverVersion, type Client } from './client.ts';
import { connectKurrentdb, type KurrentdbConnection } from './connection.ts';
import { isKind, unavailable } from './errors.ts';
import { createKurrentdbAppender } from './appender.ts';
import { createKurrentdbKeys } from './subject-keys.ts';
import { createKurrentdbTail } from './live-tail.ts';
import { createKurrentdbReader, type KurrentdbReader } from './reader.ts';

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

export interface KurrentEngine extends AsyncDisposable {
  readonly store: KurrentdbEventStore;
}

const openMsMax = 5_000;
/** A server that starts rejects requests for some seconds. */
const starting = { waitMs: 250, attemptsMax: 120 } as const;

/**
 * Opens KurrentDB or EventStoreDB, by URL or with your client. Your client is left open, and is not replaced when it
 * fails.
 *
 * Do not load the older client, `@eventstore/db-client`, into the same process: both register their messages under
 * the same global names.
 *
 * @example
 * import { openKurrent } from 'millrace/engines/kurrentdb';
 *
 * await using db = await openKurrent('kurrentdb://localhost:2113?tls=false');
 * for await (const { event, ack } of db.store.consume({ group: 'mailer' })) {
 *   console.log(event.type);
 *   await ack();
 * }
 */
export async function openKurrent(
  target: string | Client,
  options: KurrentOptions = {},
): Promise<KurrentEngine> {
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
  const reader = createKurrentdbReader(connection, names);
  try {
    await opened(connection, reader, clock);
  } catch (error) {
    await connection[Symbol.asyncDispose]();
    throw error;
  }
  const { readAll } = reader;
  const tail = createKurrentdbTail(connection, { readAll, pollIntervalMs, onFailure });
  const write = createKurrentdbAppender({ connection, reader, onAppended: tail.notify });
  const subjectKeys = keys ?? createKurrentdbKeys({ connection, reader, write });

  const engine: StoreEngine = {
    capabilities: {
      multiStreamAppend: false,
      callerTransaction: false,
      durable: true,
      crossProcess: true,
      scavenge: false,
      // The client's bridge truncates event times to seconds.
      exactTimes: false,
      // The server hides events from reads of the stream as soon as retention covers them; all events have them.
      hiddenEvents: false,
      exactDuplicates: false,
      positionUnit: 'bytes',
    },
    write,
    ...reader,
    readAll: async (query) => tail.read(query) ?? readAll(query),
    whenMore: tail.whenMore,
    async scavenge() {
      throw new MillraceError(
        'NOT_SUPPORTED',
        'KurrentDB scavenges the whole database: start a scavenge on the server, or schedule it there',
        { details: { capability: 'scavenge' } },
      );
    },
    subjectKeys,
    async [Symbol.asyncDispose]() {
      await tail[Symbol.asyncDispose]();
      await connection[Symbol.asyncDispose]();
    },
  };
  const consume = (about: ConsumeOptions): AsyncIterable<Delivery> =>
    consumeGroup({ connection, subjectKeys, names, onFailure }, about);
  const store = Object.assign(createEventStore(engine, options), { consume });
  return { store, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() };
}

async function opened(
  connection: KurrentdbConnection,
  reader: KurrentdbReader,
  clock: Clock,
): Promise<void> {
  let isLate = false;
  // The client has no limit for a server that accepts the connection and does not respond.
  const late = (): never => {
    isLate = true;
    throw new MillraceError('STORE_UNAVAILABLE', `KurrentDB did not respond in ${openMsMax} ms`);
  };
  await withinTime(connection.use(serverVersion), { ms: openMsMax, late });
  for (let attempt = 1; ; attempt += 1) {
    try {
      // Appends compare their positions with this one.
      await withinTime(reader.head(), { ms: openMsMax, late });
      return;
    } catch (error) {
      if (isKind(error, 'access-denied')) return checkUser(reader);
      // A server that starts responds with its version and rejects reads; the native connection hides the reason.
      const mayPass = unavailable(error).retryable && !isLate;
      if (!mayPass || attempt === starting.attemptsMax) throw error;
      await clock.sleep(starting.waitMs);
    }
  }
}

/** A user who may only append to some streams cannot read all events; a wrong password fails here. */
async function checkUser(reader: KurrentdbReader): Promise<void> {
  try {
    await reader.hiddenRevision('millrace.probe');
  } catch (error) {
    if (!isKind(error, 'access-denied')) throw error;
  }
}
