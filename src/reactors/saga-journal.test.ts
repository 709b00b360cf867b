import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEnvelope } from '../contracts/envelope.ts';
import { createTenantDirectory } from '../contracts/tenant.ts';
import { openMemory } from '../engines/memory/index.ts';
import { systemClock } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';
import { createSagaJournal } from './saga-journal.ts';

test('a saga does not continue in a stream of another tenant whose name fits both', async () => {
  await using db = openMemory();
  const stream = 'shop.fulfilment.v1-demo-za-1';
  const aggregate = { bc: 'shop', type: 'fulfilment', id: 'za-1' };
  const event = { type: 'fulfilment.started.v1', payload: {} };
  await db.store.append(stream, [createEnvelope(event, { tenant: 'demo', aggregate })]);
  const tenants = createTenantDirectory(['demo-za']);
  const saga = { bc: 'shop', name: 'fulfilment', version: 1 };
  const journal = createSagaJournal(db.store, saga, { clock: systemClock, tenants });
  await assert.rejects(journal.load(stream), (error) => hasCode(error, 'TENANT_MISMATCH'));
  await assert.rejects(
    journal.change(stream, () => assert.fail('decided on the state of another tenant')),
    (error) => hasCode(error, 'TENANT_MISMATCH'),
  );
});
