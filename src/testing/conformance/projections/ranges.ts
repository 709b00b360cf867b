// Finding documents by a number, page by page, in both directions.

import assert from 'node:assert/strict';
import {
  from,
  rangeOf,
  walk,
  type ReadModelCases,
  type ReadModelContext,
} from './read-model-fixture.ts';

type RangeOptions = Parameters<ReadModelContext['documents']['byRange']>[2];

async function put(
  { documents }: ReadModelContext,
  scores: Readonly<Record<string, number | undefined>>,
): Promise<void> {
  await documents.write(
    Object.entries(scores).map(([id, updated]) => ({
      ...from(id, 0),
      document: { code: id, ...(updated === undefined ? {} : { updated }) },
    })),
  );
}

async function idsOf(
  { documents }: ReadModelContext,
  options: RangeOptions,
): Promise<readonly string[]> {
  return (await documents.byRange('core', 'updated', options)).items.map(({ id }) => id);
}

export const rangeCases: ReadModelCases = {
  'returns documents by number, smallest first': async (context) => {
    await put(context, { a: 30, b: 10, c: 20 });
    assert.deepEqual(await idsOf(context, {}), ['b', 'c', 'a']);
    assert.deepEqual(await rangeOf(context.documents), ['b', 'c', 'a']);
  },

  'returns the exact reverse in descending order': async (context) => {
    await put(context, { a: 1, b: 2, c: 2, d: 3 });
    assert.deepEqual(await idsOf(context, { direction: 'descending' }), ['d', 'c', 'b', 'a']);
  },

  'a page ends with the document that reaches its maximum of bytes': async ({ documents }) => {
    const order = ['a', 'b', 'c', 'd', 'e'];
    const about = 'x'.repeat(1_000);
    await documents.write(
      order.map((id, updated) => ({ ...from(id, 0), document: { code: id, about, updated } })),
    );
    for (const direction of ['ascending', 'descending'] as const) {
      const sizes: number[] = [];
      const seen = await walk(async (cursor) => {
        const page = await documents.byRange('core', 'updated', {
          direction,
          limit: 4,
          cursor,
          bytesMax: 1_500,
        });
        sizes.push(page.items.length);
        return page;
      });
      assert.deepEqual(seen, direction === 'ascending' ? order : order.toReversed());
      assert.deepEqual(sizes, [2, 2, 1]);
    }
  },

  'equal numbers are sorted by id': async (context) => {
    await put(context, { b: 5, A: 5, a: 5, _: 5, Z: 5 });
    assert.deepEqual(await idsOf(context, {}), ['A', 'Z', '_', 'a', 'b']);
  },

  'bounds are inclusive': async (context) => {
    await put(context, { a: 1, b: 2, c: 3, d: 4 });
    assert.deepEqual(await idsOf(context, { from: 2, to: 3 }), ['b', 'c']);
    assert.deepEqual(await idsOf(context, { from: 3 }), ['c', 'd']);
    assert.deepEqual(await idsOf(context, { to: 1 }), ['a']);
    assert.deepEqual(await idsOf(context, { from: 4, to: 1 }), []);
    const reversed = { from: 2, to: 3, direction: 'descending' } as const;
    assert.deepEqual(await idsOf(context, reversed), ['c', 'b']);
  },

  'a document without a number is in no range': async (context) => {
    await put(context, { a: 1, b: undefined });
    assert.deepEqual(await idsOf(context, {}), ['a']);
  },

  'a number that changed moves the document': async (context) => {
    await put(context, { a: 1, b: 2 });
    await context.documents.put(from('a', 1), { code: 'a', updated: 3 });
    assert.deepEqual(await idsOf(context, {}), ['b', 'a']);
    assert.deepEqual(await idsOf(context, { to: 1 }), []);
    await context.documents.put(from('a', 2), { code: 'a' });
    assert.deepEqual(await idsOf(context, {}), ['b']);
  },

  'numbers may be negative, fractional, tiny and huge': async (context) => {
    const scores = { a: -1e15, b: -0.5, c: 0, d: 5e-324, e: 0.1, f: 1, g: 1e15, h: 1.7e308 };
    await put(context, scores);
    assert.deepEqual(await idsOf(context, {}), Object.keys(scores));
    assert.deepEqual(await idsOf(context, { from: 0.1, to: 0.1 }), ['e']);
    assert.deepEqual(await idsOf(context, { from: 0, to: 0 }), ['c']);
    const date = Date.UTC(2026, 10, 16, 12, 0, 0, 123);
    await context.documents.put(from('h', 1), { code: 'h', updated: date });
    assert.deepEqual(await idsOf(context, { from: date, to: date }), ['h']);
  },

  'negative zero equals zero': async (context) => {
    await put(context, { b: 0, a: -0 });
    assert.deepEqual(await idsOf(context, {}), ['a', 'b']);
  },

  'pages of any size return all documents once, in order': async (context) => {
    const scores = Object.fromEntries(
      Array.from({ length: 25 }, (_, index) => [`c${String(index).padStart(2, '0')}`, index % 4]),
    );
    await put(context, scores);
    const order = Object.keys(scores).toSorted(
      (a, b) => Number(scores[a]) - Number(scores[b]) || (a < b ? -1 : 1),
    );
    for (const limit of [1, 3, 24, 25, 26]) {
      for (const direction of ['ascending', 'descending'] as const) {
        const seen = await walk((cursor) =>
          context.documents.byRange('core', 'updated', { limit, direction, cursor }),
        );
        assert.deepEqual(seen, direction === 'ascending' ? order : order.toReversed());
      }
    }
  },

  'a page respects its limit, and the last one has no cursor': async (context) => {
    await put(context, { a: 1, b: 2, c: 3 });
    const first = await context.documents.byRange('core', 'updated', { limit: 2 });
    assert.equal(first.items.length, 2);
    assert.notEqual(first.cursor, undefined);
    const options = { limit: 2, cursor: first.cursor };
    const second = await context.documents.byRange('core', 'updated', options);
    assert.deepEqual(
      second.items.map(({ id }) => id),
      ['c'],
    );
    assert.equal(second.cursor, undefined);
  },

  'the bounds apply to every page': async (context) => {
    await put(context, { a: 1, b: 2, c: 3, d: 4, e: 5 });
    for (const [direction, expected] of [
      ['ascending', ['b', 'c', 'd']],
      ['descending', ['d', 'c', 'b']],
    ] as const) {
      const seen = await walk((cursor) =>
        context.documents.byRange('core', 'updated', {
          from: 2,
          to: 4,
          limit: 1,
          direction,
          cursor,
        }),
      );
      assert.deepEqual(seen, expected);
    }
  },

  'paging continues after the cursor even if its document has moved': async (context) => {
    await put(context, { a: 1, b: 2, c: 3, d: 4 });
    const first = await context.documents.byRange('core', 'updated', { limit: 2 });
    await context.documents.put(from('b', 1), { code: 'b', updated: 9 });
    await context.documents.remove(from('a', 1));
    const rest = await context.documents.byRange('core', 'updated', { cursor: first.cursor });
    assert.deepEqual(
      rest.items.map(({ id }) => id),
      ['c', 'd', 'b'],
    );
  },
};
