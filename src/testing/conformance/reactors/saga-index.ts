// The conformance suite of saga indexes.

import assert from 'node:assert/strict';
import {
  sagaStatuses,
  type SagaEntry,
  type SagaIndex,
  type SagaIndexUpkeep,
} from '../../../reactors/saga-index.ts';

export interface SagaIndexCase {
  readonly name: string;
  readonly run: () => Promise<void>;
}

let runs = 0;

/**
 * The cases, for any test runner. Each uses separate sagas. `upkeep`: for an index that can be lost while the events
 * survive.
 *
 * @example
 * import { test } from 'node:test';
 * import { openMemory } from 'millrace/engines/memory';
 * import { sagaIndexConformance } from 'millrace/testing';
 *
 * for (const { name, run } of sagaIndexConformance(async () => openMemory().sagas)) test(name, run);
 */
export function sagaIndexConformance(
  open: () => Promise<SagaIndex>,
  options: { readonly upkeep?: boolean } = {},
): readonly SagaIndexCase[] {
  const cases: Readonly<Record<string, (index: SagaIndex, saga: string) => Promise<void>>> = {
    async 'returns stored entries, with and without a time and a reason'(index, saga) {
      const plain = entryOf(saga, 'a');
      const whole = entryOf(saga, 'b', { dueAtMs: 1_900_000_000_123, reason: 'it’s late' });
      await index.put(plain);
      await index.put(whole);
      assert.deepEqual(await index.list({ saga }), [plain, whole]);
    },

    async 'keeps the entry with the highest revision, in any order of arrival'(index, saga) {
      const entries = [3, 1, 5, 4, 5].map((revision, ordinal) =>
        entryOf(saga, 'a', { revision, reason: `put ${ordinal}` }),
      );
      for (const entry of entries) await index.put(entry);
      assert.deepEqual(await index.list({ saga }), [entries[2]]);
    },

    async 'keeps one of several concurrent entries'(index, saga) {
      await Promise.all(
        Array.from({ length: 20 }, (_, revision) => index.put(entryOf(saga, 'a', { revision }))),
      );
      const [entry] = await index.list({ saga });
      assert.equal(entry?.revision, 19);
    },

    async 'returns the first due entries of the given shards and saga only'(index, saga) {
      await index.put(entryOf(saga, 'a', { dueAtMs: 300, shard: 0 }));
      await index.put(entryOf(saga, 'b', { dueAtMs: 100, shard: 1 }));
      await index.put(entryOf(saga, 'c', { dueAtMs: 200, shard: 11 }));
      await index.put(entryOf(saga, 'd', { shard: 1 }));
      await index.put(entryOf(`${saga}0`, 'e', { dueAtMs: 50, shard: 1 }));
      const keys = async (shards: readonly number[], limit = 10): Promise<string[]> =>
        (await index.upcoming({ saga, shards, limit })).map(({ stream }) => stream.slice(-1));
      assert.deepEqual(await keys([0, 1, 11]), ['b', 'c', 'a']);
      assert.deepEqual(await keys([0, 1, 11], 2), ['b', 'c']);
      assert.deepEqual(await keys([1]), ['b']);
      assert.deepEqual(await keys([11, 0]), ['c', 'a']);
      assert.deepEqual(await keys([]), []);
    },

    async 'removes a passed time'(index, saga) {
      await index.put(entryOf(saga, 'a', { dueAtMs: 300, revision: 1 }));
      await index.put(entryOf(saga, 'a', { revision: 2 }));
      assert.deepEqual(await index.upcoming({ saga, shards: [0], limit: 10 }), []);
    },

    async 'a late entry neither restores nor removes a time'(index, saga) {
      const dueAtMs = 300;
      await index.put(entryOf(saga, 'a', { revision: 5 }));
      await index.put(entryOf(saga, 'a', { revision: 4, dueAtMs }));
      await index.put(entryOf(saga, 'b', { revision: 5, dueAtMs }));
      await index.put(entryOf(saga, 'b', { revision: 4 }));
      await index.put(entryOf(saga, 'b', { revision: 3, dueAtMs: 100 }));
      assert.deepEqual(await index.upcoming({ saga, shards: [0], limit: 10 }), [
        { stream: `${saga}-core-b`, dueAtMs },
      ]);
    },

    async 'finds an entry under its last status only'(index, saga) {
      for (const [revision, status] of sagaStatuses.entries()) {
        await index.put(entryOf(saga, 'a', { revision, status }));
        for (const each of sagaStatuses) {
          const found = await index.list({ saga, status: each });
          assert.equal(found.length, each === status ? 1 : 0, `${each} while ${status}`);
        }
      }
    },

    async 'lists many tenants in the order of the streams, with any page size'(index, saga) {
      const tenants = ['core', 'core-eu', 'a', 'demo', 'core2', ...countedTenants(40)];
      const keys = ['a', 'f', 'z1'];
      const entries = tenants.flatMap((tenant) =>
        keys.map((key, at) =>
          entryOf(saga, key, { tenant, status: at === 0 ? 'running' : 'parked', revision: at }),
        ),
      );
      await Promise.all(entries.map((entry) => index.put(entry)));
      await index.put(entryOf(`${saga}0`, 'other'));
      const sorted = entries.map(({ stream }) => stream).toSorted((a, b) => (a < b ? -1 : 1));
      for (const limit of [1, 7, 1_000]) {
        const walked: string[] = [];
        for (let after = ''; ;) {
          const page = await index.list({ saga, after, limit });
          walked.push(...page.map(({ stream }) => stream));
          if (page.length < limit) break;
          after = page.at(-1)?.stream ?? '';
        }
        assert.deepEqual(walked, sorted, `pages of ${limit}`);
      }
      assert.equal((await index.list({ saga, tenant: 'core', limit: 9 })).length, 3);
      assert.deepEqual(await index.list({ saga, tenant: 'unknown' }), []);
    },

    async 'lists more entries than fit into one page'(index, saga) {
      const count = 2_100;
      for (let at = 0; at < count; at += 100) {
        await Promise.all(
          Array.from({ length: 100 }, (_, more) => index.put(entryOf(saga, `k${at + more}`))),
        );
      }
      const all = await index.list({ saga, limit: count + 1 });
      assert.equal(new Set(all.map(({ stream }) => stream)).size, count);
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
  const upkeep: typeof cases = {
    async 'is incomplete until all entries are stored again'(index, saga) {
      const upkept = upkeepOf(index);
      const shards = [0, 1, 2];
      assert.deepEqual(await upkept.incomplete({ saga, shards }), shards);
      await index.put(entryOf(saga, 'a', { dueAtMs: 300, shard: 1 }));
      const done = await upkept.renew({ saga, shards: [0, 1] });
      assert.deepEqual(await upkept.incomplete({ saga, shards }), shards);
      await done();
      assert.deepEqual(await upkept.incomplete({ saga, shards }), [2]);
      assert.deepEqual(await upkept.incomplete({ saga: `${saga}0`, shards: [0] }), [0]);
      await index.put(entryOf(saga, 'a', { revision: 1, shard: 1 }));
      assert.deepEqual(await upkept.incomplete({ saga, shards: [1] }), []);
      assert.deepEqual(await index.upcoming({ saga, shards, limit: 10 }), []);
      assert.deepEqual(await upkept.incomplete({ saga, shards: [] }), []);
    },

    async 'is incomplete while a later process stores the entries again'(index, saga) {
      const upkept = upkeepOf(index);
      const shards = [0];
      const first = await upkept.renew({ saga, shards });
      const second = await upkept.renew({ saga, shards });
      await first();
      assert.deepEqual(await upkept.incomplete({ saga, shards }), shards);
      await second();
      assert.deepEqual(await upkept.incomplete({ saga, shards }), []);
    },
  };
  const all = { ...cases, ...(options.upkeep === true ? upkeep : {}) };
  return Object.entries(all).map(([name, body]) => ({
    name,
    async run() {
      runs += 1;
      await body(await open(), `shop.saga${process.pid}n${runs}.v1`);
    },
  }));
}

function upkeepOf({ upkeep }: SagaIndex): SagaIndexUpkeep {
  assert.ok(upkeep !== undefined, 'it has no upkeep');
  return upkeep;
}

function countedTenants(count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `tenant${at}`);
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
