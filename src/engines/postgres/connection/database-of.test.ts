import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { databaseOf } from './database-of.ts';

const cases: readonly (readonly [config: string | pg.ClientConfig, database: string])[] = [
  ['postgres://DB.Example.com/shop', 'postgres://db.example.com:5432/shop'],
  ['postgres://ada:secret@db:6000/Shop?sslmode=disable', 'postgres://db:6000/Shop'],
  ['postgresql://ada@/shop?host=/run/Postgres&port=5433', 'postgres:///run/Postgres:5433/shop'],
  ['socket:/run/postgresql?db=shop', 'postgres:///run/postgresql:5432/shop'],
  [{ host: 'db', database: 'shop', user: 'ada' }, 'postgres://db:5432/shop'],
  [{ host: 'db', port: 1, user: 'ada' }, 'postgres://db:1/ada'],
];

for (const [config, expected] of cases) {
  test(`${JSON.stringify(config)} is the database ${expected}`, () => {
    assert.equal(databaseOf(new pg.Client(config)), expected);
  });
}

test('missing values are those of the environment or the defaults, as for the driver', (context) => {
  const { PGHOST, PGPORT, PGDATABASE } = process.env;
  context.after(() => {
    for (const [name, value] of Object.entries({ PGHOST, PGPORT, PGDATABASE })) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });
  for (const environment of [{}, { PGHOST: 'Db', PGPORT: '6000', PGDATABASE: 'shop' }]) {
    for (const name of ['PGHOST', 'PGPORT', 'PGDATABASE']) delete process.env[name];
    Object.assign(process.env, environment);
    for (const config of [{ database: 'shop' }, { database: 'shop', host: '', port: 5433 }]) {
      assert.equal(databaseOf(config), databaseOf(new pg.Client(config)));
    }
  }
  assert.equal(databaseOf({}), 'postgres://db:6000/shop');
});
