// A system stream that another program removed or damaged is survived: everything starts, the log names the stream, and the
// records continue.

import {
  jsonEvent,
  KurrentDBClient,
  persistentSubscriptionToStreamSettingsFromDefaults,
} from '@kurrent/kurrentdb-client';
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { systemClock, type Observer } from '../../src/foundation/index.ts';
import { createAuditLog, openTokens } from '../../src/platform/index.ts';
import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import type { EventStore } from '../../src/store/index.ts';
import { systemEvent } from '../../src/store/system-stream.ts';
import { openUserDirectory } from '../../src/topics/index.ts';

const actor = { kind: 'test', name: 'ops' };
const settings = persistentSubscriptionToStreamSettingsFromDefaults({ startFrom: 'start' });

/** Everything of the product that keeps records in system streams; used once, so that each stream exists. */
async function runOnce(url: string, round: string): Promise<readonly string[]> {
  await using db = await openSqlite(url, kurrentStoreOptions);
  const lost: string[] = [];
  const error = (fields: Readonly<Record<string, unknown>>): void => {
    lost.push(typeof fields['stream'] === 'string' ? fields['stream'] : JSON.stringify(fields));
  };
  const observer: Observer = { log: { error, warn() {}, info() {}, debug() {} } };
  await using tokens = await openTokens(db.store, { observer });
  const { secret } = await tokens.create({ name: `t-${round}`, scopes: ['read'] });
  assert.ok(tokens.verify(secret));
  await using users = await openUserDirectory(db.store, { observer });
  await users.change(() => ({
    kind: 'access-set',
    user: '*',
    topic: round,
    permission: 'read-only',
  }));
  const audit = createAuditLog(db.store, { observer });
  await audit.run({ action: 'test', target: round, actor }, async () => undefined);
  assert.equal((await audit.list({ actor: 'ops' })).items[0]?.target, round);
  await using server = await startKurrentServer(db.store, { port: 0, observer });
  const client = KurrentDBClient.connectionString(`${server.url}&discoveryInterval=1`);
  const groups = await client.listAllPersistentSubscriptions().catch(() => []);
  if (!groups.some(({ groupName }) => groupName === 'g')) {
    await client.createPersistentSubscriptionToStream('order-1', 'g', settings);
  }
  await client.appendToStream('order-1', jsonEvent({ type: round, data: {} }));
  // Parking writes the parked stream, and the acknowledged position the checkpoint.
  const subscription = client.subscribeToPersistentSubscriptionToStream('order-1', 'g');
  for await (const delivered of subscription) {
    if (delivered.event?.type === round) break;
    await subscription.nack('park', 'test', delivered);
  }
  await client.dispose();
  return lost;
}

const streams = [
  '$millrace-tokens',
  '$millrace-audit',
  '$millrace-notify-users',
  '$persistentSubscriptionConfig',
  '$persistentsubscription-order-1::g-checkpoint',
  '$persistentsubscription-order-1::g-parked',
];

/** The system streams of the store: a new one must be added to the list above. */
async function systemStreams(url: string): Promise<readonly string[]> {
  await using db = await openSqlite(url, kurrentStoreOptions);
  const events = await db.store.readAll({ filter: { system: true } }).toArray();
  // Metadata streams (`$$…`) only bound the number of events, and a number is that of a replacement.
  const names = events.map(({ stream }) => stream.replace(/-\d+$/, ''));
  return [...new Set(names)].filter((name) => /^\$[^$]/.test(name));
}

const damages: Readonly<Record<string, (store: EventStore, stream: string) => Promise<unknown>>> = {
  tombstoned: (store, stream) => store.tombstoneStream(stream),
  poisoned: (store, stream) => {
    const about = { payload: null, eventId: `junk ${stream}`, clock: systemClock };
    const junk = systemEvent(stream, '$junk', about);
    return store.append(stream, [junk], { system: true });
  },
};

for (const [damage, apply] of Object.entries(damages)) {
  test(`system streams that are ${damage} are survived by a restart, and reported`, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-system-'));
    try {
      const url = `sqlite:${folder}/events.db`;
      assert.deepEqual(await runOnce(url, 'first'), []);
      for (const [index, stream] of streams.entries()) {
        for (const found of await systemStreams(url)) assert.ok(streams.includes(found), found);
        {
          await using db = await openSqlite(url, kurrentStoreOptions);
          await apply(db.store, stream);
        }
        const lost = await runOnce(url, `round-${index}`);
        // A checkpoint or parked message that cannot be read only repeats deliveries.
        const isSkipped = damage === 'poisoned' && /audit|::g-/.test(stream);
        assert.equal(lost.includes(stream), !isSkipped, `${stream}: ${lost.join()}`);
      }
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
}
