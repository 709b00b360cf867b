import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { hasCode } from '../../foundation/error.ts';
import { parseStoreUrl, redactStoreUrl } from './store-url.ts';

test('the scheme chooses the engine', () => {
  assert.deepEqual(parseStoreUrl('memory:'), { engine: 'memory' });
  assert.deepEqual(parseStoreUrl('sqlite:a/b.db'), { engine: 'sqlite', path: 'a/b.db' });
  assert.deepEqual(parseStoreUrl('SQLITE:///a/b.db'), { engine: 'sqlite', path: '/a/b.db' });
  for (const url of [
    'postgres://localhost/shop',
    'postgresql://u:p%40@[::1]:5432/shop?sslmode=require',
    'postgres://u:p@/shop?host=/var/run/postgresql',
    'postgres:///shop',
  ]) {
    assert.deepEqual(parseStoreUrl(url), {
      engine: 'postgres',
      connection: url,
      schema: 'millrace',
    });
  }
});

test('the schema of a PostgreSQL URL is removed, and other parameters are passed to the driver', () => {
  assert.deepEqual(parseStoreUrl('postgres://h/db?sslmode=require&schema=shop_1'), {
    engine: 'postgres',
    connection: 'postgres://h/db?sslmode=require',
    schema: 'shop_1',
  });
  assert.deepEqual(parseStoreUrl('postgres://h/db?schema=shop'), {
    engine: 'postgres',
    connection: 'postgres://h/db',
    schema: 'shop',
  });
});

test('a MongoDB URL is passed to its driver unchanged', () => {
  for (const url of ['mongodb://h/db', 'mongodb+srv://h/db']) {
    assert.deepEqual(parseStoreUrl(url), { engine: 'mongodb', connection: url });
  }
});

test('a KurrentDB URL is passed to its client with the new name of its scheme', () => {
  for (const [url, connection] of [
    ['kurrentdb://h:2113?tls=false', 'kurrentdb://h:2113?tls=false'],
    ['kurrentdb+discover://h', 'kurrentdb+discover://h'],
    ['esdb://u:p@h:2113', 'kurrentdb://u:p@h:2113'],
    ['esdb+discover://h:2113', 'kurrentdb+discover://h:2113'],
  ] as const) {
    assert.deepEqual(parseStoreUrl(url), { engine: 'kurrentdb', connection });
  }
});

for (const [url, code, pattern] of [
  ['events.db', 'CONFIG_INVALID', /must start with its engine: one of sqlite:, postgres:/],
  ['', 'CONFIG_INVALID', /must start with its engine/],
  [
    'mysql://h/db',
    'CONFIG_INVALID',
    /engine 'mysql:' is not supported; supported: sqlite:, postgres:/,
  ],
  ['postgre://h/db', 'CONFIG_INVALID', /Did you mean postgres:\?/],
  ['kurrent://h:2113', 'CONFIG_INVALID', /engine 'kurrent:' is not supported/],
  ['sqlite:', 'CONFIG_INVALID', /needs a file/],
  ['sqlite::memory:', 'CONFIG_INVALID', /needs a file/],
  ['postgres:shop', 'CONFIG_INVALID', /looks like postgres:\/\//],
  ['postgres://u:pa/ss@h/db', 'CONFIG_INVALID', /looks like postgres:\/\//],
  ['postgres://u:pa#ss@h/db', 'CONFIG_INVALID', /%23/],
  ["postgres://h/db?schema=a'b", 'CONFIG_INVALID', /a schema name must have 1 to 63/],
  ['postgres://h/db?schema=', 'CONFIG_INVALID', /a schema name must have 1 to 63/],
] as const) {
  test(`rejects '${url}' with the reason`, () => {
    assert.throws(
      () => parseStoreUrl(url),
      (error) => hasCode(error, code) && pattern.test(error.message),
    );
  });
}

test('a password is replaced by three stars, wherever it is', () => {
  for (const [url, shown] of [
    ['postgres://app:secret@db/shop', 'postgres://app:***@db/shop'],
    ['postgres://:secret@db/shop', 'postgres://:***@db/shop'],
    ['postgres://app@db/shop', 'postgres://app@db/shop'],
    ['postgres://db/shop?user=app&password=secret', 'postgres://db/shop?user=app&password=***'],
    ['postgres://db/shop?sslpassword=secret&a=1', 'postgres://db/shop?sslpassword=***&a=1'],
    ['mongodb+srv://a:secret@h1,h2/db', 'mongodb+srv://a:***@h1,h2/db'],
    ['sqlite:.millrace/events.db', 'sqlite:.millrace/events.db'],
  ] as const) {
    assert.equal(redactStoreUrl(url), shown);
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
      assert.ok(!redactStoreUrl(url).includes(secret));
      try {
        parseStoreUrl(url);
      } catch (error) {
        assert.ok(error instanceof Error && !error.message.includes(secret));
      }
    }),
  );
});
