// What every index of sagas does.

import assert from 'node:assert/strict';
import type { SagaEntry, SagaIndex } from './saga-index.ts';

export interface SagaIndexCase {
  readonly name: string;
  readonly run: () => Promise<void>;
}

let runs = 0;

/**
 * The cases, for a test runner of any kind. Each uses sagas of its own.
 *
 * @example
 * import { test } from 'node:test';
 * import { memorySagaIndex } from 'millrace/reactors';
 * import { sagaIndexConformance } from 'millrace/testing';
 *
 * for (const { name, run } of sagaIndexConformance(async () => memorySagaIndex())) test(name, run);
 */
export function sagaIndexConformance(open: () => Promise<SagaIndex>): readonly SagaIndexCase[] {
  const cases: Readonly<Record<string, (index: SagaIndex, saga: string) => Promise<void>>> = {
    async 'gives back what was put, with and without a time and a reason'(index, saga) {
      const plain = entryOf(saga, 'a');
      const whole = entryOf(saga, 'b', { dueAtMs: 1_900_000_000_123, reason: 'it’s late' });
      await index.put(plain);
      await index.put(whole);
      assert.deepEqual(await index.list({ saga }), [plain, whole]);
    },

    async 'keeps the entry of the highest revision, whatever order they come in'(index, saga) {
      const entries = [3, 1, 5, 4, 5].map((revision, place) =>
        entryOf(saga, 'a', { revision, reason: `put ${place}` }),
      );
      for (const entry of entries) await index.put(entry);
      assert.deepEqual(await index.list({ saga }), [entries[2]]);
    },

    async 'keeps one of many that are put at once'(index, saga) {
      await Promise.all(
        Array.from({ length: 20 }, (_, revision) => index.put(entryOf(saga, 'a', { revision }))),
      );
      const [entry] = await index.list({ saga });
      assert.equal(entry?.revision, 19);
    },

    async 'tells what is due first, of these shards and this saga only'(index, saga) {
      await index.put(entryOf(saga, 'a', { dueAtMs: 300, shard: 0 }));
      await index.put(entryOf(saga, 'b', { dueAtMs: 100, shard: 1 }));
      await index.put(entryOf(saga, 'c', { dueAtMs: 200, shard: 11 }));
      await index.put(entryOf(saga, 'd', { shard: 1 }));
      await index.put(entryOf(`${saga}x`, 'e', { dueAtMs: 50, shard: 1 }));
      const keys = async (shards: readonly number[], limit = 10): Promise<string[]> =>
        (await index.upcoming({ saga, shards, limit })).map(({ stream }) => stream.slice(-1));
      assert.deepEqual(await keys([0, 1, 11]), ['b', 'c', 'a']);
      assert.deepEqual(await keys([0, 1, 11], 2), ['b', 'c']);
      assert.deepEqual(await keys([1]), ['b']);
      assert.deepEqual(await keys([11, 0]), ['c', 'a']);
      assert.deepEqual(await keys([]), []);
    },

    async 'forgets a time that passed'(index, saga) {
      await index.put(entryOf(saga, 'a', { dueAtMs: 300, revision: 1 }));
      await index.put(entryOf(saga, 'a', { revision: 2 }));
      assert.deepEqual(await index.upcoming({ saga, shards: [0], limit: 10 }), []);
    },

    async 'lists by status and tenant, page by page, in the order of the streams'(index, saga) {
      for (const key of ['d', 'b', 'a', 'e', 'c']) {
        await index.put(entryOf(saga, key, { status: key === 'c' ? 'completed' : 'parked' }));
      }
      await index.put(entryOf(saga, 'z', { status: 'parked', tenant: 'other' }));
      const first = await index.list({ saga, status: 'parked', tenant: 'core', limit: 3 });
      assert.deepEqual(
        first.map(({ key }) => key),
        ['a', 'b', 'd'],
      );
      const after = first.at(-1)?.stream ?? '';
      const second = await index.list({ saga, status: 'parked', tenant: 'core', limit: 3, after });
      assert.deepEqual(
        second.map(({ key }) => key),
        ['e'],
      );
      assert.equal((await index.list({ saga, status: 'compensating' })).length, 0);
      assert.equal((await index.list({ tenant: 'other', status: 'parked' })).length > 0, true);
    },
  };
  return Object.entries(cases).map(([name, body]) => ({
    name,
    async run() {
      runs += 1;
      await body(await open(), `shop.saga${process.pid}n${runs}.v1`);
    },
  }));
}

function entryOf(saga: string, key: string, more: Partial<SagaEntry> = {}): SagaEntry {
  const { tenant = 'core' } = more;
  return {
    stream: `${saga}-${tenant}-${key}`,
    saga,
    tenant,
    key,
    status: 'running',
    revision: 0,
    updatedAtMs: 1_759_226_400_000,
    dueAtMs: undefined,
    shard: 0,
    reason: undefined,
    ...more,
  };
}
