// Helpers of all roles: calls for many items, and parsing their replies.

import { batchesOf } from '../../../foundation/async/batches-of.ts';
import type { RedisConnection } from './connection.ts';
import { mastersOf } from './risks.ts';

/** Takes a flat list of alternating values, such as the members and scores of a sorted set. */
export function pairsOf<T>(cells: readonly T[]): (readonly [T, T])[] {
  return Array.from({ length: cells.length / 2 }, (_, at) => [
    cells[at * 2] as T,
    cells[at * 2 + 1] as T,
  ]);
}

export function textOf(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString() : String(value);
}

/**
 * Calls `work` concurrently for each group of items, such as those of one cluster slot. Returns its results in the
 * order of the items.
 */
export async function forEachGroup<T, R>(
  items: readonly T[],
  groupOf: (item: T) => string,
  work: (items: readonly T[], group: string) => Promise<readonly R[]>,
): Promise<R[]> {
  const results: R[] = Array.from({ length: items.length });
  const groups = Map.groupBy(items.entries(), ([, item]) => groupOf(item));
  await Promise.all(
    [...groups].map(async ([group, entries]) => {
      const own = entries.map(([, item]) => item);
      for (const [n, result] of (await work(own, group)).entries()) {
        results[entries[n]?.[0] ?? 0] = result;
      }
    }),
  );
  return results;
}

const concurrentMax = 32;

/** Runs a bounded number of calls concurrently, because a cluster has no command over many streams. */
export async function eachOf<T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  for (const some of batchesOf(items, { countMax: concurrentMax })) {
    results.push(...(await Promise.all(some.map(work))));
  }
  return results;
}

/** Scans all masters. A key that is stored during the scan may be missing. */
export async function scanKeys(
  connection: RedisConnection,
  match: string,
  type: 'stream' | 'hash' | 'string',
): Promise<string[]> {
  const keys: string[] = [];
  for (const node of mastersOf(connection.client)) {
    let cursor = '0';
    do {
      const command = ['SCAN', cursor, 'MATCH', match, 'COUNT', 1_000, 'TYPE', type] as const;
      const page = await connection.ask(() => node.call(...command));
      const [next, some] = page as readonly [string, readonly string[]];
      keys.push(...some);
      cursor = next;
    } while (cursor !== '0');
  }
  return keys;
}

export function escapeGlob(text: string): string {
  return text.replaceAll(/[[\]*?\\^]/g, String.raw`\$&`);
}
