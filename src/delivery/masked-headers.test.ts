import assert from 'node:assert/strict';
import { test } from 'node:test';
import { maskedHeaders } from './masked-headers.ts';

test('only headers that are known not to be secret keep their value', () => {
  const headers = maskedHeaders({
    'content-type': 'application/json',
    'Idempotency-Key': 'k-1',
    'webhook-id': 'm'.repeat(300),
    'webhook-signature': 'v1,secret',
    authorization: 'Bearer secret',
    cookie: 'a=secret',
    'x-partner': 'secret',
  });
  assert.deepEqual(headers, {
    'content-type': 'application/json',
    'Idempotency-Key': 'k-1',
    'webhook-id': 'm'.repeat(200),
    'webhook-signature': '•••',
    authorization: '•••',
    cookie: '•••',
    'x-partner': '•••',
  });
});
