// Finding documents by a unique value.

import assert from 'node:assert/strict';
import { modelName } from '../../../projections/sql/read-models.ts';
import { from, type ReadModelCases } from './read-model-fixture.ts';

export const indexCases: ReadModelCases = {
  'finds a document by its index value': async ({ documents }) => {
    await documents.put(from('USD', 2), { code: 'usd', name: 'Dollar' });
    assert.deepEqual(await documents.byIndex('core', 'code', 'usd'), {
      id: 'USD',
      revision: 2,
      document: { code: 'usd', name: 'Dollar' },
    });
    assert.equal((await documents.byIndex('core', 'display-name', 'Dollar'))?.id, 'USD');
  },

  'an unknown index value finds nothing': async ({ documents }) => {
    await documents.put(from('USD', 0), { code: 'usd' });
    for (const code of ['USD', 'usd ', 'us', 'usdx', '', '\0', 'x'.repeat(300)]) {
      assert.equal(await documents.byIndex('core', 'code', code), undefined);
    }
  },

  'finds a document by its new index value only': async ({ documents }) => {
    await documents.put(from('USD', 0), { code: 'old' });
    await documents.put(from('USD', 1), { code: 'new' });
    assert.equal(await documents.byIndex('core', 'code', 'old'), undefined);
    assert.equal((await documents.byIndex('core', 'code', 'new'))?.id, 'USD');
  },

  'a document with a damaged record of its entries is written and removed': async (context) => {
    const { documents, fixture, model, store } = context;
    if (fixture.damage === undefined) return;
    const dollar = { code: 'usd', name: 'Dollar', enabled: true, updated: 7 };
    await documents.put(from('USD', 0), dollar);
    await fixture.damage(modelName(model), '{"ind');
    await documents.put(from('USD', 1), { ...dollar, code: 'new' });
    assert.equal(await documents.byIndex('core', 'code', 'usd'), undefined);
    assert.equal((await documents.byIndex('core', 'code', 'new'))?.id, 'USD');
    await fixture.damage(modelName(model), '5');
    assert.equal(await store.clear(model, 9), 1);
    await documents.put(from('EUR', 0), { code: 'eur' });
    assert.equal(await documents.byIndex('core', 'code', 'new'), undefined);
  },

  'a document without a value leaves the index': async ({ documents }) => {
    await documents.put(from('USD', 0), { code: 'usd', name: 'Dollar' });
    await documents.put(from('USD', 1), { code: 'usd' });
    assert.equal(await documents.byIndex('core', 'display-name', 'Dollar'), undefined);
    assert.equal((await documents.byIndex('core', 'code', 'usd'))?.id, 'USD');
  },

  'a document can take an index value that another one released': async ({ documents }) => {
    await documents.put(from('A', 0), { code: 'x' });
    await documents.put(from('A', 1), { code: 'y' });
    await documents.put(from('B', 0), { code: 'x' });
    assert.equal((await documents.byIndex('core', 'code', 'x'))?.id, 'B');
    assert.equal((await documents.byIndex('core', 'code', 'y'))?.id, 'A');
  },

  'an index value taken over early survives its release by the former document': async ({
    documents,
  }) => {
    await documents.put(from('A', 0), { code: 'x' });
    await documents.put(from('B', 0), { code: 'x' });
    assert.equal((await documents.byIndex('core', 'code', 'x'))?.id, 'B');
    await documents.put(from('A', 1), { code: 'y' });
    assert.equal((await documents.byIndex('core', 'code', 'x'))?.id, 'B');
  },

  'two documents can swap their index values in one write': async ({ documents }) => {
    await documents.put(from('A', 0), { code: 'x' });
    await documents.put(from('B', 0), { code: 'y' });
    await documents.write([
      { ...from('A', 1), document: { code: 'y' } },
      { ...from('B', 1), document: { code: 'x' } },
    ]);
    assert.equal((await documents.byIndex('core', 'code', 'x'))?.id, 'B');
    assert.equal((await documents.byIndex('core', 'code', 'y'))?.id, 'A');
  },

  'a removed document does not release the index value of another document': async ({
    documents,
  }) => {
    await documents.put(from('A', 0), { code: 'x' });
    await documents.put(from('B', 0), { code: 'x' });
    await documents.remove(from('A', 1));
    assert.equal((await documents.byIndex('core', 'code', 'x'))?.id, 'B');
    await documents.remove(from('B', 1));
    assert.equal(await documents.byIndex('core', 'code', 'x'), undefined);
  },

  'index values may contain any character': async ({ documents }) => {
    const codes = [
      'a b',
      'Zoë',
      '🙂',
      `quote'"`,
      'back\\slash',
      'new\nline',
      '{tag}',
      'a:b',
      '*',
      '%',
    ];
    for (const [index, code] of codes.entries()) {
      await documents.put(from(`c${index}`, 0), { code });
    }
    for (const [index, code] of codes.entries()) {
      assert.equal((await documents.byIndex('core', 'code', code))?.id, `c${index}`);
    }
  },

  'index values are sensitive to case and accents': async ({ documents }) => {
    const codes = ['a', 'A', 'á', 'a\u0301'];
    for (const [index, code] of codes.entries()) {
      await documents.put(from(`c${index}`, 0), { code });
    }
    for (const [index, code] of codes.entries()) {
      assert.equal((await documents.byIndex('core', 'code', code))?.id, `c${index}`);
    }
  },

  'one value in two indexes has two entries': async ({ documents }) => {
    await documents.put(from('A', 0), { code: 'same' });
    await documents.put(from('B', 0), { code: 'b', name: 'same' });
    assert.equal((await documents.byIndex('core', 'code', 'same'))?.id, 'A');
    assert.equal((await documents.byIndex('core', 'display-name', 'same'))?.id, 'B');
  },
};
