import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { documentsOf, type Documents } from '../../../projections/documents.ts';
import { referenceReadModels } from '../../../testing/conformance/projections/reference-read-models.ts';
import { readModel } from '../../../projections/read-model.ts';
import { sharedRedis, sharedRedisCluster } from '../../../testing/servers/shared-servers.ts';
import { openRedis } from '../open-redis.ts';
import { codePoint } from '../../../testing/support/code-point.ts';

interface Thing {
  readonly code?: string;
  readonly on?: boolean;
  readonly score?: number;
  readonly text?: string;
}

const ids = ['a', 'b', 'c', 'd'];
const tenants = ['core', 'demo'];
const change = fc.record({
  tenant: fc.constantFrom(...tenants),
  id: fc.constantFrom(...ids),
  revision: fc.nat(12),
  isForeign: fc.nat(9).map((chance) => chance === 0),
  document: fc.option(
    fc.record(
      {
        code: fc.constantFrom('x', 'y', 'ü "quoted" \n', '🙂'),
        on: fc.boolean(),
        score: fc.oneof(
          fc.integer({ min: -3, max: 3 }),
          fc.double({ noNaN: true, noDefaultInfinity: true }),
        ),
        text: fc.string({ unit: codePoint }),
      },
      { requiredKeys: [] },
    ),
    { freq: 5 },
  ),
});
const batches = fc.array(
  fc.uniqueArray(change, { minLength: 1, maxLength: 5, selector: ({ tenant, id }) => tenant + id }),
  { minLength: 1, maxLength: 15 },
);

const { url } = await sharedRedis();
const { nodes } = await sharedRedisCluster();
const clusterUrl = `redis+cluster://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;

for (const [name, target, documents] of [
  ['Redis', url, 'json'],
  ['a Redis Cluster, as hashes', clusterUrl, 'hash'],
] as const) {
  test(`${name} returns the same results as memory for any sequence of writes`, async () => {
    await using handle = await openRedis(target, { documents });
    const redis = handle.readModels;
    await using memory = referenceReadModels();
    const run = async (given: typeof batches extends fc.Arbitrary<infer B> ? B : never) => {
      const model = readModel<Thing>({
        bc: 'model',
        aggregate: `t${randomUUID().replaceAll('-', '')}`,
        version: 1,
        indexes: { code: ({ code }) => code },
        sets: { on: ({ on }) => on === true },
        ranges: { score: ({ score }) => score },
      });
      const stores = [documentsOf(redis, model), documentsOf(memory, model)] as const;
      for (const batch of given) {
        const writes = batch.map(({ tenant, id, revision, isForeign, document }) => ({
          tenant,
          id,
          revision,
          stream: `model.thing.v1-${tenant}-${isForeign ? 'other' : id}`,
          document,
        }));
        const [actual, expected] = await Promise.all(stores.map((each) => each.write(writes)));
        assert.deepEqual(actual, expected);
      }
      const [actual, expected] = await Promise.all(stores.map(everything));
      assert.deepEqual(actual, expected);
      while ((await redis.clear(model, 3)) > 0);
    };
    await fc.assert(fc.asyncProperty(batches, run), { numRuns: 60 });
  });
}

/** Runs all queries and returns their results. */
async function everything(documents: Documents<Thing>): Promise<unknown> {
  return Promise.all(
    tenants.map(async (tenant) => ({
      byId: await Promise.all(ids.map((id) => documents.get(tenant, id))),
      byCode: await Promise.all(
        ['x', 'y', 'ü "quoted" \n', '🙂'].map((code) => documents.byIndex(tenant, 'code', code)),
      ),
      all: sorted((await documents.bySet(tenant, 'all')).items),
      on: sorted((await documents.bySet(tenant, 'on')).items),
      ascending: (await documents.byRange(tenant, 'score')).items,
      descending: (await documents.byRange(tenant, 'score', { direction: 'descending' })).items,
      bounded: (await documents.byRange(tenant, 'score', { from: -1, to: 1 })).items,
    })),
  );
}

function sorted<T extends { readonly id: string }>(items: readonly T[]): readonly T[] {
  return items.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}
