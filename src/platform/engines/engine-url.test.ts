import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { hasCode } from '../../foundation/error.ts';
import { isSameDatabase, parseEngineUrl, redactUrl } from './engine-url.ts';

const parse = (url: string) => parseEngineUrl(url, 'store');

test('the scheme chooses the engine', () => {
  assert.deepEqual(parse('memory:'), { engine: 'memory', connection: 'memory:' });
  assert.deepEqual(parse('sqlite:a/b.db'), {
    engine: 'sqlite',
    connection: `sqlite:${resolve('a/b.db')}`,
  });
  assert.deepEqual(parse('SQLITE:///a/b.db'), { engine: 'sqlite', connection: 'sqlite:/a/b.db' });
  for (const url of [
    'postgres://localhost/shop',
    'postgresql://u:p%40@[::1]:5432/shop?sslmode=require',
    'postgres://u:p@/shop?host=/var/run/postgresql',
    'postgres:///shop',
  ]) {
    assert.deepEqual(parse(url), { engine: 'postgres', connection: url });
  }
});

test('the schema of a PostgreSQL URL is removed, and other parameters are passed to the driver', () => {
  assert.deepEqual(parse('postgres://h/db?sslmode=require&schema=shop_1'), {
    engine: 'postgres',
    connection: 'postgres://h/db?sslmode=require',
    schema: 'shop_1',
  });
  assert.deepEqual(parse('postgres://h/db?schema=shop'), {
    engine: 'postgres',
    connection: 'postgres://h/db',
    schema: 'shop',
  });
});

test('the URLs of MongoDB, Redis and NATS are passed to their drivers unchanged', () => {
  for (const [engine, url] of [
    ['mongodb', 'mongodb://h/db'],
    ['mongodb', 'mongodb+srv://h/db'],
    ['redis', 'redis://u:p@h:6379/1'],
    ['redis', 'rediss+cluster://a:6379,b:6379'],
    ['nats', 'nats+tls://h:4222'],
    ['nats', 'tls://h:4222'],
  ] as const) {
    assert.deepEqual(parse(url), { engine, connection: url });
  }
});

test('a KurrentDB URL is passed to its client with the new name of its scheme', () => {
  for (const [url, connection] of [
    ['kurrentdb://h:2113?tls=false', 'kurrentdb://h:2113?tls=false'],
    ['kurrentdb+discover://h', 'kurrentdb+discover://h'],
    ['esdb://u:p@h:2113', 'kurrentdb://u:p@h:2113'],
    ['esdb+discover://h:2113', 'kurrentdb+discover://h:2113'],
  ] as const) {
    assert.deepEqual(parse(url), { engine: 'kurrentdb', connection });
  }
});

for (const [url, pattern] of [
  ['events.db', /must start with its engine: one of memory:, sqlite:, postgres:/],
  ['', /must start with its engine: one of .*redis:, rediss:/],
  ['mysql://h/db', /engine 'mysql:' is not supported; supported: memory:, sqlite:, postgres:/],
  ['localhost:6379', /engine 'localhost:' is not supported/],
  ['postgre://h/db', /Did you mean postgres:\?/],
  ['rediss+clusters://u:secret@h', /Did you mean rediss\+cluster:\?/],
  ['kurrentbd://h:2113', /Did you mean kurrentdb:/],
  ['sqlite:', /needs a file/],
  ['sqlite::memory:', /needs a file/],
  [
    'postgres://u:secret@h:5432',
    /names no database: .*postgres:\/\/user:password@host:5432\/database/,
  ],
  ['postgres://u:secret@h/?sslmode=require', /names no database/],
  ['mongodb://u:secret@h', /names no database: .*mongodb:\/\/host:27017\/database/],
  ['mongodb+srv://u:secret@h/?w=1', /names no database/],
  ['postgres:shop', /needs \/\/ and a host/],
  ['postgres://u:secret/x@h/db', /percent-encoded/],
  ['postgres://u:secret#x@h/db', /%23/],
  ["postgres://h/db?schema=a'secret", /a schema name must have 1 to 63/],
  ['postgres://h/db?schema=', /a schema name must have 1 to 63/],
] as const) {
  test(`rejects '${url}' with the reason, the setting and without its password`, () => {
    assert.throws(
      () => parse(url),
      (error) =>
        hasCode(error, 'CONFIG_INVALID') &&
        error.message.startsWith('store (MILLRACE_STORE): ') &&
        pattern.test(error.message) &&
        !JSON.stringify([error.message, error.details]).includes('secret'),
    );
  });
}

test('two URLs name one database if they differ only in the way it is written', () => {
  for (const [one, other, isSame] of [
    ['sqlite:a.db', `sqlite://${resolve('a.db')}`, true],
    ['sqlite:a.db', 'sqlite:b.db', false],
    ['postgres://h/db', 'postgres://h/db?schema=shop', true],
    ['postgres://h/db?schema=a', 'postgres://h/db?schema=b', false],
    ['postgres://h/db', 'postgres://h/other', false],
    ['esdb://h', 'kurrentdb://h', true],
    ['redis://h', 'nats://h', false],
    ['postgres://h/db', 'postgresql://H:5432/db', true],
    ['postgres://h/db', 'postgres://h:5433/db', false],
    ['postgres://u:p%40@h/db', 'postgres://u:p@@h/db', true],
    ['postgres://reader@h/db', 'postgres://writer@h/db', false],
    ['redis://h', 'redis://h:6379/0', true],
    ['redis://h', 'rediss://h', false],
    ['redis://h/1', 'redis://h', false],
    ['nats://h', 'nats://h:4222/', true],
    ['mongodb://h/db', 'mongodb://h:27017/db', true],
    ['mongodb://a,b/db', 'mongodb://a,b/db', true],
    ['mongodb://h/db', 'mongodb+srv://h/db', false],
    ['kurrentdb://h?tls=false', 'esdb://h:2113?tls=false', true],
    ['kurrentdb://h?tls=false', 'kurrentdb://h', false],
  ] as const) {
    assert.equal(isSameDatabase(parse(one), parse(other)), isSame, `${one} and ${other}`);
  }
});

test('a password is replaced by three stars, wherever it is', () => {
  for (const [url, shown] of [
    ['postgres://app:secret@db/shop', 'postgres://app:***@db/shop'],
    ['postgres://:secret@db/shop', 'postgres://:***@db/shop'],
    ['postgres://app@db/shop', 'postgres://app@db/shop'],
    ['postgres://db/shop?user=app&password=secret', 'postgres://db/shop?user=app&password=***'],
    ['postgres://db/shop?sslpassword=secret&a=1', 'postgres://db/shop?sslpassword=***&a=1'],
    ['mongodb+srv://a:secret@h1,h2/db', 'mongodb+srv://a:***@h1,h2/db'],
    ['nats://token@h:4222', 'nats://***@h:4222'],
    ['sqlite:.millrace/events.db', 'sqlite:.millrace/events.db'],
  ] as const) {
    assert.equal(redactUrl(url), shown);
  }
});

test('no password is shown, not even one that should have been encoded', () => {
  const password = fc
    .string({ minLength: 4, unit: 'grapheme-ascii' })
    .filter((text) => text.trim().length > 3);
  fc.assert(
    fc.property(password, (text) => {
      const secret = `<${text}>`;
      const url = `postgres://app:${secret}@db.example/shop`;
      assert.ok(!redactUrl(url).includes(secret));
      try {
        parse(url);
      } catch (error) {
        assert.ok(error instanceof Error && !error.message.includes(secret));
      }
    }),
  );
});
