// Several processes on one read model store.

import assert from 'node:assert/strict';
import { documentsOf, type Documents } from '../../../projections/documents.ts';
import {
  allOf,
  from,
  type Currency,
  type ReadModelCases,
  type ReadModelContext,
} from './read-model-fixture.ts';

async function secondOf({
  fixture,
  model,
  documents,
}: ReadModelContext): Promise<Documents<Currency>> {
  const second = await fixture.second?.();
  return second === undefined ? documents : documentsOf(second, model);
}

const shared = (run: (context: ReadModelContext) => Promise<void>) =>
  ({ needs: 'crossProcess', run }) as const;

export const sharingCases: ReadModelCases = {
  'one process reads the documents that another process has written': shared(async (context) => {
    const second = await secondOf(context);
    await context.documents.put(from('USD', 0), { code: 'usd', enabled: true, updated: 1 });
    assert.equal((await second.get('core', 'USD'))?.document.code, 'usd');
    assert.equal((await second.byIndex('core', 'code', 'usd'))?.id, 'USD');
    assert.deepEqual(await allOf(second, 'enabled'), ['USD']);
  }),

  'the fence applies across processes': shared(async (context) => {
    const second = await secondOf(context);
    await context.documents.put(from('USD', 5), { code: 'usd' });
    assert.equal(await second.put(from('USD', 4), { code: 'old' }), 'stale');
    assert.equal(await second.put(from('USD', 6), { code: 'new' }), 'written');
    assert.equal(await context.documents.put(from('USD', 6), { code: 'late' }), 'stale');
    assert.equal((await context.documents.get('core', 'USD'))?.document.code, 'new');
  }),

  'a write invalidates the cached lists of other processes': shared(async (context) => {
    const second = await secondOf(context);
    await context.documents.list('core', {}, async () => ['old']);
    assert.deepEqual(await second.list('core', {}, async () => ['unused']), ['old']);
    await second.put(from('USD', 0), { code: 'usd' });
    assert.deepEqual(await context.documents.list('core', {}, async () => ['new']), ['new']);
  }),

  'after races each document has the state and entries of its last event': shared(
    async (context) => {
      const second = await secondOf(context);
      const ids = ['a', 'b', 'c', 'd', 'e'];
      const writeAll = async (documents: Documents<Currency>, odd: number): Promise<void> => {
        for (let revision = odd; revision < 40; revision += 2) {
          // Write in different orders, to provoke deadlocks.
          const order = odd === 0 ? ids : ids.toReversed();
          await documents.write(
            order.map((id) => ({
              ...from(id, revision),
              document: {
                code: `${id}-${revision}`,
                enabled: revision % 3 === 0,
                updated: revision,
              },
            })),
          );
        }
      };
      await Promise.all([writeAll(context.documents, 0), writeAll(second, 1)]);
      const { items } = await context.documents.byRange('core', 'updated');
      assert.deepEqual(
        items.map(({ id, revision }) => [id, revision]),
        ids.map((id) => [id, 39]),
      );
      assert.deepEqual(await allOf(context.documents, 'enabled'), ids);
      for (const id of ids) {
        for (let revision = 0; revision < 39; revision += 1) {
          const found = await second.byIndex('core', 'code', `${id}-${revision}`);
          assert.equal(found, undefined);
        }
        assert.equal((await second.byIndex('core', 'code', `${id}-39`))?.id, id);
      }
    },
  ),
};
