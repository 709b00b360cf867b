// Documents by a unique value.

import assert from 'node:assert/strict';
import { from, type ReadModelCases } from './read-model-fixture.ts';

export const indexCases: ReadModelCases = {
  'a document is found by its code': async ({ documents }) => {
    await documents.put(from('USD', 2), { code: 'usd', name: 'Dollar' });
    assert.deepEqual(await documents.byIndex('core', 'code', 'usd'), {
      id: 'USD',
      revision: 2,
      document: { code: 'usd', name: 'Dollar' },
    });
    assert.equal((await documents.byIndex('core', 'display-name', 'Dollar'))?.id, 'USD');
  },

  'a code that nobody has finds nothing': async ({ documents }) => {
    await documents.put(from('USD', 0), { code: 'usd' });
    for (const code of ['USD', 'usd ', 'us', 'usdx', '', '\0', 'x'.repeat(300)]) {
      assert.equal(await documents.byIndex('core', 'code', code), undefined);
    }
  },

  'a code that changed is found by the new one only': async ({ documents }) => {
    await documents.put(from('USD', 0), { code: 'old' });
    await documents.put(from('USD', 1), { code: 'new' });
    assert.equal(await documents.byIndex('core', 'code', 'old'), undefined);
    assert.equal((await documents.byIndex('core', 'code', 'new'))?.id, 'USD');
  },

  'a value that is left out is in the index no more': async ({ documents }) => {
    await documents.put(from('USD', 0), { code: 'usd', name: 'Dollar' });
    await documents.put(from('USD', 1), { code: 'usd' });
    assert.equal(await documents.byIndex('core', 'display-name', 'Dollar'), undefined);
    assert.equal((await documents.byIndex('core', 'code', 'usd'))?.id, 'USD');
  },

  'a code that another document has given up can be taken': async ({ documents }) => {
    await documents.put(from('A', 0), { code: 'x' });
    await documents.put(from('A', 1), { code: 'y' });
    await documents.put(from('B', 0), { code: 'x' });
    assert.equal((await documents.byIndex('core', 'code', 'x'))?.id, 'B');
    assert.equal((await documents.byIndex('core', 'code', 'y'))?.id, 'A');
  },

  'a code that was taken over early is not lost when it is given up': async ({ documents }) => {
    await documents.put(from('A', 0), { code: 'x' });
    await documents.put(from('B', 0), { code: 'x' });
    assert.equal((await documents.byIndex('core', 'code', 'x'))?.id, 'B');
    await documents.put(from('A', 1), { code: 'y' });
    assert.equal((await documents.byIndex('core', 'code', 'x'))?.id, 'B');
  },

  'two documents swap their codes in one write': async ({ documents }) => {
    await documents.put(from('A', 0), { code: 'x' });
    await documents.put(from('B', 0), { code: 'y' });
    await documents.write([
      { ...from('A', 1), document: { code: 'y' } },
      { ...from('B', 1), document: { code: 'x' } },
    ]);
    assert.equal((await documents.byIndex('core', 'code', 'x'))?.id, 'B');
    assert.equal((await documents.byIndex('core', 'code', 'y'))?.id, 'A');
  },

  'a removed document gives up its code, and only its own': async ({ documents }) => {
    await documents.put(from('A', 0), { code: 'x' });
    await documents.put(from('B', 0), { code: 'x' });
    await documents.remove(from('A', 1));
    assert.equal((await documents.byIndex('core', 'code', 'x'))?.id, 'B');
    await documents.remove(from('B', 1));
    assert.equal(await documents.byIndex('core', 'code', 'x'), undefined);
  },

  'codes may hold any character': async ({ documents }) => {
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

  'codes are told apart by case and by accents': async ({ documents }) => {
    const codes = ['a', 'A', 'á', 'a\u0301'];
    for (const [index, code] of codes.entries()) {
      await documents.put(from(`c${index}`, 0), { code });
    }
    for (const [index, code] of codes.entries()) {
      assert.equal((await documents.byIndex('core', 'code', code))?.id, `c${index}`);
    }
  },

  'one value in two indexes is two entries': async ({ documents }) => {
    await documents.put(from('A', 0), { code: 'same' });
    await documents.put(from('B', 0), { code: 'b', name: 'same' });
    assert.equal((await documents.byIndex('core', 'code', 'same'))?.id, 'A');
    assert.equal((await documents.byIndex('core', 'display-name', 'same'))?.id, 'B');
  },
};
