import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import pg from 'pg';
import {
  postgresOutboxLedger,
  type PostgresTransaction,
} from '../../src/adapters/postgres/index.ts';
import {
  createOutboxStreamRelay,
  deliverEach,
  type ClaimedMessage,
  type DeliverBatch,
  type EnqueueOutboxProps,
  type OutboxLedger,
  type OutboxStreamRelay,
  type OutboxStreamRelayOptions,
} from '../../src/outbox/index.ts';
import { newMessage } from '../../src/outbox/ledger-fixture.conformance.ts';
import { stressLifecycle } from '../../src/testing/lifecycle-stress.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { until } from '../store/rig.ts';

const { url } = await sharedPostgres();
const pool = new pg.Pool({ connectionString: url, max: 2 });
after(() => pool.end());

const type = 'kafka:payments';
const schedule = { initialMs: 20, factor: 2, capMs: 100, jitterMs: 5 };

interface Setting extends AsyncDisposable {
  readonly schema: string;
  readonly ledger: OutboxLedger<PostgresTransaction>;
  relay(deliverBatch: DeliverBatch, more?: Partial<OutboxStreamRelayOptions>): OutboxStreamRelay;
}

async function setting(lanes = 4): Promise<Setting> {
  const schema = `stream_${randomUUID().replaceAll('-', '')}`;
  const ledger = await postgresOutboxLedger(url, { schema, connectionsMax: 4 });
  await ledger.streams.declare(type, { lanes });
  const relays: OutboxStreamRelay[] = [];
  return {
    schema,
    ledger,
    relay(deliverBatch, more) {
      const options = { ledger, integrationTypes: [type], deliverBatch, schedule, ...more };
      const relay = createOutboxStreamRelay({ tickIntervalMs: 50, ...options });
      relays.push(relay);
      return relay;
    },
    async [Symbol.asyncDispose]() {
      for (const relay of relays) await relay.stop();
      await ledger[Symbol.asyncDispose]();
    },
  };
}

const message = (n: number, key?: string): EnqueueOutboxProps =>
  newMessage({
    integrationType: type,
    payload: { n },
    // A slow machine tries more often than a test has in mind.
    maxAttempts: 1_000,
    ...(key === undefined ? {} : { orderingKey: key }),
  });

const numberOf = ({ payload }: ClaimedMessage): number => Number(payload['n']);

const sentCount = async (ledger: OutboxLedger): Promise<number> => (await ledger.counts()).SENT;

test('a relay sends in batches, each key in order, past a key that fails', async () => {
  await using at = await setting();
  const items = Array.from({ length: 300 }, (_, n) => message(n, `k${n % 7}`));
  await at.ledger.enqueueMany(items);
  const arrived: number[] = [];
  const failuresLeft = new Map([
    [3, 3],
    [10, 2],
  ]);
  const others = Promise.withResolvers<void>();
  const relay = at.relay(
    deliverEach(async (each) => {
      const n = numberOf(each);
      const left = failuresLeft.get(n) ?? 0;
      if (left > 0) {
        // Key 3 does not get on before all the others have.
        if (arrived.filter((m) => m % 7 !== 3).length === 257) failuresLeft.set(n, left - 1);
        throw new Error('not yet');
      }
      arrived.push(n);
      if (arrived.filter((m) => m % 7 !== 3).length === 257) others.resolve();
    }),
    { batchSize: 20 },
  );
  await relay.start();
  await others.promise;
  await until('everything is sent', async () => (await sentCount(at.ledger)) === 300);
  assert.equal(new Set(arrived).size, 300);
  for (let key = 0; key < 7; key += 1) {
    const first = [...new Set(arrived)].filter((n) => n % 7 === key);
    assert.deepEqual(
      first,
      first.toSorted((a, b) => a - b),
    );
  }
});

test('while the destination is down, messages keep their attempts, and go on when it is back', async () => {
  await using at = await setting(1);
  const items = Array.from({ length: 200 }, (_, n) => message(n, `k${n}`));
  await at.ledger.enqueueMany(items);
  let isDown = true;
  let calls = 0;
  const relay = at.relay(async () => {
    calls += 1;
    if (isDown) throw new Error('no broker');
  });
  await relay.start();
  await until('it was tried some times', async () => calls >= 4);
  isDown = false;
  await until('everything is sent', async () => (await sentCount(at.ledger)) === 200);
  const all = await at.ledger.list({ integrationType: type }, { limit: 1_000 });
  const tried = all.filter(({ attempts }) => attempts > 0);
  assert.ok(tried.length <= 10, `${tried.length} messages lost attempts to the outage`);
});

test('a message that is refused is dead and told of, one without attempts left too, and both are replayed', async () => {
  await using at = await setting(1);
  const dead: number[] = [];
  let isMended = false;
  const arrived: number[] = [];
  const relay = at.relay(
    deliverEach(async (each) => {
      const n = numberOf(each);
      if (!isMended && n === 1) return { kind: 'dead', error: 'refused' };
      if (!isMended && n === 2) throw new Error('never');
      arrived.push(n);
      return undefined;
    }),
    { onDead: (each) => void dead.push(numberOf(each)) },
  );
  await relay.start();
  await at.ledger.enqueueMany([
    message(1, 'a'),
    { ...message(2, 'b'), maxAttempts: 2 },
    message(3, 'a'),
    message(4, 'b'),
  ]);
  await until('two are dead', async () => (await at.ledger.counts()).DEAD === 2);
  await until('the others are sent', async () => (await sentCount(at.ledger)) === 2);
  assert.deepEqual(
    dead.toSorted((a, b) => a - b),
    [1, 2],
  );
  isMended = true;
  assert.equal(await at.ledger.replay({}), 2);
  await until('all are sent', async () => (await sentCount(at.ledger)) === 4);
  assert.deepEqual(
    arrived.toSorted((a, b) => a - b),
    [1, 2, 3, 4],
  );
});

