import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { DataSource } from 'typeorm';
import { eventually, rejectsWith } from '../../testing/assertions.ts';
import { openPostgres } from '../../engines/postgres/index.ts';
import { migratePostgresOutbox } from '../../engines/postgres/outbox/schema.ts';
import { sharedSchemas } from '../../testing/conformance/engines/postgres-shared-schema.ts';
import { newMessage } from '../../testing/conformance/outbox/fixture.ts';
import { newEvent } from '../../testing/conformance/store/fixture.ts';
import { createOutboxDispatcher } from '../../outbox/outbox-dispatcher.ts';
import { outboxLedgerConformance } from '../../testing/conformance/outbox/outbox-ledger.ts';
import { sharedPostgres } from '../../testing/servers/shared-servers.ts';
import { openTypeorm, poolOf } from './open-typeorm.ts';
import { IntegrationOutboxEntity, OutboxStatus } from './integration-outbox-entity.ts';
import { TypeormOutboxRepository, type TypeormTransaction } from './outbox-repository.ts';

const { url } = await sharedPostgres();
const entities = [IntegrationOutboxEntity];
const dataSource = new DataSource({ type: 'postgres', url, poolSize: 6, entities });
await dataSource.initialize();
after(() => dataSource.destroy());

test('an enqueue with an EntityManager is committed or rolled back with its transaction', async () => {
  await using outbox = new TypeormOutboxRepository(dataSource, { schema: 'typeorm_tx' });
  await dataSource.query('create table typeorm_orders (id text primary key)');
  const pay = (isPaid: boolean): Promise<void> =>
    dataSource.transaction(async (manager) => {
      await manager.query('insert into typeorm_orders (id) values ($1)', ['o1']);
      const [result] = await outbox.enqueueIn(manager, [newMessage({ sourceEventId: 'o1-paid' })]);
      assert.equal(result?.isDuplicate, false);
      if (!isPaid) throw new Error('the card was declined');
    });
  await assert.rejects(pay(false), /declined/);
  assert.deepEqual(await outbox.list({}), []);
  assert.deepEqual(await dataSource.query('select * from typeorm_orders'), []);
  await pay(true);
  assert.equal((await outbox.list({})).length, 1);
});

test('an EntityManager without a transaction is rejected', async () => {
  await using outbox = new TypeormOutboxRepository(dataSource, { schema: 'typeorm_tx' });
  const item = newMessage();
  await rejectsWith(() => outbox.enqueueIn(dataSource.manager, [item]), 'OUTBOX_INVALID');
});

test('the entity works with repositories and query builders, and rejects writes', async () => {
  await using outbox = new TypeormOutboxRepository(dataSource);
  const item = newMessage({
    payload: { paymentId: 'p1' },
    headers: { traceparent: '00-x' },
    tenantId: 'core',
    correlationId: 'c1',
  });
  const { id } = await outbox.enqueue(item);
  const rows = dataSource.getRepository(IntegrationOutboxEntity);
  const row = await rows.findOneByOrFail({ id, status: OutboxStatus.PENDING });
  assert.equal(row.sourceEventId, item.sourceEventId);
  assert.deepEqual(row.payload, { paymentId: 'p1' });
  assert.deepEqual(row.headers, { traceparent: '00-x' });
  assert.equal(row.tenantId, 'core');
  assert.equal(row.userId, null);
  assert.equal(row.maxAttempts, 10);
  assert.ok(row.dueAt instanceof Date && row.createdAt instanceof Date);
  const due = await rows
    .createQueryBuilder('o')
    .where('o.dueAt <= now()')
    .andWhere('o.integrationType = :type', { type: 'webhook:partner-x' })
    .orderBy('o.createdAt', 'ASC')
    .take(10)
    .getMany();
  assert.deepEqual(
    due.map((message) => message.id),
    [id],
  );
  await assert.rejects(rows.update({ id }, { attempts: 3 }), /cannot update view/);
  await assert.rejects(rows.delete({ id }), /cannot delete from view/);
});

test('enqueue returns the row as the entity reads it, with OUTBOX_MAX_ATTEMPTS', async () => {
  process.env['OUTBOX_MAX_ATTEMPTS'] = '4';
  try {
    await using outbox = new TypeormOutboxRepository(dataSource);
    const enqueued: IntegrationOutboxEntity = await outbox.enqueue(
      newMessage({ tenantId: 'core' }),
    );
    const rows = dataSource.getRepository(IntegrationOutboxEntity);
    const row = await rows.findOneByOrFail({ id: enqueued.id });
    for (const [name, value] of Object.entries(row)) {
      assert.deepEqual(enqueued[name as keyof typeof enqueued] ?? null, value, name);
    }
    assert.equal(row.maxAttempts, 4);
    assert.equal(await outbox.getAttempts(row.id), 0);
  } finally {
    delete process.env['OUTBOX_MAX_ATTEMPTS'];
  }
});

