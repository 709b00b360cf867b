import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { hasCode } from '../foundation/error.ts';
import { propertyRuns } from '../testing/property-runs.ts';
import { checkQueueName, fitsPattern } from './queue-name.ts';

test('a pattern matches like the equivalent regular expression', () => {
  const part = fc.string({ unit: fc.constantFrom('a', 'b', ':', '*') });
  fc.assert(
    fc.property(part, fc.string({ unit: fc.constantFrom('a', 'b', ':') }), (pattern, name) => {
      const expected = new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(name);
      assert.equal(fitsPattern(pattern, name), expected);
    }),
    { numRuns: propertyRuns(1_000) },
  );
});

test('the documented names of queues are valid, and names that BullMQ cannot store are not', () => {
  for (const name of [
    'MessageRequestQueue',
    'mq:{core}:paymenthub:payment:v1:process',
    'mq:{outbox}:outbox-webhook~partner-x@core',
    'mq:{outbox}:outbox-*',
  ]) {
    checkQueueName(name);
  }
  const bad = ['', 'a:', ':a', 'a{b}', 'mq *:a', 'mq:*:a', 'x'.repeat(1_001)];
  for (const name of bad) {
    assert.throws(
      () => checkQueueName(name),
      (error) => hasCode(error, 'JOB_INVALID'),
      name,
    );
  }
});
