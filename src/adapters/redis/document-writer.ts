// Writes documents of one tenant: as few calls as their number and size allow, each with every key
// declared that its documents have entries in, now or before.

import type {
  DocumentOutcome,
  DocumentWrite,
  ModelKey,
} from '../../projections/read-model-store.ts';
import { encodeFence } from './document-fence.ts';
import { kindOf, shapeOf, toRedisText, type DocumentShape } from './document-text.ts';
import { writeScript } from './read-model-scripts.ts';
import { knownNames, lastingNames, readModelSpace } from './read-model-space.ts';
import type { RedisConnection } from './redis-connection.ts';
import { redisUnavailable } from './redis-error.ts';

export interface DocumentWriter {
  /** In the order given. */
  write(
    model: ModelKey,
    tenant: string,
    writes: readonly DocumentWrite[],
  ): Promise<readonly DocumentOutcome[]>;
  /** Documents, entries and fences; returns how many. */
  forget(model: ModelKey, tenant: string, ids: readonly string[]): Promise<number>;
}

/** A script holds up everybody else on the server: a millisecond or a few. */
const batch = { documentsMax: 500, charsMax: 4_000_000, rangesMax: 5_000 } as const;
/** New names or lists may appear while it is asked again. */
const roundsMax = 100;
const outcomes = ['written', 'stale', 'foreign'] as const satisfies DocumentOutcome[];

interface Item {
  readonly id: string;
  readonly fence: string;
  readonly text: string;
}

export function createDocumentWriter(
  connection: RedisConnection,
  usual: 'json' | 'hash',
): DocumentWriter {
  const namesOf = new Map<string, ReturnType<typeof lastingNames>>();

  async function call(
    model: ModelKey,
    tenant: string,
    part: { readonly items: readonly Item[]; readonly writes: readonly DocumentWrite[] },
  ): Promise<readonly number[]> {
    const { items, writes } = part;
    const space = readModelSpace(model, tenant, usual);
    const modelName = `${model.bc}:${model.aggregate}:${model.version}`;
    const lasting = namesOf.get(modelName) ?? lastingNames();
    namesOf.set(modelName, lasting);
    const names = knownNames(lasting);
    names.note(writes);
    const metaKeys = [space.meta('fences'), space.meta('generation'), space.meta('lists')];
    const documentKeys = items.map(({ id }) => space.document(id));
    const values = items.flatMap(({ id, fence, text }) => [id, fence, text]);
    for (let round = 0; round < roundsMax; round += 1) {
      const declared = names.declare(space);
      const keys = [...metaKeys, ...declared.keys, ...documentKeys];
      const answer = await connection.run(writeScript, keys, [
        declared.json,
        kindOf(space.shape),
        ...values,
      ]);
      const [kind, list] = answer as ['done', number[]] | ['names', string[]];
      if (kind === 'done') return list;
      names.add(list);
    }
    throw redisUnavailable(new Error('the lists of this tenant change too fast'));
  }

  return {
    async write(model, tenant, writes) {
      const results: DocumentOutcome[] = [];
      for (const part of partsOf(writes, shapeOf(model, usual))) {
        for (const number of await call(model, tenant, part)) {
          results.push(outcomes[number] ?? 'stale');
        }
      }
      return results;
    },
    async forget(model, tenant, ids) {
      const items = ids.map((id) => ({ id, fence: '', text: '' }));
      let count = 0;
      for (let at = 0; at < items.length; at += batch.documentsMax) {
        const part = { items: items.slice(at, at + batch.documentsMax), writes: [] };
        count += (await call(model, tenant, part)).length;
      }
      return count;
    },
  };
}

function* partsOf(
  writes: readonly DocumentWrite[],
  shape: DocumentShape,
): Generator<{ readonly items: readonly Item[]; readonly writes: readonly DocumentWrite[] }> {
  let items: Item[] = [];
  let from = 0;
  let chars = 0;
  let ranges = 0;
  for (const [index, write] of writes.entries()) {
    const text = write.document === null ? '' : toRedisText(shape, write.document);
    if (
      items.length === batch.documentsMax ||
      ranges > batch.rangesMax ||
      (chars > 0 && chars + text.length > batch.charsMax)
    ) {
      yield { items, writes: writes.slice(from, index) };
      [items, from, chars, ranges] = [[], index, 0, 0];
    }
    items.push({ id: write.id, fence: encodeFence(write), text });
    chars += text.length;
    ranges += Object.keys(write.entries.ranges).length;
  }
  if (items.length > 0) yield { items, writes: writes.slice(from) };
}
