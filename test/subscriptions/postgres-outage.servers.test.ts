import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClientBase } from 'pg';
import { openPostgres } from '../../src/engines/postgres/index.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import { startSubscription, subscription } from '../../src/subscriptions/index.ts';
import { startPostgres } from '../../src/testing/servers/postgres-server.ts';
import { connect } from '../store/connect.ts';
import { newEvent, streamName, until } from '../store/rig.ts';

const name = 'sub:rig:outage:v1';
const events = 1_500;

test('after a database outage, no event is lost, repeated or dead-lettered, and one warning is logged', async () => {
  await using server = await startPostgres({ fsync: true });
  const url = await server.createDatabase();
  {
    await using admin = await connect(url);
    await admin.query('create table effects (id bigserial, stream text, revision integer)');
  }
  await using db = await openPostgres(url);
  for (let at = 0; at < events; at += 50) {
    const batch = Array.from({ length: 50 }, (_, index) => newEvent(`e${at + index}`));
    await db.store.append(streamName(at % 20), batch);
  }
  let handled = 0;
  const warnings: string[] = [];
  const ignore = (): void => undefined;
  const definition = subscription<ClientBase>({
    name,
    lanes: 4,
    retry: { initialMs: 20, factor: 1, capMs: 20, jitterMs: 0, attemptsMax: 3 },
    async handler({ stream, revision }, context) {
      const transaction = await context.transaction();
      const values = [stream, revision];
      await transaction.query('insert into effects (stream, revision) values ($1, $2)', values);
      handled += 1;
    },
  });
  await using runner = await startSubscription(db, definition, {
    leaseMs: 1_000,
    checkpointMs: 50,
    observer: {
      log: {
        debug: ignore,
        info: ignore,
        error: ignore,
        warn: (_fields, message) => void warnings.push(message),
      },
    },
  });
  await until('100 events are handled', () => handled > 100);
  await server.kill();
  // Longer than the lease, and longer than all attempts together.
  await systemClock.sleep(2_500);
  await server.start();
  await runner.whenCaughtUp();
  await using admin = await connect(url);
  const { rows } = await admin.query<{ stream: string; revision: number }>(
    'select stream, revision from effects order by id',
  );
  assert.equal(rows.length, events);
  const next = new Map<string, number>();
  for (const { stream, revision } of rows) {
    assert.equal(revision, next.get(stream) ?? 0, stream);
    next.set(stream, revision + 1);
  }
  assert.equal(await db.subscriptions.deadLetters.count({}), 0);
  const outages = warnings.filter((message) => message === 'leases unavailable');
  assert.equal(outages.length, 1, warnings.join('\n'));
  // The other warnings only report a lost shard.
  assert.ok(warnings.length <= 10, warnings.join('\n'));
});
