// Removing all documents of a version, in batches.

import assert from 'node:assert/strict';
import { documentsOf } from '../../../projections/documents.ts';
import { allOf, currencies, from, type ReadModelCases } from './read-model-fixture.ts';

export const clearCases: ReadModelCases = {
  'clearing leaves no document, entry, fence or list': async ({ documents, store, model }) => {
    const full = { code: 'usd', name: 'n', enabled: true, updated: 1 };
    await documents.put(from('USD', 5), full);
    await documents.put(from('gone', 5), { code: 'gone' });
    await documents.remove(from('gone', 6));
    await documents.list('core', {}, async () => ['USD']);
    while ((await store.clear(model, 10)) > 0);
    assert.equal(await documents.get('core', 'USD'), undefined);
    assert.equal(await documents.byIndex('core', 'code', 'usd'), undefined);
    assert.deepEqual(await allOf(documents), []);
    assert.deepEqual(await allOf(documents, 'enabled'), []);
    assert.deepEqual((await documents.byRange('core', 'updated')).items, []);
    assert.deepEqual(await documents.list('core', {}, async () => ['fresh']), ['fresh']);
    assert.equal(await documents.put(from('USD', 0), full), 'written');
    assert.equal(await documents.put(from('gone', 0), { code: 'gone' }), 'written');
  },

  'clears in batches until everything is removed': async ({ documents, store, model }) => {
    const ids = Array.from({ length: 60 }, (_, index) => `c${index}`);
    await documents.write(ids.map((id) => ({ ...from(id, 0), document: { code: id } })));
    let removed = 0;
    for (let steps = 0; ; steps += 1) {
      const step = await store.clear(model, 10);
      removed += step;
      if (step === 0) break;
      assert.ok(steps < 100, 'clearing did not finish after 100 steps');
    }
    assert.equal(removed, 60);
    assert.deepEqual(await allOf(documents), []);
  },

  'clears all tenants': async ({ documents, store, model }) => {
    for (const tenant of ['core', 'demo', 'demo-za']) {
      await documents.put(from('USD', 0, tenant), { code: 'usd' });
    }
    while ((await store.clear(model, 2)) > 0);
    for (const tenant of ['core', 'demo', 'demo-za']) {
      assert.equal(await documents.get(tenant, 'USD'), undefined);
    }
  },

  'other versions and models keep their documents': async ({ documents, store, model }) => {
    const [second, longer, other] = [
      documentsOf(store, currencies(model.aggregate, 2)),
      documentsOf(store, currencies(model.aggregate, 11)),
      documentsOf(store, currencies(`${model.aggregate}-more`)),
    ];
    for (const each of [documents, second, longer, other]) {
      await each.put(from('USD', 0), { code: 'usd', enabled: true, updated: 1 });
    }
    while ((await store.clear(model, 100)) > 0);
    assert.equal(await documents.get('core', 'USD'), undefined);
    for (const each of [second, longer, other]) {
      assert.equal((await each.get('core', 'USD'))?.id, 'USD');
      assert.equal((await each.byIndex('core', 'code', 'usd'))?.id, 'USD');
      assert.deepEqual(await allOf(each, 'enabled'), ['USD']);
      assert.equal((await each.byRange('core', 'updated')).items.length, 1);
    }
  },

  'clears an empty model at once': async ({ store, model }) => {
    assert.equal(await store.clear(model, 10), 0);
  },
};
