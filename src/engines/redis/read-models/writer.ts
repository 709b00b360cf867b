// Writes documents of one tenant with as few script calls as their number and size allow. Each call declares the
// keys of all entries that its documents have or had.

import { batchesOf } from '../../../foundation/async/batches-of.ts';
import type {
  DocumentOutcome,
  DocumentWrite,
  ModelKey,
} from '../../../projections/read-model-store.ts';
import { redisUnavailable, type RedisConnection } from '../connection/connection.ts';
import { loadScript } from '../connection/script.ts';
import { encodeFence, kindOf, shapeOf, toRedisText, type DocumentShape } from './document.ts';
import { knownNames, lastingNames, readModelKeyspace } from './keyspace.ts';

// The script declares all keys, so that a cluster that is moving the slot rejects the call, which is then retried.
const writeScript = loadScript(new URL('scripts/write.lua', import.meta.url));

export interface DocumentWriter {
  /** Writes in the given order. */
  write(
    model: ModelKey,
    tenant: string,
    writes: readonly DocumentWrite[],
  ): Promise<readonly DocumentOutcome[]>;
  /** Deletes documents, entries and fences; returns how many documents. */
  forget(model: ModelKey, tenant: string, ids: readonly string[]): Promise<number>;
}

/** Limits of one script call, which blocks the server for a few milliseconds. */
const batch = { documentsMax: 500, charsMax: 4_000_000, rangesMax: 5_000 } as const;
/** Limits the retries: other processes may add names or lists between two rounds. */
const roundsMax = 100;
const outcomes = ['written', 'stale', 'foreign'] as const satisfies DocumentOutcome[];

interface Item {
  readonly id: string;
  readonly fence: string;
  readonly text: string;
}

export function createDocumentWriter(
  connection: RedisConnection,
  defaultShape: 'json' | 'hash',
): DocumentWriter {
  const namesOf = new Map<string, ReturnType<typeof lastingNames>>();

  async function call(
    model: ModelKey,
    tenant: string,
    part: { readonly items: readonly Item[]; readonly writes: readonly DocumentWrite[] },
  ): Promise<readonly number[]> {
    const { items, writes } = part;
    const keyspace = readModelKeyspace(model, tenant, defaultShape);
    const modelName = `${model.bc}:${model.aggregate}:${model.version}`;
    const lasting = namesOf.get(modelName) ?? lastingNames();
    namesOf.set(modelName, lasting);
    const names = knownNames(lasting);
    names.note(writes);
    const metaKeys = [keyspace.meta('fences'), keyspace.meta('generation'), keyspace.meta('lists')];
    const documentKeys = items.map(({ id }) => keyspace.document(id));
    const values = items.flatMap(({ id, fence, text }) => [id, fence, text]);
    for (let round = 0; round < roundsMax; round += 1) {
      const declared = names.declare(keyspace);
      const keys = [...metaKeys, ...declared.keys, ...documentKeys];
      const reply = await connection.run(writeScript, keys, [
        declared.json,
        kindOf(keyspace.shape),
        ...values,
      ]);
      const [kind, list] = reply as ['done', number[]] | ['names', string[]];
      if (kind === 'done') return list;
      names.add(list);
    }
    throw redisUnavailable(new Error('the cached lists of this tenant change too often'));
  }

  return {
    async write(model, tenant, writes) {
      const results: DocumentOutcome[] = [];
      for (const part of partsOf(writes, shapeOf(model, defaultShape))) {
        for (const number of await call(model, tenant, part)) {
          results.push(outcomes[number] ?? 'stale');
        }
      }
      return results;
    },
    async forget(model, tenant, ids) {
      const all = ids.map((id) => ({ id, fence: '', text: '' }));
      let count = 0;
      for (const items of batchesOf(all, { countMax: batch.documentsMax })) {
        count += (await call(model, tenant, { items, writes: [] })).length;
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
