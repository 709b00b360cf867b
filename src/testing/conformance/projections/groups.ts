// Groups: one range per value, and counts within bounds.

import assert from 'node:assert/strict';
import { from, walk, type ReadModelCases, type ReadModelContext } from './read-model-fixture.ts';

type Regions = Readonly<Record<string, number>>;

async function put(
  { documents }: ReadModelContext,
  all: Readonly<Record<string, Regions>>,
  revision = 0,
): Promise<void> {
  await documents.write(
    Object.entries(all).map(([id, regions]) => ({
      ...from(id, revision),
      document: { code: id, regions },
    })),
  );
}

function idsOf({ documents }: ReadModelContext, group: string): Promise<readonly string[]> {
  return walk((cursor) => documents.byRange('core', 'region', { group, cursor, limit: 2 }));
}

export const groupCases: ReadModelCases = {
  'each group has a separate order': async (context) => {
    await put(context, { a: { eu: 1, us: 9 }, b: { eu: 2, us: 8 }, c: { eu: 3 }, d: {} });
    assert.deepEqual(await idsOf(context, 'eu'), ['a', 'b', 'c']);
    assert.deepEqual(await idsOf(context, 'us'), ['b', 'a']);
    assert.deepEqual(await idsOf(context, 'za'), []);
  },

  'a document leaves the groups that it no longer names': async (context) => {
    await put(context, { a: { eu: 1, us: 1 }, b: { eu: 2 } });
    await put(context, { a: { eu: 3, za: 1 } }, 1);
    assert.deepEqual(await idsOf(context, 'eu'), ['b', 'a']);
    assert.deepEqual(await idsOf(context, 'us'), []);
    assert.deepEqual(await idsOf(context, 'za'), ['a']);
    await context.documents.remove(from('a', 2));
    assert.deepEqual(await idsOf(context, 'eu'), ['b']);
    assert.deepEqual(await idsOf(context, 'za'), []);
  },

  'groups belong to their tenant': async (context) => {
    await put(context, { a: { eu: 1 } });
    await context.documents.put(from('b', 0, 'demo'), { code: 'b', regions: { eu: 1 } });
    assert.deepEqual(await idsOf(context, 'eu'), ['a']);
    assert.equal(await context.documents.count('demo', 'region', { group: 'eu' }), 1);
  },

  'one document may be in hundreds of groups': async (context) => {
    const names = Array.from({ length: 300 }, (_, at) => [`r${at}`, at] as const);
    await put(context, { a: Object.fromEntries(names) });
    assert.deepEqual(await idsOf(context, 'r299'), ['a']);
    await put(context, { a: {} }, 1);
    assert.deepEqual(await idsOf(context, 'r299'), []);
  },

  'counts documents within bounds, in a group and in a range': async (context) => {
    const { documents } = context;
    const count = documents.count.bind(documents, 'core');
    await put(context, { a: { eu: 1 }, b: { eu: 2 }, c: { eu: 3, us: 1 } });
    assert.equal(await count('region', { group: 'eu' }), 3);
    assert.equal(await count('region', { group: 'eu', from: 2 }), 2);
    assert.equal(await count('region', { group: 'eu', to: 1 }), 1);
    assert.equal(await count('region', { group: 'eu', from: 2, to: 2 }), 1);
    assert.equal(await count('region', { group: 'za' }), 0);
    await documents.remove(from('b', 1));
    assert.equal(await count('region', { group: 'eu' }), 2);
    assert.equal(await count('updated'), 0);
    await documents.put(from('d', 0), { code: 'd', updated: -1.5 });
    assert.equal(await count('updated'), 1);
    assert.equal(await count('updated', { from: -1 }), 0);
  },
};
