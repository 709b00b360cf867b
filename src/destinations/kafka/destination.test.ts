import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDelivery } from '../../delivery/create-delivery.ts';
import type { DeliveryMessage } from '../../delivery/delivery-message.ts';
import { kafkaDestination } from './destination.ts';

const message: DeliveryMessage = {
  id: 'o-1',
  integrationType: 'computed',
  eventType: 'payments',
  payload: {},
  sourceStreamId: 'paymenthub.payment.v1-core-1',
  sourceEventId: 'e-1',
};

test('a message chooses no topic of the cluster, and none that the function does not return', async () => {
  // Without a broker, a message that may be sent is retried.
  const broker = '127.0.0.1:1';
  const timeoutMs = 500;
  const computedTopic = { topic: ({ eventType }: DeliveryMessage) => eventType, timeoutMs };
  await using computed = await kafkaDestination(broker, computedTopic);
  await using kafka = await kafkaDestination(broker, { timeoutMs });
  await using fixed = await kafkaDestination(broker, { topic: '_audit', timeoutMs });
  const { deliver } = createDelivery({ destinations: { computed, kafka, fixed } });
  const hostile = ['__consumer_offsets', '__transaction_state', '_schemas', '', '..', 'a b', 'a\n'];
  for (const eventType of hostile) {
    const outcome = await deliver({ ...message, eventType });
    assert.equal(outcome.kind, 'dead', JSON.stringify(eventType));
  }
  assert.equal((await deliver({ ...message, integrationType: 'kafka:_schemas' })).kind, 'dead');
  assert.equal((await deliver(message)).kind, 'retry');
  // The topic is that of the configuration, whatever the message contains.
  const contact = { topic: '_schemas', stream: '_schemas' };
  const sent = await deliver({ ...message, integrationType: 'fixed', payload: contact });
  assert.equal(sent.kind, 'retry');
});