test('relays share the lanes, and one that stops leaves them to the other at once', async () => {
  await using at = await setting(6);
  const seen = { one: 0, two: 0 };
  const one = at.relay(async (messages) => void (seen.one += messages.length));
  const two = at.relay(async (messages) => void (seen.two += messages.length));
  await one.start();
  await until('the first one has all', async () => one.lanes === 6);
  await two.start();
  await until('both have their share', async () => one.lanes === 3 && two.lanes === 3);
  await at.ledger.enqueueMany(Array.from({ length: 200 }, (_, n) => message(n, `k${n}`)));
  await until('everything is sent', async () => (await sentCount(at.ledger)) === 200);
  assert.ok(seen.one > 0 && seen.two > 0);
  await one.stop();
  // Its leases are a minute long: nobody waits for them.
  await until('the other one has all', async () => two.lanes === 6);
  await at.ledger.enqueueMany(Array.from({ length: 50 }, (_, n) => message(n, `k${n}`)));
  await until('everything is sent', async () => (await sentCount(at.ledger)) === 250);
  assert.equal(seen.one + seen.two, 250);
});

test('what commits late is not skipped, and comes before what was enqueued after it', async () => {
  await using at = await setting(1);
  const arrived: number[] = [];
  const relay = at.relay(async (messages) => void arrived.push(...messages.map(numberOf)));
  await relay.start();
  await at.ledger.enqueue(message(0, 'a'));
  await until('the first is sent', async () => arrived.length === 1);
  const client = await pool.connect();
  try {
    await client.query('begin');
    await at.ledger.enqueueIn(client, [message(1, 'a')]);
    for (let n = 2; n < 20; n += 1) await at.ledger.enqueue(message(n, 'a'));
    assert.deepEqual(arrived, [0]);
    await client.query('commit');
  } finally {
    client.release();
  }
  await until('everything is sent', async () => (await sentCount(at.ledger)) === 20);
  assert.deepEqual(
    arrived,
    Array.from({ length: 20 }, (_, n) => n),
  );
});

test('who sleeps is woken by whoever enqueues, in another process too', async () => {
  await using at = await setting(2);
  const arrived: number[] = [];
  const hourMs = 3_600_000;
  const relay = at.relay(async (messages) => void arrived.push(...messages.map(numberOf)), {
    tickIntervalMs: hourMs,
    leaseMs: 5 * hourMs,
  });
  await relay.start();
  await using other = await postgresOutboxLedger(url, { schema: at.schema, connectionsMax: 2 });
  for (let n = 0; n < 5; n += 1) {
    await other.enqueue(message(n));
    await until('it has arrived', async () => arrived.length === n + 1);
  }
});

test('a message that ends its process over and over is a dead letter, and its lane goes on', async () => {
  await using at = await setting(1);
  await at.ledger.enqueueMany([{ ...message(1), maxAttempts: 2 }, message(2)]);
  const dying = { workerId: 'dying', integrationTypes: [type], leaseMs: 600_000, giveBack: [] };
  const [claim] = await at.ledger.streams.acquire(dying);
  assert.ok(claim !== undefined);
  const fetch = { lanes: [{ claim, limit: 10 }], bytesMax: 1_000, leaseMs: 1 };
  for (let death = 0; death < 5; death += 1) await at.ledger.streams.exchange([], fetch);
  const arrived: number[] = [];
  const relay = at.relay(async (messages) => void arrived.push(...messages.map(numberOf)));
  await relay.start();
  await until('the second is sent', async () => (await sentCount(at.ledger)) === 1);
  assert.deepEqual(arrived, [2]);
  const [dead] = await at.ledger.list({ status: 'DEAD' });
  assert.match(dead?.lastError ?? '', /seems to end its process/);
});

test('a stop waits for what is being sent, and cuts it off when that takes too long', async () => {
  await using at = await setting(1);
  await at.ledger.enqueueMany([message(1), message(2)]);
  let isCutOff = false;
  const begun = Promise.withResolvers<void>();
  const stuck = at.relay(
    (_messages, { signal }) =>
      new Promise((_resolve, reject) => {
        begun.resolve();
        signal.addEventListener('abort', () => {
          isCutOff = true;
          reject(new Error('cut off'));
        });
      }),
    { drainMs: 20 },
  );
  await stuck.start();
  await begun.promise;
  assert.equal(stuck.inFlight, 2);
  await stuck.stop();
  assert.equal(isCutOff, true);
  assert.deepEqual(await at.ledger.counts(), {
    PENDING: 2,
    CLAIMED: 0,
    SENT: 0,
    FAILED: 0,
    DEAD: 0,
  });
  const relay = at.relay(async () => undefined);
  await relay.start();
  await until('the next one sends them', async () => (await sentCount(at.ledger)) === 2);
});

test('a relay starts and stops in any order', async () => {
  await using at = await setting(2);
  await at.ledger.enqueueMany(Array.from({ length: 50 }, (_, n) => message(n)));
  const owned = `select from ${at.schema}.stream_lanes where owner is not null`;
  await stressLifecycle({
    create: () => at.relay(async () => undefined),
    assertReleased: async () => assert.equal((await pool.query(owned)).rowCount, 0),
    rounds: 20,
  });
});
