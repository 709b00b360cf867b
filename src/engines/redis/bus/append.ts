// Stores messages in order, with one script call for each slot domain and batch.

import type { Appended, EngineEntry } from '../../../bus/bus-engine.ts';
import { batchesOf } from '../../../foundation/async/batches-of.ts';
import type { RedisConnection } from '../connection/connection.ts';
import { forEachGroup, pairsOf, textOf } from '../connection/engine.ts';
import type { ScriptValue } from '../connection/script.ts';
import { busScripts } from './context.ts';
import type { BusRegistry } from './registry.ts';
import type { BusKeyspace } from './keyspace.ts';

/** Limits of one script call, which blocks the server. */
export const batchMax = { countMax: 500, sizeMax: 4_000_000 } as const;

export function createAppender(
  redis: RedisConnection,
  keyspace: BusKeyspace,
  registry: BusRegistry,
): (entries: readonly EngineEntry[], dedupeWindowMs: number) => Promise<readonly Appended[]> {
  async function store(
    batch: readonly EngineEntry[],
    dedupeWindowMs: number,
  ): Promise<readonly Appended[]> {
    const subjects = [...new Set(batch.map(({ subject }) => subject))];
    const numbers = new Map(subjects.map((subject, at) => [subject, at + 1]));
    const keys = subjects.flatMap((subject) => {
      const key = keyspace.streamKey(subject);
      return [key, keyspace.mark(key)];
    });
    const values = batch.flatMap(({ subject, id, data, meta = '' }): ScriptValue[] => [
      numbers.get(subject) ?? 0,
      id,
      asBuffer(data),
      meta,
    ]);
    const run = (isRegistered: boolean): Promise<unknown> =>
      redis.runForBytes(busScripts.append, keys, [
        dedupeWindowMs,
        keyspace.channel,
        keyspace.isOneDomain ? keyspace.registry : '',
        isRegistered ? 1 : 0,
        ...subjects,
        ...values,
      ]);
    let reply = await run(false);
    if (reply === null) {
      await registry.register(subjects);
      reply = await run(true);
      // Another process may have deleted and deregistered the stream between the two calls.
      await registry.register(subjects);
    }
    return appendedOf(reply);
  }

  return (entries, dedupeWindowMs) =>
    forEachGroup(
      entries,
      ({ subject }) => keyspace.domainOf(keyspace.streamKey(subject)),
      async (own) => {
        const appended: Appended[] = [];
        const sizeOf = ({ data }: EngineEntry): number => data.length;
        for (const batch of batchesOf(own, { ...batchMax, sizeOf })) {
          appended.push(...(await store(batch, dedupeWindowMs)));
        }
        return appended;
      },
    );
}

/** Parses the reply of the script: the sequence and the duplicate flag of each entry. */
export function appendedOf(cells: unknown): readonly Appended[] {
  return pairsOf(cells as readonly unknown[]).map(([sequence, isDuplicate]) => ({
    sequence: textOf(sequence),
    isDuplicate: Number(isDuplicate) === 1,
  }));
}

export function asBuffer(data: Uint8Array): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}
