import assert from 'node:assert/strict';
import { test } from 'node:test';
import { postgresOutboxLedger } from '../../src/adapters/postgres/index.ts';
import { createOutboxStreamRelay } from '../../src/outbox/index.ts';
import { newMessage } from '../../src/outbox/ledger-fixture.conformance.ts';
import { startPostgres } from '../../src/testing/servers/postgres-server.ts';
import { until } from '../store/rig.ts';

const messages = 900;
const integrationType = 'kafka:payments';

test('a database that is killed under a relay costs no message and no order, in the middle of batches too', async () => {
  await using server = await startPostgres({ fsync: true });
  const url = await server.createDatabase();
  await using ledger = await postgresOutboxLedger(url);
  await ledger.streams.declare(integrationType, { lanes: 3 });
  const arrived: number[] = [];
  const gate = Promise.withResolvers<void>();
  await using relay = createOutboxStreamRelay({
    ledger,
    integrationTypes: [integrationType],
    batchSize: 20,
    tickIntervalMs: 100,
    async deliverBatch(batch) {
      // Some are out when the database goes, and their outcomes are told when it is back.
      if (arrived.length > 300) await gate.promise;
      arrived.push(...batch.map(({ payload }) => Number(payload['n'])));
    },
  });
  await relay.start();
  await ledger.enqueueMany(
    Array.from({ length: messages }, (_, n) =>
      newMessage({ integrationType, payload: { n }, orderingKey: `k${n % 10}` }),
    ),
  );
  await until('some are held', () => arrived.length > 300 && relay.inFlight > 0);
  const before = arrived.length;
  await server.kill();
  gate.resolve();
  await until('those that were out have come to their end', () => arrived.length > before);
  await server.start();
  await until('everything is sent', async () => (await ledger.counts()).SENT === messages);
  const first = [...new Set(arrived)];
  assert.equal(first.length, messages);
  for (let key = 0; key < 10; key += 1) {
    const ofKey = first.filter((n) => n % 10 === key);
    assert.deepEqual(
      ofKey,
      ofKey.toSorted((a, b) => a - b),
    );
  }
});
