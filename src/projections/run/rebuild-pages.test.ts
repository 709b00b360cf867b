import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { openMemory } from '../../engines/memory/index.ts';
import type { RecordedEvent } from '../../store/recorded-event.ts';
import { newCounters } from '../../testing/conformance/projections/projection-fixture.ts';
import { chunksOf } from './project-events.ts';
import { createPageProjector } from './rebuild-pages.ts';

test('for any cache and page size, each event is folded once', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 1, maxLength: 60 }),
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 0, max: 8 }),
      fc.integer({ min: 0, max: 400 }),
      async (order, pageSize, documentsMax, charsMax) => {
        await using db = openMemory();
        const counters = newCounters();
        for (const id of order) await db.store.append(counters.stream(`s${id}`), counters.add(1));
        const projector = createPageProjector(db.readModels, counters.projection(), {
          documentsMax,
          charsMax,
        });
        let written = 0;
        const pages: (readonly RecordedEvent[])[] = [];
        for await (const page of db.store.readAll({ pageSize }).pages()) pages.push(page);
        // Repeat the last page, as after a kill between the write and the checkpoint.
        for (const page of [...pages, ...pages.slice(-1)]) {
          await projector.project(page, async () => {
            written += page.length;
          });
        }
        await projector.finish();
        assert.equal(written, order.length + (pages.at(-1)?.length ?? 0));
        for (const id of new Set(order)) {
          const found = await counters.documents(db).get('core', `s${id}`);
          assert.equal(found?.document.events, order.filter((each) => each === id).length);
        }
      },
    ),
    { numRuns: 60 },
  );
});

test('long documents are split into several writes, and none is left out', () => {
  const writes = [5, 5, 1, 0, 20, 3, 7].map((length, index) => ({
    tenant: 'core',
    id: `s${index}`,
    stream: `s-${index}`,
    revision: 0,
    document: length === 0 ? null : 'x'.repeat(length),
    entries: { indexes: {}, sets: [], ranges: {} },
  }));
  const chunks = chunksOf(writes, 10);
  assert.deepEqual(
    chunks.map((chunk) => chunk.map(({ id }) => id)),
    [['s0', 's1'], ['s2', 's3'], ['s4'], ['s5', 's6']],
  );
  assert.deepEqual(chunks.flat(), writes);
  assert.deepEqual(chunksOf([], 10), []);
});
