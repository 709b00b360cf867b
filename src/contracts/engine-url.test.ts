import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isCluster, kurrentdbConnection, urlParts } from './engine-url.ts';

test('parses hosts, database and decoded credentials', () => {
  const redis = urlParts('rediss://ada:p%40ss:x@h:7000/3', 'url', 'redis');
  assert.equal(redis.scheme, 'rediss');
  assert.deepEqual([redis.user, redis.password, redis.path], ['ada', 'p@ss:x', '3']);
  assert.deepEqual(redis.hosts, [{ host: 'h', port: 7000 }]);
  const anonymous = urlParts('redis://:secret@[::1]', 'url', 'redis');
  assert.deepEqual([anonymous.user, anonymous.password], [undefined, 'secret']);
  assert.deepEqual(anonymous.hosts, [{ host: '[::1]', port: 6379 }]);
  const nats = urlParts('NATS+TLS://t0ken@a:1,b/', 'url', 'nats');
  assert.deepEqual([nats.scheme, nats.user, nats.password], ['nats+tls', 't0ken', undefined]);
  assert.deepEqual(nats.hosts, [
    { host: 'a', port: 1 },
    { host: 'b', port: 4222 },
  ]);
});

test('recognizes a Redis cluster by its scheme or by the parameter', () => {
  for (const [url, expected] of [
    ['redis+cluster://a:1,b', true],
    ['rediss://a:1,b/?cluster', true],
    ['redis://h?cluster=false', false],
    ['redis://h', false],
  ] as const) {
    assert.equal(isCluster(urlParts(url, 'url', 'redis')), expected, url);
  }
});

test('the old scheme of KurrentDB becomes the current one', () => {
  assert.equal(kurrentdbConnection('esdb+discover://a:1,b'), 'kurrentdb+discover://a:1,b');
  assert.equal(kurrentdbConnection('kdb://h'), 'kdb://h');
});

test('parameters of KurrentDB and MongoDB are known in any spelling', () => {
  for (const name of ['tls-ca-file', 'TLS_VERIFY_CERT', 'nodepreference']) {
    urlParts(`kurrentdb://h?${name}=x`, 'url');
  }
  urlParts('mongodb://h/db?replicaset=rs0', 'url');
  assert.throws(() => urlParts('kurrentdb://h?nodePreference=', 'url'), /has no value/);
  assert.throws(
    () => urlParts('kurrentdb://h?zzzzzz=1', 'url'),
    /unknown parameter 'zzzzzz': known: connectionName, /,
  );
});

test('no error quotes credentials, whatever they contain', () => {
  const urls = ['redis', 'nats', 'kurrentdb', 'mongodb', 'postgres'];
  fc.assert(
    fc.property(
      fc.constantFrom(...urls),
      fc.string({ minLength: 4, unit: 'grapheme-ascii' }),
      (scheme, text) => {
        const secret = `<${text}>`;
        try {
          urlParts(`${scheme}://app:${secret}@h:99999/x`, 'url');
          assert.fail('the port is accepted');
        } catch (error) {
          assert.ok(error instanceof Error);
          assert.ok(!error.message.includes(secret), error.message);
        }
      },
    ),
  );
});
