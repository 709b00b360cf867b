import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { hasCode } from '../../foundation/error.ts';
import { parseRedisUrl } from './redis-url.ts';

const plain = {
  cluster: false,
  tls: false,
  nodes: [{ host: 'h', port: 6379 }],
  username: undefined,
  password: undefined,
  db: 0,
};

test('a URL names one server, its database and who asks', () => {
  assert.deepEqual(parseRedisUrl('redis://h'), plain);
  assert.deepEqual(parseRedisUrl('rediss://ada:p%40ss:x@h:7000/3'), {
    ...plain,
    tls: true,
    nodes: [{ host: 'h', port: 7000 }],
    username: 'ada',
    password: 'p@ss:x',
    db: 3,
  });
  assert.deepEqual(parseRedisUrl('redis://:secret@[::1]:1'), {
    ...plain,
    nodes: [{ host: '::1', port: 1 }],
    password: 'secret',
  });
});

test('a cluster is named by its scheme or by a flag, with as many nodes as are known', () => {
  const nodes = [
    { host: 'a', port: 1 },
    { host: 'b', port: 6379 },
  ];
  assert.deepEqual(parseRedisUrl('redis+cluster://a:1,b'), { ...plain, cluster: true, nodes });
  assert.deepEqual(parseRedisUrl('rediss://a:1,b/?cluster'), {
    ...plain,
    tls: true,
    cluster: true,
    nodes,
  });
  assert.equal(parseRedisUrl('redis://h?cluster=false').cluster, false);
});

for (const [url, said] of [
  ['redis:', /looks like redis:/],
  ['redis://', /looks like redis:/],
  ['redis://h:0', /looks like redis:/],
  ['redis://h:99999', /looks like redis:/],
  ['redis://u:%zz@h', /looks like redis:/],
  ['redis://a,b', /several hosts are a cluster/],
  ['redis://h/shop', /database is a number/],
  ['redis+cluster://h/2', /no databases but 0/],
  ['redis://h?family=6', /\?cluster only/],
] as const) {
  test(`refuses '${url}' and says why`, () => {
    assert.throws(
      () => parseRedisUrl(url),
      (error) => hasCode(error, 'CONFIG_INVALID') && said.test(error.message),
    );
  });
}

test('no password appears in what is said of a URL', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 4 }), (text) => {
      const secret = `<${text}>`;
      try {
        parseRedisUrl(`redis://app:${secret}@h/x`);
      } catch (error) {
        assert.ok(error instanceof Error && !error.message.includes(secret));
      }
    }),
  );
});
