import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  claimOfJobId,
  deliveryJobId,
  deliveryQueueName,
  parseDeliveryQueueName,
} from './delivery-job.ts';
import { deliveryQueueConformance } from '../testing/conformance/outbox/delivery-queue.ts';
import { memoryDeliveryQueue } from './memory-delivery-queue.ts';

for (const { name, skip, run } of deliveryQueueConformance({
  crossProcess: false,
  open: async (options) => ({ queue: memoryDeliveryQueue(options) }),
})) {
  test(`queues in memory: ${name}`, { skip: skip ?? false }, run);
}

const text = fc.oneof(
  fc.string({ minLength: 1, unit: 'grapheme' }),
  fc.string({
    minLength: 1,
    unit: fc.constantFrom(':', '~', '%', '@', '{', '}', '-', '2', '5', 'a'),
  }),
);

test('every queue name parses back to its parts, and has no colon', () => {
  fc.assert(
    fc.property(text, fc.option(text, { nil: undefined }), fc.boolean(), (type, tenant, per) => {
      const address = { integrationType: type, tenantId: tenant };
      const name = deliveryQueueName(address, per);
      assert.doesNotMatch(name, /[:{}]/);
      assert.deepEqual(
        parseDeliveryQueueName(name),
        per ? address : { integrationType: type, tenantId: undefined },
      );
    }),
  );
  assert.equal(
    deliveryQueueName({ integrationType: 'webhook:partner-x', tenantId: 'core' }, true),
    'outbox-webhook~partner-x@core',
  );
  assert.equal(parseDeliveryQueueName('mails'), undefined);
});

test('every job id parses back to its claim, has no colon, and is not a number', () => {
  fc.assert(
    fc.property(fc.uuid(), fc.nat(), text, (outboxId, attempt, token) => {
      const named = { integrationType: 't', eventType: 'e' };
      const traced = { tenantId: undefined, correlationId: undefined };
      const id = deliveryJobId({ outboxId, attempt, token, ...named, ...traced });
      assert.doesNotMatch(id, /:/);
      assert.ok(Number.isNaN(Number.parseInt(id, 10)));
      assert.deepEqual(claimOfJobId(id), { id: outboxId, token });
    }),
  );
  assert.equal(claimOfJobId('17'), undefined);
});
