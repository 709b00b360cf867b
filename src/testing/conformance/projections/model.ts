// Random writes to a store and to a simple model; all queries must return the same results.

import assert from 'node:assert/strict';
import { seededRandom, type SeededRandom } from '../../seeded-random.ts';
import {
  documentsOf,
  type DocumentChange,
  type Documents,
} from '../../../projections/documents.ts';
import { referenceReadModels } from './reference-read-models.ts';
import {
  walk,
  type Currency,
  type ReadModelCases,
  type ReadModelContext,
} from './read-model-fixture.ts';

const ids = ['a', 'B', 'c.1', 'd-2', '_e'] as const;
const codes = ['x', 'y', 'z', 'Zoë'] as const;
const regions = ['eu', 'constructor', '__proto__'] as const;
const tenants = ['core', 'demo'] as const;

/** Creates one write per document. */
function randomChanges(random: SeededRandom): DocumentChange<Currency>[] {
  const changes = new Map<string, DocumentChange<Currency>>();
  for (let count = 1 + random.below(4); count > 0; count -= 1) {
    const [tenant, id] = [random.pick(tenants), random.pick(ids)];
    // Sometimes write from a stream that does not own the document.
    const stream = `banking.currency.v1-${tenant}-${id}${random.below(12) === 0 ? '-other' : ''}`;
    const document = random.below(5) === 0 ? null : randomDocument(random);
    changes.set(`${tenant} ${id}`, { tenant, id, stream, revision: random.below(8), document });
  }
  return [...changes.values()];
}

function randomDocument(random: SeededRandom): Currency {
  return {
    code: random.pick(codes),
    ...(random.below(2) === 0 ? { name: random.pick(codes) } : {}),
    ...(random.below(2) === 0 ? { enabled: true } : {}),
    ...(random.below(3) === 0 ? {} : { updated: random.pick([-1.5, 0, 2, 1e15]) }),
    regions: Object.fromEntries(
      regions.flatMap((region) => (random.below(2) === 0 ? [] : [[region, random.below(3)]])),
    ),
  };
}

/** The results of all queries, in a comparable form. */
async function everything(documents: Documents<Currency>): Promise<unknown> {
  const found: unknown[] = [];
  for (const tenant of tenants) {
    for (const id of ids) found.push(await documents.get(tenant, id));
    for (const code of codes) {
      found.push(await documents.byIndex(tenant, 'code', code));
      found.push(await documents.byIndex(tenant, 'display-name', code));
    }
    for (const set of ['all', 'enabled', 'named']) {
      found.push(await walk((cursor) => documents.bySet(tenant, set, { limit: 2, cursor }), 'any'));
    }
    for (const direction of ['ascending', 'descending'] as const) {
      const page = (cursor: string | undefined) =>
        documents.byRange(tenant, 'updated', { limit: 2, cursor, direction, from: -1.5, to: 1e14 });
      found.push(await walk(page));
      for (const group of regions) {
        const own = (cursor: string | undefined) =>
          documents.byRange(tenant, 'region', { limit: 2, cursor, direction, group });
        found.push(await walk(own), await documents.count(tenant, 'region', { group }));
      }
    }
  }
  return found;
}

export const modelCases: ReadModelCases = Object.fromEntries(
  [1, 2, 3, 4, 5, 6, 7, 8].map((seed) => [
    `random writes result in the documents of the model (seed ${seed})`,
    async ({ documents, model }: ReadModelContext) => {
      const random = seededRandom(seed);
      const plain = documentsOf(referenceReadModels(), model);
      for (let step = 0; step < 25; step += 1) {
        const changes = randomChanges(random);
        assert.deepEqual(await documents.write(changes), await plain.write(changes), `${step}`);
        if (step % 8 === 0) {
          assert.deepEqual(await everything(documents), await everything(plain), `${step}`);
        }
      }
    },
  ]),
);
