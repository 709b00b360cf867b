import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEnvelope, createTenantDirectory, parseStreamName } from 'millrace/contracts';
import {
  sampleItemCreated,
  sampleItemUpdated,
  type SampleItemEvent,
} from './sample-item-events.ts';
import { sampleItemNames } from './sample-item-names.ts';
import { projectSampleItem, type SampleItemDocument } from './sample-item-projection.ts';
import {
  createSampleItem,
  decideSampleItem,
  evolveSampleItem,
  noSampleItem,
  updateSampleItem,
} from './sample-item.ts';

const tenant = 'sample-tenant';
const given = (...events: readonly SampleItemEvent[]) =>
  events.reduce(evolveSampleItem, noSampleItem);

test('a new sample item is created with its name', () => {
  const events = decideSampleItem(createSampleItem({ name: 'first' }), given());
  assert.deepEqual(events, [sampleItemCreated({ name: 'first' })]);
});

test('a sample item is created once', () => {
  const state = given(sampleItemCreated({ name: 'first' }));
  assert.throws(() => decideSampleItem(createSampleItem({ name: 'again' }), state), /exists/);
});

test('records a new name, but not the same name again', () => {
  const state = given(sampleItemCreated({ name: 'first' }));
  assert.deepEqual(decideSampleItem(updateSampleItem({ name: 'second' }), state), [
    sampleItemUpdated({ name: 'second' }),
  ]);
  assert.deepEqual(decideSampleItem(updateSampleItem({ name: 'first' }), state), []);
});

test('rejects a change of a sample item that does not exist', () => {
  const command = updateSampleItem({ name: 'second' });
  assert.throws(() => decideSampleItem(command, given()), /unknown sample item/);
});

test('rejects a payload without a name', () => {
  assert.throws(() => sampleItemCreated({ name: ' ' }), /name/);
});

test('updates the document once per event', () => {
  const context = {
    tenant,
    aggregate: { bc: 'sample-context', type: 'sample-item', id: 'i-1' },
  };
  const history = [sampleItemCreated({ name: 'first' }), sampleItemUpdated({ name: 'second' })];
  let document: SampleItemDocument | undefined;
  for (const [revision, event] of [...history.entries(), ...history.entries()]) {
    document = projectSampleItem(document, createEnvelope(event, context), revision);
  }
  assert.equal(document?.name, 'second');
  assert.equal(document.revision, 1);
});

test('the stream name contains the tenant and the id', () => {
  const tenants = createTenantDirectory([tenant]);
  const parsed = parseStreamName(sampleItemNames.stream(tenant, 'i-1', tenants), tenants);
  assert.deepEqual(
    [parsed.bc, parsed.agg, parsed.tenant, parsed.id],
    ['sample-context', 'sample-item', tenant, 'i-1'],
  );
});

test('the same work on a sample item has the same job id', () => {
  assert.equal(sampleItemNames.jobId(tenant, 'i-1'), sampleItemNames.jobId(tenant, 'i-1'));
  assert.doesNotMatch(sampleItemNames.jobId(tenant, 'i-1'), /:/);
});
