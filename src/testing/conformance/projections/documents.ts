// Writing and reading documents by their id.

import assert from 'node:assert/strict';
import { documentsOf } from '../../../projections/documents.ts';
import { allOf, currencies, from, type ReadModelCases } from './read-model-fixture.ts';

export const documentCases: ReadModelCases = {
  'returns a document as it was written': async ({ documents }) => {
    const document = { code: 'USD', text: 'Zoë "quoted" \\ \n \u0000 🙂 \u2028', updated: 12.5 };
    assert.equal(await documents.put(from('USD', 0), document), 'written');
    assert.deepEqual(await documents.get('core', 'USD'), { id: 'USD', revision: 0, document });
  },

  'returns numbers, nulls and nested values unchanged': async ({ documents }) => {
    const document = {
      code: 'X',
      deep: { list: [1, -0.5, 1e21, 5e-324, null, true, { a: [] }], empty: {} },
      none: null,
      big: Number.MAX_SAFE_INTEGER,
      __proto__name: 'p',
      '': 'empty key',
    };
    await documents.put(from('x', 0), document);
    assert.deepEqual((await documents.get('core', 'x'))?.document, document);
  },

  'an id that was never written has no document': async ({ documents, store, model }) => {
    assert.equal(await documents.get('core', 'USD'), undefined);
    assert.deepEqual(await store.load(model, [{ tenant: 'core', id: 'USD' }]), [undefined]);
  },

  'a later event replaces the document': async ({ documents }) => {
    await documents.put(from('USD', 0), { code: 'USD', name: 'first' });
    assert.equal(await documents.put(from('USD', 1), { code: 'USD' }), 'written');
    assert.deepEqual(await documents.get('core', 'USD'), {
      id: 'USD',
      revision: 1,
      document: { code: 'USD' },
    });
  },

  'a removed document disappears from all indexes': async ({ documents }) => {
    await documents.put(from('USD', 0), { code: 'USD', enabled: true, updated: 5 });
    assert.equal(await documents.remove(from('USD', 1)), 'written');
    assert.equal(await documents.get('core', 'USD'), undefined);
    assert.equal(await documents.byIndex('core', 'code', 'USD'), undefined);
    assert.deepEqual(await allOf(documents), []);
    assert.deepEqual(await allOf(documents, 'enabled'), []);
    assert.deepEqual((await documents.byRange('core', 'updated')).items, []);
  },

  'removing an unknown document is allowed': async ({ documents }) => {
    assert.equal(await documents.remove(from('USD', 3)), 'written');
    assert.equal(await documents.get('core', 'USD'), undefined);
  },

  'a later event can restore a removed document': async ({ documents }) => {
    await documents.put(from('USD', 0), { code: 'USD' });
    await documents.remove(from('USD', 1));
    assert.equal(await documents.put(from('USD', 2), { code: 'USD', name: 'again' }), 'written');
    assert.equal((await documents.get('core', 'USD'))?.document.name, 'again');
    assert.equal((await documents.byIndex('core', 'code', 'USD'))?.id, 'USD');
    assert.deepEqual(await allOf(documents), ['USD']);
  },

  'writes several documents at once and loads them in the order of their keys': async ({
    documents,
    store,
    model,
  }) => {
    const ids = Array.from({ length: 250 }, (_, index) => `c${index}`);
    const outcomes = await documents.write(
      ids.map((id) => ({ ...from(id, 4), document: { code: id } })),
    );
    assert.deepEqual(new Set(outcomes), new Set(['written']));
    assert.equal(outcomes.length, ids.length);
    const keys = [...ids.toReversed(), 'missing'].map((id) => ({ tenant: 'core', id }));
    const loaded = await store.load(model, keys);
    assert.deepEqual(
      loaded.map((each) => each?.id),
      [...ids.toReversed(), undefined],
    );
    assert.equal(loaded[0]?.stream, from('c249', 0).stream);
    assert.equal(loaded[0]?.revision, 4);
  },

  'returns a document for every occurrence of its key': async ({ documents, store, model }) => {
    await documents.put(from('USD', 0), { code: 'USD' });
    const loaded = await store.load(model, [
      { tenant: 'core', id: 'USD' },
      { tenant: 'core', id: 'USD' },
    ]);
    assert.deepEqual(
      loaded.map((each) => each?.id),
      ['USD', 'USD'],
    );
  },

  'a load reports removed documents with the event that removed them': async ({
    documents,
    store,
    model,
  }) => {
    await documents.put(from('USD', 0), { code: 'USD' });
    await documents.remove(from('USD', 7));
    const [stored] = await store.load(model, [{ tenant: 'core', id: 'USD' }]);
    assert.equal(stored?.document, null);
    assert.equal(stored.revision, 7);
    assert.equal(stored.stream, from('USD', 0).stream);
  },

  'accepts a write without documents': async ({ documents, store, model }) => {
    assert.deepEqual(await documents.write([]), []);
    assert.deepEqual(await store.load(model, []), []);
  },

  'one write can mix puts and removals': async ({ documents }) => {
    await documents.put(from('old', 0), { code: 'old' });
    await documents.write([
      { ...from('old', 1), document: null },
      { ...from('new', 0), document: { code: 'new' } },
    ]);
    assert.deepEqual(await allOf(documents), ['new']);
    assert.equal(await documents.byIndex('core', 'code', 'old'), undefined);
  },

  'tenants never see each other': async ({ documents }) => {
    await documents.write(
      ['core', 'demo-za'].map((tenant) => ({
        ...from('USD', 0, tenant),
        document: { code: 'USD', name: tenant, enabled: true, updated: 1 },
      })),
    );
    await documents.put(from('ZAR', 0, 'demo-za'), { code: 'ZAR', updated: 2 });
    assert.equal((await documents.get('core', 'USD'))?.document.name, 'core');
    assert.equal((await documents.get('demo-za', 'USD'))?.document.name, 'demo-za');
    assert.equal(await documents.get('core', 'ZAR'), undefined);
    assert.equal(await documents.byIndex('core', 'code', 'ZAR'), undefined);
    assert.equal((await documents.byIndex('core', 'code', 'USD'))?.document.name, 'core');
    assert.deepEqual(await allOf(documents), ['USD']);
    assert.deepEqual(await allOf(documents, 'all', 'demo-za'), ['USD', 'ZAR']);
    assert.equal((await documents.byRange('core', 'updated')).items.length, 1);
    await documents.remove(from('USD', 1, 'demo-za'));
    assert.equal((await documents.byIndex('core', 'code', 'USD'))?.id, 'USD');
  },

  'versions of a model are independent': async ({ documents, store, model }) => {
    const second = documentsOf(store, currencies(model.aggregate, 2));
    await documents.put(from('USD', 5), { code: 'USD', name: 'one' });
    assert.equal(await second.get('core', 'USD'), undefined);
    assert.equal(await second.put(from('USD', 0), { code: 'USD', name: 'two' }), 'written');
    assert.equal((await documents.get('core', 'USD'))?.document.name, 'one');
    assert.equal((await second.byIndex('core', 'code', 'USD'))?.document.name, 'two');
  },

  'models of one name in two contexts are independent': async ({ store, model }) => {
    const [one, two] = [model.aggregate, `${model.aggregate}-more`].map((aggregate) =>
      documentsOf(store, currencies(aggregate)),
    );
    await one?.put(from('USD', 0), { code: 'USD' });
    assert.equal(await two?.get('core', 'USD'), undefined);
    assert.equal(await two?.byIndex('core', 'code', 'USD'), undefined);
  },

  'ids that look like other keys do not collide with them': async ({ documents }) => {
    const ids = ['h', 'index', 'set', 'list', 'v1', 'all', '1', 'A', 'a', 'a.b', 'a_b', 'a-b'];
    for (const id of ids) await documents.put(from(id, 0), { code: `code-${id}` });
    for (const id of ids) assert.equal((await documents.get('core', id))?.id, id);
    assert.deepEqual(await allOf(documents), ids.toSorted());
  },
};
