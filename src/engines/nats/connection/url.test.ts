import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../../foundation/error.ts';
import { parseNatsUrl } from './url.ts';

const plain = {
  tls: false,
  servers: ['h:4222'],
  user: undefined,
  password: undefined,
  token: undefined,
};

test('parses servers and credentials', () => {
  assert.deepEqual(parseNatsUrl('nats://h'), plain);
  assert.deepEqual(parseNatsUrl('nats+tls://ada:p%40ss@a:1,[::1]:2/'), {
    ...plain,
    tls: true,
    servers: ['a:1', '[::1]:2'],
    user: 'ada',
    password: 'p@ss',
  });
  assert.deepEqual(parseNatsUrl('tls://t0ken@h'), { ...plain, tls: true, token: 't0ken' });
});

for (const url of [
  'nats:',
  'nats://',
  'nats://h:0',
  'nats://h/x',
  'nats://u:%zz@h',
  'nats://a b',
]) {
  test(`rejects '${url}' and names the reason`, () => {
    assert.throws(
      () => parseNatsUrl(url),
      (error) => hasCode(error, 'CONFIG_INVALID') && /use nats:/.test(error.message),
    );
  });
}
