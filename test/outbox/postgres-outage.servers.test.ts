import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPostgres } from '../../src/engines/postgres/index.ts';
import { hasCode } from '../../src/foundation/error.ts';
import { createOutboxDispatcher } from '../../src/outbox/index.ts';
import { newMessage } from '../../src/testing/conformance/outbox/fixture.ts';
import { startPostgres } from '../../src/testing/servers/postgres-server.ts';
import { connect } from '../store/connect.ts';
import { until } from '../store/rig.ts';

const messages = 600;

test('after the database is killed and restarted, every message is sent once and notifications arrive again', async () => {
  await using server = await startPostgres({ fsync: true });
  const url = await server.createDatabase();
  await using db = await openPostgres(url, { roles: ['outbox'] });
  const ledger = db.outbox;
  const first = Array.from({ length: messages }, () => newMessage());
  await ledger.enqueueMany(first);
  const sent = new Map<string, number>();
  const gate = Promise.withResolvers<void>();
  await using dispatcher = createOutboxDispatcher({
    ledger,
    leaseMs: 4_000,
    // With this interval, only a notification can wake the dispatcher in time.
    tickIntervalMs: 3_600_000,
    concurrency: 20,
    async deliver({ sourceEventId }) {
      // Some deliveries are running when the database is killed.
      if (sent.size > 200) await gate.promise;
      sent.set(sourceEventId, (sent.get(sourceEventId) ?? 0) + 1);
    },
  });
  await dispatcher.start();
  await until('20 deliveries are running', () => dispatcher.inFlight === 20);
  await server.kill();
  for (const item of [first[0], newMessage()]) {
    await assert.rejects(
      async () => ledger.enqueue(item ?? newMessage()),
      (error) => hasCode(error, 'STORE_UNAVAILABLE') && error.retryable,
    );
  }
  gate.resolve();
  await until('the running deliveries have ended', () => dispatcher.inFlight < 20);
  await server.start();
  const again = await ledger.enqueueMany(first);
  assert.deepEqual(
    again.filter(({ isDuplicate }) => !isDuplicate),
    [],
  );
  await until('all messages are sent', async () => (await ledger.counts()).SENT === messages);
  assert.equal(sent.size, messages);
  // This transaction belongs to another connection, so the dispatcher of this process gets no local signal.
  await using other = await connect(url);
  const late = newMessage();
  await until('a notification wakes the dispatcher', async () => {
    await other.query('begin');
    await ledger.enqueueIn(other, [{ ...late, sourceEventId: crypto.randomUUID() }]);
    await other.query('commit');
    return sent.size > messages;
  });
  await until('the ledger has no unsent message', async () => {
    const { PENDING, CLAIMED, FAILED } = await ledger.counts();
    return PENDING + CLAIMED + FAILED === 0;
  });
});

test('a claim that a server crash loses is made again, and the old claim settles nothing', async () => {
  // With these settings, only a synchronous commit writes the log to disk.
  const settings = { wal_writer_delay: '10s', bgwriter_lru_maxpages: '0', autovacuum: 'off' };
  await using server = await startPostgres({ fsync: true, settings });
  await using db = await openPostgres(await server.createDatabase(), { roles: ['outbox'] });
  const ledger = db.outbox;
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
