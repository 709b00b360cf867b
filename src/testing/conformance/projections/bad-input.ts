// Invalid input: each call is rejected with an error code.

import assert from 'node:assert/strict';
import { documentsOf } from '../../../projections/documents.ts';
import {
  assertCode,
  currencies,
  from,
  newAggregate,
  type Currency,
  type ReadModelCases,
} from './read-model-fixture.ts';

const closed = (run: Extract<ReadModelCases[string], { needs: unknown }>['run']) =>
  ({ needs: 'closed', run }) as const;

export const badInputCases: ReadModelCases = {
  'rejects names that break the grammar': async ({ documents }) => {
    const document = { code: 'usd' };
    for (const id of ['', 'a:b', 'a b', 'ü', '{a}', '\0']) {
      await assertCode('NAME_INVALID', () => documents.put({ ...from('x', 0), id }, document));
      await assertCode('NAME_INVALID', () => documents.get('core', id));
    }
    for (const tenant of ['', 'Core', 'a:b', '{core}', 'core-']) {
      const source = { ...from('x', 0), tenant };
      await assertCode('NAME_INVALID', () => documents.put(source, document));
      await assertCode('NAME_INVALID', () => documents.get(tenant, 'x'));
      await assertCode('NAME_INVALID', () => documents.byIndex(tenant, 'code', 'x'));
      await assertCode('NAME_INVALID', () => documents.bySet(tenant, 'all'));
      await assertCode('NAME_INVALID', () => documents.byRange(tenant, 'updated'));
      await assertCode('NAME_INVALID', () => documents.list(tenant, {}, async () => []));
    }
  },

  'rejects an id that is too long or contains personal data': async ({ documents }) => {
    const document = { code: 'usd' };
    await assertCode('KEY_TOO_LONG', () => documents.put(from('x'.repeat(300), 0), document));
    await assertCode('KEY_HOLDS_PERSONAL_DATA', () =>
      documents.put({ ...from('x', 0), id: 'zoe@example.com' }, document),
    );
  },

  'rejects an invalid revision': async ({ documents }) => {
    for (const revision of [-1, 0.5, Number.NaN, 2 ** 53]) {
      await assertCode('READ_MODEL_INVALID', () =>
        documents.put(from('USD', revision), { code: 'usd' }),
      );
    }
  },

  'rejects a document that is not JSON': async ({ documents }) => {
    for (const bad of [Number.NaN, 1n, () => 1, new Map()]) {
      const document = { code: 'usd', bad };
      await assertCode('PAYLOAD_NOT_JSON', () => documents.put(from('USD', 0), document));
    }
    assert.equal(await documents.get('core', 'USD'), undefined);
  },

  'rejects a document that is too large': async ({ documents }) => {
    const document = { code: 'usd', name: 'n', text: 'x'.repeat(10_000) };
    await assertCode('PAYLOAD_TOO_LARGE', () => documents.put(from('USD', 0), document));
    assert.equal(await documents.get('core', 'USD'), undefined);
  },

  'rejects a document that is not an object': async ({ documents }) => {
    for (const bad of ['text', 5, [1]] as unknown as Currency[]) {
      await assertCode('READ_MODEL_INVALID', () => documents.put(from('USD', 0), bad));
    }
  },

  'rejects an invalid index or range entry': async ({ documents }) => {
    for (const code of ['', 'x'.repeat(256), 'a\0b', '\ud800']) {
      await assertCode('READ_MODEL_INVALID', () => documents.put(from('USD', 0), { code }));
    }
    for (const updated of [Number.NaN, Infinity]) {
      await assert.rejects(documents.put(from('USD', 0), { code: 'usd', updated }));
    }
    assert.equal(await documents.get('core', 'USD'), undefined);
  },

  'one invalid document rejects the whole write': async ({ documents }) => {
    await assertCode('READ_MODEL_INVALID', () =>
      documents.write([
        { ...from('good', 0), document: { code: 'good' } },
        { ...from('bad', 0), document: { code: '' } },
      ]),
    );
    assert.equal(await documents.get('core', 'good'), undefined);
  },

  'rejects the same document twice in one write': async ({ documents }) => {
    await assertCode('READ_MODEL_INVALID', () =>
      documents.write([
        { ...from('USD', 0), document: { code: 'a' } },
        { ...from('USD', 1), document: { code: 'b' } },
      ]),
    );
  },

  'rejects an index, a set or a range that the model does not have': async ({ documents }) => {
    await assertCode('READ_MODEL_INVALID', () => documents.byIndex('core', 'colour', 'x'));
    await assertCode('READ_MODEL_INVALID', () => documents.bySet('core', 'colour'));
    await assertCode('READ_MODEL_INVALID', () => documents.byRange('core', 'colour'));
  },

  'rejects an invalid group': async ({ documents }) => {
    const group = 'eu';
    await assertCode('READ_MODEL_INVALID', () => documents.byRange('core', 'region'));
    await assertCode('READ_MODEL_INVALID', () => documents.byRange('core', 'updated', { group }));
    await assertCode('READ_MODEL_INVALID', () => documents.count('core', 'colour', { group }));
    for (const bad of ['', 'a:b', 'a b', 'ü', '{a}', '\0']) {
      const document = { code: 'usd', regions: { [bad]: 1 } };
      await assertCode('NAME_INVALID', () => documents.put(from('USD', 0), document));
      await assertCode('NAME_INVALID', () => documents.count('core', 'region', { group: bad }));
    }
    const regions = { eu: Number.NaN };
    await assert.rejects(documents.put(from('USD', 0), { code: 'usd', regions }));
    assert.equal(await documents.get('core', 'USD'), undefined);
  },

  'rejects an invalid page': async ({ documents }) => {
    for (const limit of [0, -1, 1.5, Number.NaN, 1_001]) {
      await assertCode('READ_MODEL_INVALID', () => documents.bySet('core', 'all', { limit }));
      await assertCode('READ_MODEL_INVALID', () => documents.byRange('core', 'updated', { limit }));
    }
    for (const bound of [Number.NaN, Infinity]) {
      await assertCode('READ_MODEL_INVALID', () =>
        documents.byRange('core', 'updated', { from: bound }),
      );
    }
  },

  'rejects an invalid cursor': async ({ documents }) => {
    await documents.put(from('USD', 0), { code: 'usd', updated: 1 });
    for (const cursor of ['', 'x', 'bm90IGEgY3Vyc29y', '[1]', '%00', '-1', 'W10']) {
      await assertCode('CURSOR_INVALID', () => documents.bySet('core', 'all', { cursor }));
      await assertCode('CURSOR_INVALID', () => documents.byRange('core', 'updated', { cursor }));
    }
  },

  'rejects filters that are not JSON': async ({ documents }) => {
    await assertCode('PAYLOAD_NOT_JSON', () => documents.list('core', 1n, async () => []));
  },

  'a closed store rejects calls': closed(async ({ fixture }) => {
    const store = await fixture.closed?.();
    assert.ok(store);
    const documents = documentsOf(store, currencies(newAggregate()));
    await assertCode('STORE_CLOSED', () => documents.get('core', 'USD'));
    await assertCode('STORE_CLOSED', () => documents.put(from('USD', 0), { code: 'usd' }));
    await assertCode('STORE_CLOSED', () => documents.byIndex('core', 'code', 'usd'));
    await assertCode('STORE_CLOSED', () => documents.bySet('core', 'all'));
    await assertCode('STORE_CLOSED', () => documents.byRange('core', 'updated'));
    await assertCode('STORE_CLOSED', () => documents.list('core', {}, async () => []));
  }),
};
