import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openMemory } from '../../engines/memory/index.ts';
import { hasCode } from '../../foundation/error.ts';
import { exportEvents, type ExportOptions } from './export-events.ts';
import { eur, exported, several, usd } from '../../testing/support/platform/test-currencies.ts';

describe('the export', () => {
  test('is one recorded event per line, and a checkpoint', async () => {
    await using store = openMemory().store;
    await store.append(usd, several('a', 'b'));
    const lines = (await exported(store)).trimEnd().split('\n');
    const events = await store.readStream(usd).toArray();
    assert.deepEqual(
      lines.map((line) => JSON.parse(line) as unknown),
      [...events, { checkpoint: await store.head() }],
    );
  });

  test('of an empty store is a checkpoint', async () => {
    await using store = openMemory().store;
    assert.equal(await exported(store), `{"checkpoint":"${await store.head()}"}\n`);
  });

  test('ends at the head at its start, regardless of later appends', async () => {
    await using store = openMemory().store;
    await store.append(usd, several('a', 'b'));
    const running = exportEvents(store);
    let text = '';
    for await (const piece of running) {
      text += piece;
      await store.append(usd, several('later'));
    }
    assert.equal(text.match(/"payload"/g)?.length, 2);
    const after = (JSON.parse(text.trimEnd().split('\n').at(-1) ?? '') as { checkpoint: never })
      .checkpoint;
    const rest = await exported(store, { after });
    assert.deepEqual(rest.match(/"name":"\w+"/g), ['"name":"later"']);
  });

  test('of some streams includes only their metadata and tombstones', async () => {
    await using store = openMemory().store;
    const other = 'banking.account.v1-core-1';
    await store.append(usd, several('a'));
    await store.setStreamMetadata(usd, { maxCount: 3 });
    await store.append(other, several('x'));
    await store.setStreamMetadata(other, { maxCount: 4 });
    await store.append(eur, several('b'));
    await store.tombstoneStream(eur);
    await store.tombstoneStream(other);
    const shownBy = async (options: ExportOptions): Promise<string[]> =>
      [...(await exported(store, options)).matchAll(/"stream":"(.+?)"/g)].map(
        ([, name]) => name ?? '',
      );
    const own = [usd, `$$${usd}`, eur, eur];
    assert.deepEqual(await shownBy({ filter: { category: 'banking.currency.v1' } }), own);
    assert.deepEqual(await shownBy({ filter: { streamPrefixes: ['banking.currency'] } }), own);
    assert.equal((await shownBy({ filter: { tenant: 'core' } })).length, 7);
    assert.deepEqual(await shownBy({ filter: { tenant: 'other' } }), []);
    assert.deepEqual(await shownBy({ filter: { types: ['currency.renamed.v1'] } }), [
      usd,
      other,
      eur,
    ]);
  });

  test('stops when its signal fires', async () => {
    await using store = openMemory().store;
    await store.append(usd, several('a'));
    await assert.rejects(
      () => exported(store, { signal: AbortSignal.abort() }),
      (error) => hasCode(error, 'ABORTED'),
    );
  });

  test('reports its progress', async () => {
    await using store = openMemory().store;
    const long = 'x'.repeat(100_000);
    for (let count = 0; count < 10; count += 1) await store.append(usd, several(long));
    const seen: number[] = [];
    await exported(store, { onProgress: ({ done }) => seen.push(done) });
    assert.ok(seen.length > 2);
    assert.deepEqual(
      seen,
      seen.toSorted((a, b) => a - b),
    );
    assert.equal(seen.at(-1), 1);
  });
});
