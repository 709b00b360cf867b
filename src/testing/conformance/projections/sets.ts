// Listing the documents of a set, page by page.

import assert from 'node:assert/strict';
import { allOf, from, walk, type ReadModelCases } from './read-model-fixture.ts';

const ids = Array.from({ length: 25 }, (_, index) => `c${String(index).padStart(2, '0')}`);

export const setCases: ReadModelCases = {
  'every document belongs to the set of all documents': async ({ documents }) => {
    await documents.write(ids.map((id) => ({ ...from(id, 0), document: { code: id } })));
    assert.deepEqual(await allOf(documents), ids);
  },

  'a set without members is empty': async ({ documents }) => {
    await documents.put(from('USD', 0), { code: 'usd' });
    assert.deepEqual(await documents.bySet('core', 'enabled'), { items: [], cursor: undefined });
  },

  'returns the documents of the members': async ({ documents }) => {
    await documents.put(from('USD', 4), { code: 'usd', enabled: true });
    const { items } = await documents.bySet('core', 'enabled');
    assert.deepEqual(items, [{ id: 'USD', revision: 4, document: { code: 'usd', enabled: true } }]);
  },

  'a document enters and leaves a set as it changes': async ({ documents }) => {
    await documents.put(from('USD', 0), { code: 'usd', enabled: true });
    assert.deepEqual(await allOf(documents, 'enabled'), ['USD']);
    await documents.put(from('USD', 1), { code: 'usd', enabled: false });
    assert.deepEqual(await allOf(documents, 'enabled'), []);
    assert.deepEqual(await allOf(documents), ['USD']);
    await documents.put(from('USD', 2), { code: 'usd', enabled: true });
    assert.deepEqual(await allOf(documents, 'enabled'), ['USD']);
  },

  'a document can belong to several sets': async ({ documents }) => {
    await documents.put(from('A', 0), { code: 'a', enabled: true, name: 'A' });
    await documents.put(from('B', 0), { code: 'b', name: 'B' });
    assert.deepEqual(await allOf(documents, 'enabled'), ['A']);
    assert.deepEqual(await allOf(documents, 'named'), ['A', 'B']);
  },

  'pages of any size return every member': async ({ documents }) => {
    await documents.write(ids.map((id) => ({ ...from(id, 0), document: { code: id } })));
    for (const limit of [1, 3, 24, 25, 26, 1_000]) {
      const read = (cursor: string | undefined) =>
        documents.bySet('core', 'all', { limit, cursor });
      assert.deepEqual(await walk(read, 'any'), ids);
    }
  },

  'a page ends with the document that reaches its maximum of bytes': async ({ documents }) => {
    const about = 'x'.repeat(1_000);
    for (const size of [10, 300]) {
      const members = Array.from({ length: size }, (_, index) => `d${String(index + 100)}`);
      await documents.write(
        members.map((id) => ({ ...from(id, size), document: { code: id, about, enabled: true } })),
      );
      for (const set of ['all', 'enabled']) {
        let most = 0;
        const seen = await walk(async (cursor) => {
          const page = await documents.bySet('core', set, { limit: 100, cursor, bytesMax: 2_000 });
          most = Math.max(most, page.items.length);
          return page;
        }, 'any');
        assert.deepEqual(seen, members);
        assert.ok(most >= 2 && most <= 12, `${most} documents of 1 KB in a page`);
      }
    }
  },

  'returns all members that stay, while others come and go': async ({ documents }) => {
    await documents.write(ids.map((id) => ({ ...from(id, 0), document: { code: id } })));
    let step = 0;
    const seen = await walk(async (cursor) => {
      const page = await documents.bySet('core', 'all', { limit: 3, cursor });
      await documents.put(from(`new${step}`, 0), { code: `new${step}` });
      if (step < 5) await documents.remove(from(`c${String(20 + step)}`, 1));
      step += 1;
      return page;
    }, 'any');
    for (const id of ids.slice(0, 20)) assert.ok(seen.includes(id), id);
  },

  'pages through a set of thousands completely': async ({ documents }) => {
    const many = Array.from({ length: 3_000 }, (_, index) => `m${String(index).padStart(4, '0')}`);
    await documents.write(many.map((id) => ({ ...from(id, 0), document: { code: id } })));
    const read = (cursor: string | undefined) =>
      documents.bySet('core', 'all', { limit: 500, cursor });
    assert.deepEqual(await walk(read, 'any'), many);
  },

  'returns members sorted, up to the limit': {
    needs: 'orderedSets',
    async run({ documents }) {
      const order = ['A', 'B', 'Z', '_', 'a', 'b', 'z'];
      await documents.write(
        order.toReversed().map((id) => ({ ...from(id, 0), document: { code: id } })),
      );
      const first = await documents.bySet('core', 'all', { limit: 3 });
      assert.deepEqual(
        first.items.map(({ id }) => id),
        ['A', 'B', 'Z'],
      );
      const second = await documents.bySet('core', 'all', { limit: 4, cursor: first.cursor });
      assert.deepEqual(
        second.items.map(({ id }) => id),
        ['_', 'a', 'b', 'z'],
      );
      assert.equal(second.cursor, undefined);
    },
  },
};
