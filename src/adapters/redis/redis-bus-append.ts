// Stores messages: one script for each domain and portion, in order.

import type { Appended, EngineEntry } from '../../bus/bus-engine.ts';
import { textOf, type BusCalls, type ScriptValue } from './redis-bus-calls.ts';
import type { BusRegistry } from './redis-bus-registry.ts';
import { busScripts } from './redis-bus-scripts.ts';
import type { BusSpace } from './redis-bus-space.ts';

/** So much in one script, so that others are not kept waiting. */
const portionMax = { entries: 500, bytes: 4_000_000 } as const;

interface Placed {
  readonly entry: EngineEntry;
  /** Its place in the caller's list. */
  readonly at: number;
}

export function createAppender(
  calls: BusCalls,
  space: BusSpace,
  registry: BusRegistry,
): (entries: readonly EngineEntry[], dedupeWindowMs: number) => Promise<readonly Appended[]> {
  async function store(portion: readonly Placed[], dedupeWindowMs: number): Promise<Appended[]> {
    const subjects = [...new Set(portion.map(({ entry }) => entry.subject))];
    const numbers = new Map(subjects.map((subject, at) => [subject, at + 1]));
    const keys = subjects.flatMap((subject) => {
      const key = space.streamKey(subject);
      return [key, space.mark(key)];
    });
    const values = portion.flatMap(({ entry: { subject, id, data, meta } }): ScriptValue[] => [
      numbers.get(subject) ?? 0,
      id,
      asBuffer(data),
      meta ?? '',
    ]);
    const run = (isRegistered: boolean): Promise<unknown> =>
      calls.run(busScripts.append, keys, [
        dedupeWindowMs,
        space.channel,
        space.isOneDomain ? space.registry : '',
        isRegistered ? 1 : 0,
        ...subjects,
        ...values,
      ]);
    let answer = await run(false);
    if (answer === null) {
      await registry.register(subjects);
      answer = await run(true);
      // Somebody may have deleted the stream in between, and its name.
      await registry.register(subjects);
    }
    const cells = answer as readonly unknown[];
    return portion.map((_, at) => ({
      sequence: textOf(cells[at * 2]),
      isDuplicate: Number(cells[at * 2 + 1]) === 1,
    }));
  }

  return async (entries, dedupeWindowMs) => {
    const domains = Map.groupBy(
      entries.map((entry, at): Placed => ({ entry, at })),
      ({ entry }) => space.domainOf(space.streamKey(entry.subject)),
    );
    const appended: Appended[] = Array.from({ length: entries.length });
    await Promise.all(
      [...domains.values()].map(async (placed) => {
        for (const portion of portionsOf(placed, ({ entry }) => entry.data.length)) {
          const stored = await store(portion, dedupeWindowMs);
          for (const [n, { at }] of portion.entries()) appended[at] = stored[n] as Appended;
        }
      }),
    );
    return appended;
  };
}

export function portionsOf<T>(items: readonly T[], bytesOf: (item: T) => number): T[][] {
  const portions: T[][] = [];
  let bytes = 0;
  for (const item of items) {
    const last = portions.at(-1);
    bytes += bytesOf(item);
    if (last === undefined || last.length === portionMax.entries || bytes > portionMax.bytes) {
      portions.push([item]);
      bytes = bytesOf(item);
    } else last.push(item);
  }
  return portions;
}

export function asBuffer(data: Uint8Array): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}
