import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readModelsConformance } from './read-models.ts';
import { fakeClock } from '../../fake-clock.ts';
import { readModel, readModelLimits } from '../../../projections/read-model.ts';
import { referenceReadModels } from './reference-read-models.ts';

const store = referenceReadModels();

for (const { name, skip, run } of readModelsConformance({
  capabilities: store.capabilities,
  open: async () => store,
  async closed() {
    const closed = referenceReadModels();
    await closed[Symbol.asyncDispose]();
    return closed;
  },
})) {
  test(`reference of read models: ${name}`, { skip: skip ?? false }, run);
}

test('a cached list expires after its TTL by the given clock', async () => {
  const clock = fakeClock();
  const readModels = referenceReadModels({ clock });
  const model = { bc: 'banking', aggregate: 'currency', version: 1 };
  const key = { tenant: 'core', hash: 'a'.repeat(32) };
  const { generation } = await readModels.list(model, key);
  await readModels.keepList(model, key, { ids: ['USD'], generation, ttlMs: 1_000 });
  await clock.advance(999);
  assert.deepEqual((await readModels.list(model, key)).ids, ['USD']);
  await clock.advance(1);
  assert.equal((await readModels.list(model, key)).ids, undefined);
});

test('a document in too many groups is rejected, and so is a shared name of a range and a group', () => {
  const at = { bc: 'banking', aggregate: 'currency', version: 1 };
  const source = { tenant: 'core', id: 'USD', stream: 'banking.currency.v1-core-USD', revision: 0 };
  const model = readModel<{ readonly groups: number }>({
    ...at,
    groups: {
      region: ({ groups }) =>
        Object.fromEntries(Array.from({ length: groups }, (_, each) => [`r${each}`, each])),
    },
  });
  const { groupsMax } = readModelLimits;
  model.toWrite(source, { groups: groupsMax });
  assert.throws(() => model.toWrite(source, { groups: groupsMax + 1 }), {
    code: 'READ_MODEL_INVALID',
  });
  const both = { ...at, ranges: { region: () => 1 }, groups: { region: () => ({}) } };
  assert.throws(() => readModel<object>(both), { code: 'READ_MODEL_INVALID' });
});
