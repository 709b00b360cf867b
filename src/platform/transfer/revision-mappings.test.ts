import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from '../../engines/memory/index.ts';
import { parseExportLine } from './export-format.ts';
import { createRevisionMappings } from './revision-mappings.ts';
import { inParallel, planImport } from './import-plan.ts';
import {
  chf,
  eur,
  exported,
  openTarget,
  several,
  usd,
} from '../../testing/support/platform/test-currencies.ts';

test('a stream that left the cache is looked up again, with or without gaps', async () => {
  await using source = openMemory().store;
  await source.append(usd, several('a', 'b', 'c'));
  await source.append(eur, several('x'));
  await source.setStreamMetadata(usd, { truncateBefore: 2 });
  await source.scavenge();
  await source.append(usd, several('d'));
  await source.append(chf, several('y'));
  await source.append(usd, several('e'));
  const lines = (await exported(source)).trimEnd().split('\n').slice(0, -1);
  await using target = openTarget();
  for (let run = 0; run < 2; run += 1) {
    const empty = run === 0;
    const mappings = createRevisionMappings(target, { empty, mappingsMax: 1 });
    for (const [index, json] of lines.entries()) {
      const line = parseExportLine(json, index + 1);
      assert.equal(line.kind, 'event');
      const plan = await planImport(target, mappings, [line.event]);
      if (plan.writes.length > 0) await target.appendMany(plan.writes);
      for (const [name, mapping] of plan.mappings) mappings.set(name, mapping);
      assert.equal(plan.count, run === 0 ? 1 : 0, `line ${index + 1}`);
    }
  }
  const names = (await target.readStream(usd).toArray()).map(({ payload }) => payload);
  assert.deepEqual(names, [{ name: 'c' }, { name: 'd' }, { name: 'e' }]);
});

test('bounded concurrency processes all items, and starts none after a failure', async () => {
  const done: number[] = [];
  await inParallel([1, 2, 3, 4, 5], 2, async (item) => void done.push(item));
  assert.deepEqual(done, [1, 2, 3, 4, 5]);
  const started: number[] = [];
  const failing = inParallel(new Set([1, 2, 3, 4]), 2, async (item) => {
    started.push(item);
    if (item === 1) throw new Error('failed');
  });
  await assert.rejects(failing, /failed/);
  assert.deepEqual(started, [1, 2]);
});
