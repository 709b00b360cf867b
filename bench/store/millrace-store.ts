// Millrace, opened as documented.

import { openPostgres } from '../../src/engines/postgres/index.ts';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { createCommandHandler, type SnapshotStore } from '../../src/aggregates/index.ts';
import type { ProjectionRoles } from '../../src/projections/index.ts';
import type { DomainEventEnvelope } from '../../src/contracts/index.ts';
import type { EventStore, FeedItem } from '../../src/store/index.ts';
import { account } from './account.ts';
import { countRows } from './databases.ts';
import { tenant, type Booking, type SampleEvent } from './sample-events.ts';
import {
  createSightings,
  inOrder,
  type Appending,
  type CatchUp,
  type Engine,
  type Follower,
  type Reading,
} from './subject-store.ts';

export interface MillraceSubject extends Appending, Reading {
  readonly db: ProjectionRoles & { readonly snapshots: SnapshotStore };
}

export async function openMillrace(engine: Engine, address: string): Promise<MillraceSubject> {
  const db = await (engine === 'sqlite' ? openSqlite(`sqlite:${address}`) : openPostgres(address));
  const { store } = db;
  // Without the snapshots of the engine.
  const accounts = createCommandHandler({ store }, account);
  return {
    db,
    append: (stream, there, events) =>
      store.append(stream, events.map(toEnvelope), { expected: there === 0 ? 'none' : there - 1 }),
    count: () => countRows(engine, address, engine === 'sqlite' ? 'events' : 'millrace.events'),
    async readStream(stream) {
      let count = 0;
      for await (const page of store.readStream(stream).pages()) count += page.length;
      return count;
    },
    async loadAggregate(accountId) {
      return (await accounts.load({ tenant, id: accountId })).state.balance;
    },
    catchUp: (total) => catchUp(store, total),
    follow: () => follow(store),
    async close() {
      await accounts[Symbol.asyncDispose]();
      await db[Symbol.asyncDispose]();
    },
  };
}

/** One store appends and another with its own connections follows, like two processes. */
export async function openMillraceTwice(engine: Engine, address: string): Promise<MillraceSubject> {
  const [writer, reader] = [
    await openMillrace(engine, address),
    await openMillrace(engine, address),
  ];
  return {
    ...reader,
    append: (stream, there, events) => writer.append(stream, there, events),
    async close() {
      await reader.close();
      await writer.close();
    },
  };
}

function toEnvelope({ id, type, data, metadata }: SampleEvent): DomainEventEnvelope {
  return { type, eventId: id, ...metadata, payload: data };
}

function catchUp(store: EventStore, total: number): CatchUp {
  const check = inOrder(total);
  let feed: AsyncIterator<FeedItem> | undefined;
  let read = 0;
  let requested = 0;
  return {
    async take(count) {
      requested += count;
      // A page may contain more events than the slice requested for; the next slice starts with the rest.
      while (read < requested) {
        feed ??= store.subscribe()[Symbol.asyncIterator]();
        const { value } = (await feed.next()) as IteratorYieldResult<FeedItem>;
        if (value.kind === 'events') {
          for (const { payload } of value.events) check((payload as Booking).number);
          read += value.events.length;
        } else if (value.kind === 'caughtUp') {
          if (read % total !== 0) throw new Error(`caught up after ${read % total} of ${total}`);
          await feed.return?.();
          feed = undefined;
        }
      }
    },
    async close() {
      await feed?.return?.();
    },
  };
}

async function follow(store: EventStore): Promise<Follower> {
  const sightings = createSightings();
  const leaving = new AbortController();
  const caughtUp = Promise.withResolvers<void>();
  const following = (async () => {
    for await (const item of store.subscribe({ after: 'end', signal: leaving.signal })) {
      if (item.kind === 'caughtUp') caughtUp.resolve();
      if (item.kind !== 'events') continue;
      for (const { payload } of item.events) sightings.seen((payload as Booking).number);
    }
  })();
  following.catch(caughtUp.reject);
  await caughtUp.promise;
  return {
    whenSeen: (number) => sightings.whenSeen(number),
    async close() {
      leaving.abort();
      await following;
    },
  };
}
