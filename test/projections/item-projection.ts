// Documents that prove which events they contain: their number, and a hash chain in their order.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  documentsOf,
  projection,
  readModel,
  type ProjectedEvent,
  type Projection,
  type ProjectionRoles,
} from '../../src/projections/index.ts';
import type { RecordedEvent } from '../../src/store/index.ts';
import { eventTypes } from '../store/rig.ts';

interface Item {
  readonly events: number;
  readonly chain: string;
  readonly last: number;
}

function fold(item: Item | null, { eventId, revision }: ProjectedEvent): Item {
  const chain = createHash('sha256')
    .update(`${item?.chain ?? ''} ${eventId}`)
    .digest('hex');
  return { events: (item?.events ?? 0) + 1, chain, last: revision };
}

export function itemProjection(
  version: number,
  shards = 1,
  onEvent: () => void = () => undefined,
): Projection<Item> {
  return projection({
    name: `sub:rig:items:v${version}`,
    readModel: readModel<Item>({
      bc: 'rig',
      aggregate: 'item',
      version,
      indexes: { chain: ({ chain }) => chain },
      sets: { even: ({ events }) => events % 2 === 0 },
      ranges: { last: ({ last }) => last },
    }),
    filter: { category: 'rig.item.v1' },
    shards,
    batchSize: 20,
    on: {
      [eventTypes[0]](item: Item | null, event: ProjectedEvent) {
        onEvent();
        return fold(item, event);
      },
    },
  });
}

/** Checks that the documents of a version, their indexes, sets and ranges match the events. */
export async function checkItems(
  { store, readModels }: Pick<ProjectionRoles, 'readModels' | 'store'>,
  version: number,
): Promise<void> {
  const expected = new Map<string, Item>();
  for await (const event of store.readAll({ pageSize: 5_000 })) {
    const id = idOf(event);
    expected.set(id, fold(expected.get(id) ?? null, event));
  }
  const documents = documentsOf(readModels, itemProjection(version).readModel);
  const found = new Map<string, Item>();
  let cursor: string | undefined;
  do {
    const page = await documents.byRange('core', 'last', { limit: 1_000, cursor });
    for (const { id, document } of page.items) {
      assert.ok(!found.has(id), `${id} was returned twice`);
      found.set(id, document);
    }
    ({ cursor } = page);
  } while (cursor !== undefined);
  assert.deepEqual(
    [...found].toSorted(([a], [b]) => (a < b ? -1 : 1)),
    [...expected].toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );
  const even = [...expected].filter(([, { events }]) => events % 2 === 0).map(([id]) => id);
  const members = await documents.bySet('core', 'even', { limit: 1_000 });
  assert.deepEqual(members.items.map(({ id }) => id).toSorted(), even.toSorted());
  for (const [id, { chain }] of expected) {
    assert.equal((await documents.byIndex('core', 'chain', chain))?.id, id);
  }
}

function idOf({ stream }: RecordedEvent): string {
  return stream.slice('rig.item.v1-core-'.length);
}
