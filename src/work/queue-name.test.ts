import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../foundation/error.ts';
import { checkQueueName } from './queue-name.ts';

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
