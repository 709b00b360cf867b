// Each write is fenced by the revision of the event that it came from.

import assert from 'node:assert/strict';
import { allOf, from, rangeOf, type ReadModelCases } from './read-model-fixture.ts';

export const fenceCases: ReadModelCases = {
  'the same event again changes nothing': async ({ documents }) => {
    await documents.put(from('USD', 3), { code: 'USD', name: 'first' });
    assert.equal(await documents.put(from('USD', 3), { code: 'USD', name: 'second' }), 'stale');
    assert.equal((await documents.get('core', 'USD'))?.document.name, 'first');
  },

  'an older event changes nothing': async ({ documents }) => {
    await documents.put(from('USD', 3), { code: 'USD', name: 'newer' });
    assert.equal(await documents.put(from('USD', 2), { code: 'USD', name: 'older' }), 'stale');
    assert.equal(await documents.remove(from('USD', 1)), 'stale');
    assert.equal((await documents.get('core', 'USD'))?.document.name, 'newer');
  },

  'an older event changes no index, set or range entry': async ({ documents }) => {
    const newer = { code: 'new', enabled: true, updated: 9 };
    await documents.put(from('USD', 3), newer);
    for (const revision of [3, 2]) {
      const older = { code: 'old', name: 'old', enabled: false, updated: 1 };
      assert.equal(await documents.put(from('USD', revision), older), 'stale');
    }
    assert.equal((await documents.byIndex('core', 'code', 'new'))?.id, 'USD');
    assert.equal(await documents.byIndex('core', 'code', 'old'), undefined);
    assert.equal(await documents.byIndex('core', 'display-name', 'old'), undefined);
    assert.deepEqual(await allOf(documents, 'enabled'), ['USD']);
    assert.deepEqual(await allOf(documents, 'named'), []);
    const { items } = await documents.byRange('core', 'updated', { from: 9, to: 9 });
    assert.equal(items.length, 1);
  },

  'an erasure replaces the document of the same revision and its entries, but no newer one':
    async ({ documents, store, model }) => {
      await documents.put(from('USD', 3), { code: 'secret', enabled: true, updated: 9 });
      const erased = { ...model.toWrite(from('USD', 3), { code: 'erased' }), isErasure: true };
      assert.deepEqual(await store.write(model, [erased]), ['written']);
      assert.equal((await documents.get('core', 'USD'))?.document.code, 'erased');
      assert.equal((await documents.get('core', 'USD'))?.revision, 3);
      assert.equal(await documents.byIndex('core', 'code', 'secret'), undefined);
      assert.deepEqual(await allOf(documents, 'enabled'), []);
      assert.equal(await documents.put(from('USD', 3), { code: 'again' }), 'stale');
      assert.equal(await documents.put(from('USD', 4), { code: 'newer' }), 'written');
      assert.deepEqual(await store.write(model, [erased]), ['stale']);
      assert.equal((await documents.byIndex('core', 'code', 'newer'))?.id, 'USD');
    },

  'an older event does not restore a removed document': async ({ documents }) => {
    await documents.put(from('USD', 0), { code: 'USD' });
    await documents.remove(from('USD', 5));
    assert.equal(await documents.put(from('USD', 5), { code: 'USD' }), 'stale');
    assert.equal(await documents.put(from('USD', 4), { code: 'USD' }), 'stale');
    assert.equal(await documents.get('core', 'USD'), undefined);
    assert.equal(await documents.byIndex('core', 'code', 'USD'), undefined);
    assert.deepEqual(await allOf(documents), []);
  },

  'an older event does not create a document that was removed before it existed': async ({
    documents,
  }) => {
    await documents.remove(from('USD', 5));
    assert.equal(await documents.put(from('USD', 4), { code: 'USD' }), 'stale');
    assert.equal(await documents.get('core', 'USD'), undefined);
  },

  'revisions may have gaps': async ({ documents }) => {
    assert.equal(await documents.put(from('USD', 7), { code: 'USD' }), 'written');
    assert.equal(await documents.put(from('USD', 900_000), { code: 'USD' }), 'written');
    assert.equal((await documents.get('core', 'USD'))?.revision, 900_000);
  },

  'compares revisions as numbers, including very large ones': async ({ documents }) => {
    const large = Number.MAX_SAFE_INTEGER;
    await documents.put(from('USD', 9), { code: 'USD' });
    assert.equal(await documents.put(from('USD', 10), { code: 'USD' }), 'written');
    assert.equal(await documents.put(from('USD', large - 1), { code: 'USD' }), 'written');
    assert.equal(await documents.put(from('USD', large), { code: 'USD' }), 'written');
    assert.equal(await documents.put(from('USD', large - 1), { code: 'USD' }), 'stale');
    assert.equal((await documents.get('core', 'USD'))?.revision, large);
  },

  'reports an event of another stream and changes nothing': async ({ documents }) => {
    await documents.put(from('USD', 3), { code: 'USD', name: 'first' });
    const other = { ...from('USD', 9), stream: 'banking.currency.v1-core-OTHER' };
    assert.equal(await documents.put(other, { code: 'other' }), 'foreign');
    assert.equal(await documents.remove(other), 'foreign');
    assert.equal((await documents.get('core', 'USD'))?.document.name, 'first');
    assert.equal(await documents.byIndex('core', 'code', 'other'), undefined);
  },

  'a removed document still belongs to its stream': async ({ documents }) => {
    await documents.remove(from('USD', 3));
    const other = { ...from('USD', 9), stream: 'banking.currency.v1-core-OTHER' };
    assert.equal(await documents.put(other, { code: 'other' }), 'foreign');
  },

  'a write returns a separate result for each document': async ({ documents }) => {
    await documents.put(from('A', 5), { code: 'a' });
    await documents.put(from('B', 1), { code: 'b' });
    await documents.put(from('D', 1), { code: 'd' });
    const outcomes = await documents.write([
      { ...from('A', 4), document: { code: 'a4' } },
      { ...from('B', 2), document: { code: 'b2' } },
      { ...from('C', 0), document: { code: 'c' } },
      { ...from('B', 9), id: 'D', document: { code: 'x' } },
    ]);
    assert.deepEqual(outcomes, ['stale', 'written', 'written', 'foreign']);
    assert.equal((await documents.byIndex('core', 'code', 'a'))?.id, 'A');
    assert.equal((await documents.byIndex('core', 'code', 'b2'))?.id, 'B');
    assert.equal(await documents.byIndex('core', 'code', 'a4'), undefined);
  },

  'events in any order result in the state of the last one': async ({ documents }) => {
    for (const revision of [2, 0, 5, 1, 4, 3]) {
      await documents.put(from('USD', revision), { code: `c${revision}`, updated: revision });
    }
    assert.equal((await documents.get('core', 'USD'))?.document.code, 'c5');
    for (const revision of [0, 1, 2, 3, 4]) {
      assert.equal(await documents.byIndex('core', 'code', `c${revision}`), undefined);
    }
    assert.deepEqual(await rangeOf(documents), ['USD']);
  },

  'the latest event wins among concurrent writes': async ({ documents }) => {
    const revisions = Array.from({ length: 20 }, (_, index) => index);
    await Promise.all(
      revisions.map((revision) =>
        documents.put(from('USD', revision), { code: `c${revision}`, updated: revision }),
      ),
    );
    assert.equal((await documents.get('core', 'USD'))?.revision, 19);
    const found = await Promise.all(
      revisions.map((revision) => documents.byIndex('core', 'code', `c${revision}`)),
    );
    assert.deepEqual(
      found.map((each) => each?.id),
      [...revisions.slice(1).map(() => undefined), 'USD'],
    );
    const { items } = await documents.byRange('core', 'updated');
    assert.equal(items.length, 1);
  },
};
