// A read model without our library: one row or hash per account, changed by each event.

import { DatabaseSync } from 'node:sqlite';
import { Redis } from 'ioredis';
import pg from 'pg';

export interface Upserts {
  book(account: string, amount: number): Promise<void>;
  bookings(account: string): Promise<number>;
  empty(): Promise<void>;
  close(): Promise<void>;
}

export function openUpserts(
  target: 'sqlite' | 'postgres' | 'redis',
  address: string,
): Promise<Upserts> {
  return { sqlite: openSqlite, postgres: openPostgres, redis: openRedis }[target](address);
}

async function openSqlite(path: string): Promise<Upserts> {
  const database = new DatabaseSync(path);
  database.exec(`pragma journal_mode = wal; pragma synchronous = normal;
    create table balances (account text primary key, balance real, bookings integer) without rowid`);
  const upsert = database.prepare(
    `insert into balances values (?, ?, 1) on conflict (account)
     do update set balance = balance + excluded.balance, bookings = bookings + 1`,
  );
  const select = database.prepare('select bookings from balances where account = ?');
  return {
    book: async (account, amount) => void upsert.run(account, amount),
    bookings: async (account) => Number(select.get(account)?.['bookings']),
    empty: async () => database.exec('delete from balances'),
    close: async () => database.close(),
  };
}

async function openPostgres(url: string): Promise<Upserts> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query('set synchronous_commit = off');
  await client.query(
    'create table balances (account text primary key, balance double precision, bookings bigint)',
  );
  return {
    async book(account, amount) {
      await client.query({
        name: 'upsert',
        text: `insert into balances as b values ($1, $2, 1) on conflict (account)
               do update set balance = b.balance + excluded.balance, bookings = b.bookings + 1`,
        values: [account, amount],
      });
    },
    async bookings(account) {
      const { rows } = await client.query<{ bookings: string }>(
        'select bookings from balances where account = $1',
        [account],
      );
      return Number(rows[0]?.bookings);
    },
    empty: async () => void (await client.query('truncate balances')),
    close: () => client.end(),
  };
}

async function openRedis(url: string): Promise<Upserts> {
  const client = new Redis(url);
  const key = (account: string): string => `by-hand:${account}`;
  const known = new Set<string>();
  return {
    async book(account, amount) {
      known.add(account);
      await client
        .multi()
        .hincrbyfloat(key(account), 'balance', amount)
        .hincrby(key(account), 'bookings', 1)
        .exec();
    },
    bookings: async (account) => Number(await client.hget(key(account), 'bookings')),
    async empty() {
      await Promise.all([...known].map((account) => client.unlink(key(account))));
    },
    close: async () => void (await client.quit()),
  };
}
