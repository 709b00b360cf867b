// Stores messages in order, with one script call for each slot domain and batch.

import type { Appended, EngineEntry } from '../../../bus/bus-engine.ts';
import { textOf, type EngineCalls, type ScriptValue } from '../connection/engine.ts';
import { busScripts } from './context.ts';
import type { BusRegistry } from './registry.ts';
import type { BusKeyspace } from './keyspace.ts';

/** Limits of one script call, which blocks the server. */
const batchMax = { entries: 500, bytes: 4_000_000 } as const;

interface Placed {
  readonly entry: EngineEntry;
  /** Index in the caller's list. */
  readonly at: number;
}

export function createAppender(
  calls: EngineCalls,
  keyspace: BusKeyspace,
  registry: BusRegistry,
): (entries: readonly EngineEntry[], dedupeWindowMs: number) => Promise<readonly Appended[]> {
  async function store(batch: readonly Placed[], dedupeWindowMs: number): Promise<Appended[]> {
    const subjects = [...new Set(batch.map(({ entry }) => entry.subject))];
    const numbers = new Map(subjects.map((subject, at) => [subject, at + 1]));
    const keys = subjects.flatMap((subject) => {
      const key = keyspace.streamKey(subject);
      return [key, keyspace.mark(key)];
    });
    const values = batch.flatMap(({ entry: { subject, id, data, meta } }): ScriptValue[] => [
      numbers.get(subject) ?? 0,
      id,
      asBuffer(data),
      meta ?? '',
    ]);
    const run = (isRegistered: boolean): Promise<unknown> =>
      calls.run(busScripts.append, keys, [
        dedupeWindowMs,
        keyspace.channel,
        keyspace.isOneDomain ? keyspace.registry : '',
        isRegistered ? 1 : 0,
        ...subjects,
        ...values,
      ]);
    let answer = await run(false);
    if (answer === null) {
      await registry.register(subjects);
      answer = await run(true);
      // Another process may have deleted and deregistered the stream between the two calls.
      await registry.register(subjects);
    }
    const cells = answer as readonly unknown[];
    return batch.map((_, at) => ({
      sequence: textOf(cells[at * 2]),
      isDuplicate: Number(cells[at * 2 + 1]) === 1,
    }));
  }

  return async (entries, dedupeWindowMs) => {
    const domains = Map.groupBy(
      entries.map((entry, at): Placed => ({ entry, at })),
      ({ entry }) => keyspace.domainOf(keyspace.streamKey(entry.subject)),
    );
    const appended: Appended[] = Array.from({ length: entries.length });
    await Promise.all(
      [...domains.values()].map(async (placed) => {
        for (const batch of batchesOf(placed, ({ entry }) => entry.data.length)) {
          const stored = await store(batch, dedupeWindowMs);
          for (const [n, { at }] of batch.entries()) appended[at] = stored[n] as Appended;
        }
      }),
    );
    return appended;
  };
}

export function batchesOf<T>(
  items: readonly T[],
  bytesOf: (item: T) => number,
  entriesMax: number = batchMax.entries,
): T[][] {
  const batches: T[][] = [];
  let bytes = 0;
  for (const item of items) {
    const last = batches.at(-1);
    bytes += bytesOf(item);
    if (last === undefined || last.length === entriesMax || bytes > batchMax.bytes) {
      batches.push([item]);
      bytes = bytesOf(item);
    } else last.push(item);
  }
  return batches;
}

export function asBuffer(data: Uint8Array): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}
