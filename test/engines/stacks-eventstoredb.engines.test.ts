// The stacks of the naming document and of the outbox document, on the EventStoreDB of MILLRACE_TEST_KURRENTDB: the same
// scenarios that `npm test` runs on the stand-in. stacks-mongodb.engines.test.ts has the third stack.

import { test } from 'node:test';

if (process.env['MILLRACE_TEST_KURRENTDB'] === undefined) {
  test('the stacks with EventStoreDB', { skip: 'MILLRACE_TEST_KURRENTDB is not set' });
} else {
  await import('../scenarios/eventstoredb-redis.servers.test.ts');
  await import('../nest/outbox-document.servers.test.ts');
}
