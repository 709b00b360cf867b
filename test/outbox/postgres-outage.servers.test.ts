import assert from 'node:assert/strict';
import { test } from 'node:test';
import { postgresOutboxLedger } from '../../src/engines/postgres/index.ts';
import { hasCode } from '../../src/foundation/error.ts';
import { createOutboxDispatcher } from '../../src/outbox/index.ts';
import { newMessage } from '../../src/testing/conformance/outbox/fixture.ts';
import { startPostgres } from '../../src/testing/servers/postgres-server.ts';
import { connect } from '../store/connect.ts';
import { until } from '../store/rig.ts';

const messages = 600;

test('a database that is killed is no duplicate and no loss: all is sent once it is back, and is told live again', async () => {
  await using server = await startPostgres({ fsync: true });
  const url = await server.createDatabase();
  await using ledger = await postgresOutboxLedger(url);
  const first = Array.from({ length: messages }, () => newMessage());
  await ledger.enqueueMany(first);
  const sent = new Map<string, number>();
  const gate = Promise.withResolvers<void>();
  await using dispatcher = createOutboxDispatcher({
    ledger,
    leaseMs: 4_000,
    // Only a notification can be in time for what is enqueued last.
    tickIntervalMs: 3_600_000,
    concurrency: 20,
    async deliver({ sourceEventId }) {
      // Some are out when the database goes.
      if (sent.size > 200) await gate.promise;
      sent.set(sourceEventId, (sent.get(sourceEventId) ?? 0) + 1);
    },
  });
  await dispatcher.start();
  await until('some are held', () => dispatcher.inFlight === 20);
  await server.kill();
  for (const item of [first[0], newMessage()]) {
    await assert.rejects(
      async () => ledger.enqueue(item ?? newMessage()),
      (error) => hasCode(error, 'STORE_UNAVAILABLE') && error.retryable,
    );
  }
  gate.resolve();
  await until('those that were out have come to their end', () => dispatcher.inFlight < 20);
  await server.start();
  const repeated = await ledger.enqueueMany(first);
  assert.deepEqual(
    repeated.filter(({ isNew }) => isNew),
    [],
  );
  await until('everything is sent', async () => (await ledger.counts()).SENT === messages);
  assert.equal(sent.size, messages);
  // In a transaction of somebody else's, as another process would: nobody in this one is told of it.
  await using other = await connect(url);
  const late = newMessage();
  await until('it sleeps, and hears of what others enqueue', async () => {
    await other.query('begin');
    await ledger.enqueueIn(other, [{ ...late, sourceEventId: crypto.randomUUID() }]);
    await other.query('commit');
    return sent.size > messages;
  });
  await until('nothing is left', async () => {
    const { PENDING, CLAIMED, FAILED } = await ledger.counts();
    return PENDING + CLAIMED + FAILED === 0;
  });
});

test('what a crash of the server forgets is claimed and sent again, and whoever had it changes nothing', async () => {
  // Nothing but a commit that waits for the disk brings the log there.
  const settings = { wal_writer_delay: '10s', bgwriter_lru_maxpages: '0', autovacuum: 'off' };
  await using server = await startPostgres({ fsync: true, settings });
  await using ledger = await postgresOutboxLedger(await server.createDatabase());
  await ledger.enqueueMany([newMessage(), newMessage()]);
  const [settled = assert.fail()] = await ledger.claimDueBatch('w', 1);
  assert.equal(await ledger.markSent(settled), 'settled');
  const [claimed = assert.fail()] = await ledger.claimDueBatch('w', 10);
  assert.equal((await ledger.counts()).SENT, 1);

  await server.kill();
  await server.start();
  const counts = await ledger.counts();
  assert.deepEqual([counts.SENT, counts.CLAIMED, counts.PENDING], [1, 0, 1]);
  assert.equal(await ledger.markSent(claimed), 'stale');
  const [again = assert.fail()] = await ledger.claimDueBatch('w', 10);
  assert.equal(again.id, claimed.id);
  assert.notEqual(again.token, claimed.token);
  assert.equal(await ledger.markSent(claimed), 'stale');
  assert.equal(await ledger.markSent(again), 'settled');
  assert.equal((await ledger.counts()).SENT, 2);
});
