import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { hasCode } from '../../../foundation/error.ts';
import { parseRedisUrl } from './url.ts';

const plain = {
  cluster: false,
  tls: false,
  nodes: [{ host: 'h', port: 6379 }],
  username: undefined,
  password: undefined,
  db: 0,
};

test('parses the server, database and credentials of a URL', () => {
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

test('recognizes a cluster by its scheme or by the cluster parameter, with any number of nodes', () => {
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

for (const [url, reason] of [
  ['redis:', /expected redis:/],
  ['redis://', /expected redis:/],
  ['redis://h:0', /expected redis:/],
  ['redis://h:99999', /expected redis:/],
  ['redis://u:%zz@h', /expected redis:/],
  ['redis://a,b', /cluster scheme/],
  ['redis://h/shop', /must be a number/],
  ['redis+cluster://h/2', /only database 0/],
  ['redis://h?family=6', /only supported parameter is \?cluster/],
] as const) {
  test(`rejects '${url}' and names the reason`, () => {
    assert.throws(
      () => parseRedisUrl(url),
      (error) => hasCode(error, 'CONFIG_INVALID') && reason.test(error.message),
    );
  });
}

test('never includes the password in the error text', () => {
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
