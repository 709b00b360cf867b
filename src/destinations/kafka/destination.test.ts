// Tests without a broker. Tests with a broker are in destination.engines.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDelivery } from '../../delivery/create-delivery.ts';
import type { DeliveryMessage } from '../../delivery/delivery-message.ts';
import { Terminal } from '../../foundation/handler-outcome.ts';
import { reservePort } from '../../testing/servers/reserve-port.ts';
import { kafkaDestination } from './destination.ts';

const message: DeliveryMessage = {
  id: 'o-1',
  integrationType: 'kafka:payments',
  eventType: 'payment.completed.v1',
  payload: { amount: 5 },
  sourceStreamId: 'paymenthub.payment.v1-core-1',
  sourceEventId: 'e-1',
};

test('retries after a refused connection, not as ambiguous', async () => {
  await using unused = await reservePort();
  await using kafka = await kafkaDestination(`${unused.host}:${unused.port}`);
  const { deliver } = createDelivery({
    destinations: { kafka: { send: kafka, timeoutMs: 60_000 } },
  });
  const outcome = await deliver(message);
  assert.ok(outcome.kind === 'retry' && outcome.attempted !== false, JSON.stringify(outcome));
  assert.match(outcome.error, /ECONNREFUSED|failed/);
  assert.equal(outcome.ambiguous, undefined);
});

test('connects with the first message only, and closes without a connection', async () => {
  const kafka = await kafkaDestination('127.0.0.1:1');
  await kafka[Symbol.asyncDispose]();
  assert.deepEqual(await kafka.sendBatch([message]), [
    { kind: 'retry', error: 'the destination is closed', attempted: false },
  ]);
  assert.deepEqual(await kafka.sendBatch([]), []);
});

test('rejects invalid settings', async () => {
  await assert.rejects(kafkaDestination(''), { code: 'CONFIG_INVALID' });
  await assert.rejects(kafkaDestination('a', { recordsMax: 0 }), { code: 'CONFIG_INVALID' });
});

test('a topic function that throws fails only that message', async () => {
  await using unused = await reservePort();
  await using kafka = await kafkaDestination(`${unused.host}:${unused.port}`, {
    topic: ({ eventType }) => {
      if (eventType === 'odd.v1') throw new Terminal('no topic for it');
      return 'payments';
    },
  });
  const outcomes = await kafka.sendBatch([{ ...message, eventType: 'odd.v1' }, message]);
  assert.partialDeepStrictEqual(outcomes[0], { kind: 'dead', error: 'no topic for it' });
  assert.equal(outcomes[1]?.kind, 'retry');
  assert.equal(outcomes.length, 2);
});
