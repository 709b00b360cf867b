// Live subscribers of streams with retention, on durable engines: a live subscriber gets each event, however fast the
// events arrive and however few of them the stream keeps.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import {
  persistentSubscriptionToStreamSettingsFromDefaults as settings,
  START,
  type EventData,
} from '@kurrent/kurrentdb-client';
import { openPostgres } from '../../src/engines/postgres/index.ts';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { withoutWait } from './client-cases.ts';
import { followed, type Followed } from './follow.ts';
import {
  event,
  events,
  idsOf,
  kurrentClient,
  unique,
  type OfficialClient,
} from './official-clients.ts';

const folder = await mkdtemp(join(tmpdir(), 'millrace-live-'));
after(() => rm(folder, { recursive: true }));
const { url } = await sharedPostgres();

const engines = {
  SQLite: () => openSqlite(`sqlite:${join(folder, 'live.db')}`, kurrentStoreOptions),
  PostgreSQL: () => openPostgres(url, { ...kurrentStoreOptions, connectionsMax: 3 }),
} as const;

type Append = OfficialClient['append'];
type Send = (append: Append, stream: string, sent: readonly EventData[]) => Promise<unknown>;

const ways: Readonly<Record<string, Send>> = {
  async 'one by one'(append, stream, sent) {
    for (const each of sent) await append(stream, each);
  },
  pipelined: (append, stream, sent) => Promise.all(sent.map((each) => append(stream, each))),
  async 'in batches of 5'(append, stream, sent) {
    for (let at = 0; at < sent.length; at += 5) await append(stream, sent.slice(at, at + 5));
  },
};

const kind = await kurrentClient();
for (const [engine, open] of Object.entries(engines)) {
  const db = await open();
  const server = await startKurrentServer(db.store, {
    port: 0,
    leases: db.subscriptions.leases,
  });
  const client = kind.connect(withoutWait(server.url));
  after(async () => {
    await client[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
    await db[Symbol.asyncDispose]();
  });
  const { api, append } = client;

  describe(`live subscribers of a stream with retention on ${engine}`, () => {
    for (const [way, send] of Object.entries(ways)) {
      for (const metadata of [{ maxCount: 1 }, { truncateBefore: 1_000 }]) {
        const [limit] = Object.entries(metadata).map((entry) => entry.join(' '));
        test(`get each of 40 events, ${way}, with ${limit}`, async () => {
          const [stream, group] = [unique(), unique('group')];
          await api.createPersistentSubscriptionToStream(
            stream,
            group,
            settings({ startFrom: START }),
          );
          const consumer = api.subscribeToPersistentSubscriptionToStream(stream, group);
          await using subscriber = followed(api.subscribeToStream(stream));
          await using grouped = followed(consumer, (each) => consumer.ack(each));
          await subscriber.caughtUp();
          // The group is live as well, when it has delivered an event.
          const first = event();
          await append(stream, first);
          await grouped.count(1);
          await api.setStreamMetadata(stream, metadata);
          const sent = events(40);
          await send(append, stream, sent);
          // An event before the last one that has not arrived is lost.
          await api.setStreamMetadata(stream, {});
          const last = event();
          await append(stream, last);
          const expected = idsOf([first, ...sent, last]).toSorted();
          for (const each of [subscriber, grouped]) {
            assert.deepEqual((await until(each, last.id)).toSorted(), expected);
          }
        });
      }
    }
  });
}

async function until(follower: Followed, id: string): Promise<string[]> {
  while (!idsOf(follower.seen).includes(id)) await follower.count(follower.seen.length + 1);
  return idsOf(follower.seen);
}