test('synchronize leaves the view of the outbox unchanged', async () => {
  await using outbox = new TypeormOutboxRepository(dataSource);
  const { id } = await outbox.enqueue(newMessage());
  await dataSource.synchronize();
  assert.equal((await outbox.find(id))?.id, id);
});

test('a repository rejects calls before its DataSource is initialised, and works afterwards', async () => {
  const later = new DataSource({ type: 'postgres', url, poolSize: 2 });
  const outbox = new TypeormOutboxRepository(later, { schema: 'typeorm_later' });
  await rejectsWith(() => outbox.counts(), 'STORE_CLOSED');
  await later.initialize();
  assert.equal((await outbox.enqueue(newMessage())).isDuplicate, false);
  await outbox[Symbol.asyncDispose]();
  await later.destroy();
});

test('the repository names the database of its pool as the engine does, once the DataSource is initialised', async () => {
  const { url: otherUrl } = await sharedPostgres();
  const other = new DataSource({ type: 'postgres', url: otherUrl, poolSize: 2 });
  const elsewhere = new TypeormOutboxRepository(other);
  assert.equal(elsewhere.database, undefined);
  await other.initialize();
  await using db = await openPostgres(url);
  await using handle = await openTypeorm(dataSource);
  assert.equal(new TypeormOutboxRepository(dataSource).database, db.database);
  assert.equal(handle.outbox.database, db.database);
  assert.notEqual(elsewhere.database, db.database);
  await other.destroy();
});

test('the handle on a DataSource uses its pool and leaves it open', async () => {
  const own = new DataSource({ type: 'postgres', url, poolSize: 4 });
  await rejectsWith(() => openTypeorm(own), 'STORE_CLOSED');
  await own.initialize();
  const pool = poolOf(own);
  const db = await openTypeorm(own, { schema: 'typeorm_handle' });
  const checkedOut = new Promise<void>((resolve) => void pool.once('acquire', () => resolve()));
  await db.store.append('banking.account.v1-core-a1', [newEvent()]);
  await checkedOut;
  await db[Symbol.asyncDispose]();
  await rejectsWith(() => db.store.head(), 'STORE_CLOSED');
  assert.deepEqual(await own.query('select 1 as one'), [{ one: 1 }]);
  await own.destroy();
});

test('terminated connections are replaced: no message is lost, and notifications work again', async () => {
  const own = await new DataSource({
    type: 'postgres',
    url,
    poolSize: 4,
    logging: false,
    applicationName: 'typeorm_cut',
  }).initialize();
  const outbox = new TypeormOutboxRepository(own, { schema: 'typeorm_cut' });
  const sent = new Set<string>();
  const dispatcher = createOutboxDispatcher({
    ledger: outbox,
    // Only a notification can wake the dispatcher in time.
    tickIntervalMs: 3_600_000,
    deliver: async ({ sourceEventId }) => void sent.add(sourceEventId),
  });
  await dispatcher.start();
  for (let round = 0; round < 2; round += 1) {
    const before = sent.size;
    // Enqueue through another pool, like another process: only the server can notify the dispatcher.
    await eventually('the dispatcher sends messages of other processes', async () => {
      await dataSource.transaction((manager) => outbox.enqueueIn(manager, [newMessage()]));
      return sent.size > before;
    });
    await dataSource.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = 'typeorm_cut'`,
    );
  }
  await eventually('all messages are sent', async () => {
    const { PENDING, CLAIMED, FAILED } = await outbox.counts().catch(() => ({
      PENDING: 1,
      CLAIMED: 0,
      FAILED: 0,
    }));
    return PENDING + CLAIMED + FAILED === 0;
  });
  await dispatcher.stop();
  await outbox[Symbol.asyncDispose]();
  await own.destroy();
});

const schemas = sharedSchemas(poolOf(dataSource), migratePostgresOutbox);
/** A second DataSource, like that of another process. */
const other = await new DataSource({ type: 'postgres', url, poolSize: 6 }).initialize();
after(() => other.destroy());

for (const { name, skip, run } of outboxLedgerConformance<TypeormTransaction>({
  capabilities: { durable: true, crossProcess: true, callerTransaction: true },
  async open() {
    const schema = await schemas.take();
    let isIntact = true;
    return {
      ledger: new TypeormOutboxRepository(dataSource, { schema }),
      second: async () => new TypeormOutboxRepository(other, { schema }),
      inTransaction: (work) => other.transaction((manager) => work(manager)),
      async outage() {
        isIntact = false;
        await dataSource.query(`drop table ${schema}.messages cascade`);
      },
      readRelation: () => dataSource.query(`select * from ${schema}.integration_outbox`),
      async close() {
        if (isIntact) schemas.release(schema);
      },
    };
  },
})) {
  test(`outbox on TypeORM: ${name}`, { skip: skip ?? false }, run);
}
