// Lists are cached by the hash of their filters until a write.

import assert from 'node:assert/strict';
import { eventually } from '../../assertions.ts';
import { documentsOf } from '../../../projections/documents.ts';
import {
  currencies,
  from,
  type ReadModelCases,
  type ReadModelContext,
} from './read-model-fixture.ts';

/** Counts the loads of the list. */
function counted(context: ReadModelContext, ids: readonly string[] = ['A', 'B']) {
  const asked = { times: 0 };
  const ask = (filters: unknown = { enabled: true }, tenant = 'core') =>
    context.documents.list(tenant, filters, async () => {
      asked.times += 1;
      return ids;
    });
  return { asked, ask };
}

export const listCases: ReadModelCases = {
  'returns a list from the cache the second time': async (context) => {
    const { asked, ask } = counted(context);
    assert.deepEqual(await ask(), ['A', 'B']);
    assert.deepEqual(await ask(), ['A', 'B']);
    assert.equal(asked.times, 1);
  },

  'caches an empty list': async (context) => {
    const { asked, ask } = counted(context, []);
    assert.deepEqual(await ask(), []);
    assert.deepEqual(await ask(), []);
    assert.equal(asked.times, 1);
  },

  'keeps the order of a list': async (context) => {
    const ids = ['b', 'a', 'c', 'a.b', '10', '9'];
    const { ask } = counted(context, ids);
    await ask();
    assert.deepEqual(await ask(), ids);
  },

  'equal filters share a list, others do not': async (context) => {
    const { asked, ask } = counted(context);
    await ask({ status: 'open', page: 1 });
    await ask({ page: 1, status: 'open' });
    assert.equal(asked.times, 1);
    await ask({ page: 2, status: 'open' });
    assert.equal(asked.times, 2);
  },

  'a new document invalidates the lists': async (context) => {
    const { asked, ask } = counted(context);
    await ask();
    await context.documents.put(from('USD', 0), { code: 'usd' });
    await ask();
    assert.equal(asked.times, 2);
  },

  'a changed or removed document invalidates the lists': async (context) => {
    const { asked, ask } = counted(context);
    await context.documents.put(from('USD', 0), { code: 'usd' });
    await ask();
    await context.documents.put(from('USD', 1), { code: 'usd', name: 'changed' });
    await ask();
    await context.documents.remove(from('USD', 2));
    await ask();
    assert.equal(asked.times, 3);
  },

  'invalidates all lists of the tenant at once': async (context) => {
    const { asked, ask } = counted(context);
    for (const page of [1, 2, 3]) await ask({ page });
    await context.documents.put(from('USD', 0), { code: 'usd' });
    for (const page of [1, 2, 3]) await ask({ page });
    assert.equal(asked.times, 6);
  },

  'writes of another tenant invalidate nothing': async (context) => {
    const { asked, ask } = counted(context);
    await ask();
    await context.documents.put(from('USD', 0, 'demo'), { code: 'usd' });
    await ask();
    assert.equal(asked.times, 1);
  },

  'writes of another version invalidate nothing': async (context) => {
    const { asked, ask } = counted(context);
    await ask();
    const second = documentsOf(context.store, currencies(context.model.aggregate, 2));
    await second.put(from('USD', 0), { code: 'usd' });
    await ask();
    assert.equal(asked.times, 1);
  },

  'tenants do not share lists': async (context) => {
    const { asked, ask } = counted(context);
    await ask({}, 'core');
    await ask({}, 'demo');
    assert.equal(asked.times, 2);
  },

  'does not cache a list that was loaded during a write': async (context) => {
    const { documents } = context;
    const { asked, ask } = counted(context);
    const loaded = await documents.list('core', { enabled: true }, async () => {
      await documents.put(from('USD', 0), { code: 'usd' });
      return ['old'];
    });
    assert.deepEqual(loaded, ['old']);
    assert.deepEqual(await ask(), ['A', 'B']);
    assert.equal(asked.times, 1);
  },

  'does not cache a list that arrives after a newer one': async ({ store, model, documents }) => {
    const key = { tenant: 'core', hash: 'a'.repeat(32) };
    const before = await store.list(model, key);
    await documents.put(from('USD', 0), { code: 'usd' });
    const after = await store.list(model, key);
    assert.notEqual(before.generation, after.generation);
    const keep = (generation: string, ids: readonly string[]) =>
      store.keepList(model, key, { ids, generation, ttlMs: 60_000 });
    assert.equal(await keep(after.generation, ['new']), true);
    assert.equal(await keep(before.generation, ['old']), false);
    assert.deepEqual((await store.list(model, key)).ids, ['new']);
  },

  'caches the list that was loaded last': async ({ store, model }) => {
    const key = { tenant: 'core', hash: 'b'.repeat(32) };
    const { generation } = await store.list(model, key);
    for (const ids of [['one', 'two'], ['three']]) {
      assert.equal(await store.keepList(model, key, { ids, generation, ttlMs: 60_000 }), true);
    }
    assert.deepEqual((await store.list(model, key)).ids, ['three']);
  },

  'a cached list expires': async ({ store, model }) => {
    const key = { tenant: 'core', hash: 'c'.repeat(32) };
    const { generation } = await store.list(model, key);
    await store.keepList(model, key, { ids: ['A'], generation, ttlMs: 20 });
    await eventually('the list is gone', async () => {
      const { ids } = await store.list(model, key);
      return ids === undefined;
    });
  },

  'lists stay correct after a write that changes nothing': async (context) => {
    const { ask } = counted(context);
    await context.documents.put(from('USD', 5), { code: 'usd' });
    await ask();
    await context.documents.put(from('USD', 5), { code: 'usd' });
    assert.deepEqual(await ask(), ['A', 'B']);
  },
};
