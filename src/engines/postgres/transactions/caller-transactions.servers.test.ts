// Enqueueing in transactions of other libraries; only Prisma is simulated.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, describe, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import knex, { type Knex } from 'knex';
import { CamelCasePlugin, Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { DataSource, type EntityManager } from 'typeorm';
import { hasCode } from '../../../foundation/error.ts';
import { newMessage } from '../../../testing/conformance/outbox/fixture.ts';
import { createOutboxDispatcher } from '../../../outbox/outbox-dispatcher.ts';
import { sharedPostgres } from '../../../testing/servers/shared-servers.ts';
import { inTransaction as transact } from '../connection/connection.ts';
import { fromDrizzle } from './from-drizzle.ts';
import { fromKnex } from './from-knex.ts';
import { fromKysely } from './from-kysely.ts';
import { fromPrisma, type PrismaTransaction } from './from-prisma.ts';
import { fromTypeorm } from './from-typeorm.ts';
import { openPostgres } from '../open-postgres.ts';
import type { PostgresTransaction } from '../outbox/ledger.ts';
import type { TransactionQuery } from './transaction-query.ts';

const { url } = await sharedPostgres();
const pool = new pg.Pool({ connectionString: url, max: 8 });
await pool.query('create table orders (id text primary key)');
const db = await openPostgres(url, { roles: ['outbox'], connectionsMax: 4 });
const ledger = db.outbox;
const source = await new DataSource({ type: 'postgres', url }).initialize();
const kysely = new Kysely<{ orders: { id: string } }>({
  dialect: new PostgresDialect({ pool }),
  plugins: [new CamelCasePlugin()],
});
const camel = (key: string): string =>
  key.replaceAll(/_(\w)/g, (_all, letter: string) => letter.toUpperCase());
const knexes = knex({
  client: 'pg',
  connection: url,
  // Programs that use camelCase names often configure Knex like this.
  postProcessResponse: (result: { readonly rows?: readonly object[] }) => ({
    rows: result.rows?.map((row) =>
      Object.fromEntries(Object.entries(row).map(([key, cell]) => [camel(key), cell])),
    ),
  }),
});
// Use a role with minimal privileges, because fromDrizzle locks a system table.
const role = `shop_${randomUUID().slice(0, 8)}`;
await pool.query(`create role ${role} login`);
await pool.query(`grant usage on schema core_outbox to ${role};
  grant select, insert on all tables in schema core_outbox to ${role};
  grant usage on all sequences in schema core_outbox to ${role};
  grant insert, select on orders to ${role}`);
const ordinary = new pg.Pool({ connectionString: url.replace(/\/\/[^@/]+@/, `//${role}@`) });
const drizzles = drizzle({ client: ordinary });
after(async () => {
  await db[Symbol.asyncDispose]();
  await source.destroy();
  await knexes.destroy();
  await ordinary.end();
  await pool.end();
});

/** The work of a program in its transaction. */
type Work = (transaction: PostgresTransaction) => Promise<void>;

interface Library {
  readonly name: string;
  /** Inserts an order, runs the work and commits; an error of the work rolls back. */
  readonly inTransaction: (orderId: string, work: Work) => Promise<void>;
  /** Calls that pass no transaction of this library. */
  readonly invalidCalls: readonly (() => unknown)[];
}

/** An object in the shape of Prisma's transaction client; it ends with its transaction. */
async function likePrisma(work: (tx: PrismaTransaction) => Promise<void>): Promise<void> {
  let isOpen = true;
  try {
    await transact(pool, (client) =>
      work({
        async $queryRawUnsafe(text, ...values) {
          if (isOpen) return (await client.query(text, values)).rows;
          throw Object.assign(new Error('Transaction already closed'), { code: 'P2028' });
        },
      }),
    );
  } finally {
    isOpen = false;
  }
}

const untyped = (value: unknown): never => value as never;

const libraries: readonly Library[] = [
  {
    name: 'a pg client',
    inTransaction: (orderId, work) =>
      transact(pool, async (client) => {
        await client.query('insert into orders (id) values ($1)', [orderId]);
        await work(client);
      }),
    invalidCalls: [() => ledger.enqueueIn(untyped(pool), [newMessage()])],
  },
  {
    name: 'the manager of TypeORM',
    inTransaction: (orderId, work) =>
      source.transaction(async (manager: EntityManager) => {
        await manager.query('insert into orders (id) values ($1)', [orderId]);
        await work(fromTypeorm(manager));
      }),
    invalidCalls: [
      () => fromTypeorm(untyped({})),
      () => ledger.enqueueIn(fromTypeorm(source.manager), [newMessage()]),
    ],
  },
  {
    name: 'the query runner of TypeORM',
    async inTransaction(orderId, work) {
      const runner = source.createQueryRunner();
      try {
        await runner.startTransaction();
        await runner.query('insert into orders (id) values ($1)', [orderId]);
        await work(fromTypeorm(runner));
        await runner.commitTransaction();
      } catch (error) {
        await runner.rollbackTransaction();
        throw error;
      } finally {
        await runner.release();
      }
    },
    invalidCalls: [() => ledger.enqueueIn(fromTypeorm(source.createQueryRunner()), [newMessage()])],
  },
  {
    name: 'Kysely',
    inTransaction: (orderId, work) =>
      kysely.transaction().execute(async (tx) => {
        await tx.insertInto('orders').values({ id: orderId }).execute();
        await work(fromKysely(tx));
      }),
    invalidCalls: [() => fromKysely(untyped(kysely)), () => fromKysely(untyped(undefined))],
  },
  {
    name: 'Drizzle',
    inTransaction: (orderId, work) =>
      drizzles.transaction(async (tx) => {
        await tx.execute(sql`insert into orders (id) values (${orderId})`);
        await work(fromDrizzle(tx, sql));
      }),
    invalidCalls: [
      () => fromDrizzle(untyped(drizzles), sql),
      () => fromDrizzle(untyped(null), sql),
    ],
  },
  {
    name: 'Knex',
    inTransaction: (orderId, work) =>
      knexes.transaction(async (trx: Knex.Transaction) => {
        await trx('orders').insert({ id: orderId });
        await work(fromKnex(trx));
      }),
    invalidCalls: [() => fromKnex(untyped(knexes)), () => fromKnex(untyped('trx'))],
  },
  {
    name: 'an object in the shape of Prisma’s transaction client',
    inTransaction: (orderId, work) =>
      likePrisma(async (tx) => {
        await tx.$queryRawUnsafe('insert into orders (id) values ($1)', orderId);
        await work(fromPrisma(tx));
      }),
    invalidCalls: [
      () => fromPrisma(untyped({ $queryRawUnsafe: () => [], $connect: () => undefined })),
      () => fromPrisma(untyped({ query: () => [] })),
    ],
  },
];

const isTransactionInvalid = (error: unknown): boolean => hasCode(error, 'TRANSACTION_INVALID');

for (const { name, inTransaction, invalidCalls } of libraries) {
  describe(`in a transaction of ${name}`, () => {
    const orderExists = async (id: string): Promise<boolean> =>
      (await pool.query('select from orders where id = $1', [id])).rowCount === 1;

    test('a message exists after the commit and is delivered; a duplicate is reported', async () => {
      const item = newMessage();
      let enqueuedId = '';
      await inTransaction(item.sourceEventId, async (transaction) => {
        const [first, again] = await ledger.enqueueIn(transaction, [item, item]);
        assert.equal(first?.isDuplicate, false);
        assert.deepEqual(again, { id: first.id, isDuplicate: true });
        assert.deepEqual(await ledger.enqueueIn(transaction, [item]), [again]);
        assert.equal(await ledger.find(first.id), undefined, 'seen before the commit');
        enqueuedId = first.id;
      });
      assert.ok(await orderExists(item.sourceEventId));
      const delivered = Promise.withResolvers<unknown>();
      await using dispatcher = createOutboxDispatcher({
        ledger,
        deliver: async (message) => {
          if (message.id === enqueuedId) delivered.resolve(message.payload);
        },
      });
      await dispatcher.start();
      assert.deepEqual(await delivered.promise, item.payload);
    });

    test('a rollback leaves no message', async () => {
      const item = newMessage();
      const given: string[] = [];
      const broken = inTransaction(item.sourceEventId, async (transaction) => {
        const [enqueued] = await ledger.enqueueIn(transaction, [item]);
        assert.equal(enqueued?.isDuplicate, false);
        given.push(enqueued.id);
        throw new Error('the program changed its mind');
      });
      await assert.rejects(broken, /changed its mind/);
      assert.equal(await orderExists(item.sourceEventId), false);
      assert.equal(await ledger.find(given[0] ?? ''), undefined);
    });

    test('rejects messages in a transaction that has ended', async () => {
      const late = newMessage();
      const transactions: PostgresTransaction[] = [];
      await inTransaction(newMessage().sourceEventId, async (transaction) => {
        await ledger.enqueueIn(transaction, [newMessage()]);
        transactions.push(transaction);
      });
      const [ended] = transactions;
      assert.ok(ended !== undefined);
      await assert.rejects(ledger.enqueueIn(ended, [late]), isTransactionInvalid);
      const [fresh] = await ledger.enqueueMany([late]);
      assert.equal(fresh?.isDuplicate, false, 'it was enqueued after all');
    });

    test('rejects a value that is not a transaction', async () => {
      for (const call of invalidCalls)
        await assert.rejects(async () => call(), isTransactionInvalid);
    });

    test('values reach the database as with pg', async () => {
      const day = new Date('2026-02-03T04:05:06.789Z');
      const values = [['a', null, `b"c,{}`], day, null, true, Buffer.from('ü?$1'), '{"$1":"?"}', 7];
      const text = `select $1::text[] as list, extract(epoch from $2::timestamptz)::float8 as day, $3::text as nothing, $4::boolean as yes,
        $5::bytea as bytes, $6::jsonb ? '$1' as known, $7::integer + $7::integer as twice, '?$2' as text`;
      await inTransaction(newMessage().sourceEventId, async (transaction) => {
        const query: TransactionQuery =
          typeof transaction === 'function'
            ? transaction
            : async (statement, given) =>
                (await transaction.query<object>(statement, [...given])).rows;
        const [row] = (await query(text, values)) as [Record<string, unknown>];
        assert.deepEqual(row, {
          list: values[0],
          day: day.getTime() / 1_000,
          nothing: null,
          yes: true,
          bytes: values[4],
          known: true,
          twice: 14,
          text: '?$2',
        });
      });
    });
  });
}

test('rejects a query function that returns other columns', async () => {
  for (const rows of [[{ id: 7 }], [{}]]) {
    await assert.rejects(
      ledger.enqueueIn(async () => rows, [newMessage()]),
      isTransactionInvalid,
    );
  }
});
