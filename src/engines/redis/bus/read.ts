// Reads streams without a group: up to the last stored message, or live.

import { matchesFilter, type ReadRequest, type StoredEntry } from '../../../bus/bus-engine.ts';
import { batchesOf } from '../../../foundation/async/batches-of.ts';
import { aborted } from '../../../foundation/clock.ts';
import { MillraceError } from '../../../foundation/error.ts';
import { createWaiters, waitWithPoll } from '../../../foundation/async/waiters.ts';
import { eachOf, textOf } from '../connection/engine.ts';
import { busScripts, type RedisBusContext } from './context.ts';
import { idBefore, storedEntry } from './entry.ts';
import { fullSubjects } from './registry.ts';
import type { RedisClient } from '../connection/connection.ts';
import type { Wake } from './wakes.ts';

/** Limits concurrent reads, because a message may have a megabyte. */
const atOnce = { entries: 100, streams: 8 } as const;
/** Interval between polls of all streams, and between attempts while the server is unreachable. */
const pollMs = 1_000;
const retryMs = 100;

type Batches = AsyncIterable<readonly StoredEntry[]>;
type FoundEntry = readonly [id: Buffer, fields: Parameters<typeof storedEntry>[2]];

interface Batch {
  readonly entries: readonly StoredEntry[];
  /** False: the batch is full, and more messages may follow. */
  readonly isEnd: boolean;
}

const isWrongType = (error: unknown): boolean =>
  error instanceof MillraceError && error.message.includes('WRONGTYPE');

export function createBusRead(
  context: RedisBusContext,
): (pattern: string, request: ReadRequest) => Promise<Batches> {
  const { redis, keyspace, registry, wakes, clock } = context;

  /** Treats a key of another type as an empty stream, so that it blocks no other stream. */
  async function ofStream<T>(call: (client: RedisClient) => Promise<T[]>): Promise<T[]> {
    try {
      return await redis.ask(call);
    } catch (error) {
      if (!isWrongType(error)) throw error;
      return [];
    }
  }

  async function lastId(subject: string): Promise<string> {
    const key = keyspace.streamKey(subject);
    const [last] = await ofStream((client) => client.xrevrangeBuffer(key, '+', '-', 'COUNT', 1));
    return last === undefined ? '0-0' : textOf(last[0]);
  }

  async function batch(
    subject: string,
    range: { readonly after: string; readonly to: string; readonly count: number },
  ): Promise<Batch> {
    const { after, to, count } = range;
    const key = keyspace.streamKey(subject);
    const from = after === '0-0' ? '-' : `(${after}`;
    try {
      const reply = await redis.runForBytes(busScripts.read, [key], [from, to, count]);
      const [isEnd, found] = reply as readonly [number, readonly FoundEntry[]];
      const entries = found.map(([id, fields]) => storedEntry(subject, textOf(id), fields));
      return { entries, isEnd: isEnd === 1 };
    } catch (error) {
      if (!isWrongType(error)) throw error;
      return { entries: [], isEnd: true };
    }
  }

  async function* toEnd(
    ends: readonly (readonly [subject: string, end: string])[],
    { from, signal, batchMax }: ReadRequest,
  ): Batches {
    const count = Math.min(batchMax, atOnce.entries);
    for (const [subject, to] of ends) {
      let after = from === 'end' ? to : idBefore(from);
      for (;;) {
        if (signal.aborted) throw aborted(signal);
        const { entries, isEnd } = await batch(subject, { after, to, count });
        if (entries.length > 0) yield entries;
        if (isEnd) break;
        after = entries.at(-1)?.sequence ?? after;
      }
    }
  }

  async function live(pattern: string, request: ReadRequest): Promise<Batches> {
    const { from, signal } = request;
    const count = Math.min(request.batchMax, atOnce.entries);
    const isPattern = fullSubjects([pattern]).length === 0;
    const cursors = new Map<string, string>();
    const dirty = new Set<string>();
    const laterFrom = from === 'end' ? '0-0' : idBefore(from);
    let version = 0;
    const news = createWaiters();

    function add(subject: string): void {
      if (!cursors.has(subject)) cursors.set(subject, laterFrom);
      dirty.add(subject);
    }
    function onWake(wake: Wake): void {
      if (wake.kind === 'freed') return;
      if (wake.kind === 'anything') for (const subject of cursors.keys()) dirty.add(subject);
      else {
        const matching = wake.subjects.filter((each) => matchesFilter(pattern, each));
        if (matching.length === 0) return;
        for (const subject of matching) add(subject);
      }
      news.wakeAll();
    }
    async function poll(): Promise<void> {
      if (isPattern) {
        const page = await registry.since(version);
        version = page.version;
        for (const each of page.subjects) if (matchesFilter(pattern, each)) add(each);
      }
      for (const subject of cursors.keys()) dirty.add(subject);
    }
    async function* dirtyBatches(): Batches {
      for (const some of batchesOf(dirty, { countMax: atOnce.streams })) {
        // Removed before the read: a wake-up during the read adds the subject again.
        for (const subject of some) dirty.delete(subject);
        const found = await readAll(some);
        for (const [at, { entries, isEnd }] of found.entries()) {
          const subject = some[at] ?? '';
          if (entries.length === 0) continue;
          cursors.set(subject, entries.at(-1)?.sequence ?? laterFrom);
          if (!isEnd) dirty.add(subject);
          yield entries;
        }
      }
    }
    async function readAll(some: readonly string[]): Promise<Batch[]> {
      try {
        return await eachOf(some, async (subject) => {
          const after = cursors.get(subject) ?? laterFrom;
          return batch(subject, { after, to: '+', count });
        });
      } catch (error) {
        for (const subject of some) dirty.add(subject);
        throw error;
      }
    }

    const off = wakes.on(onWake);
    signal.addEventListener('abort', off, { once: true });
    try {
      await wakes.listen();
      await poll();
      if (!isPattern) add(pattern);
      if (from === 'end') {
        await eachOf([...cursors.keys()], async (each) => cursors.set(each, await lastId(each)));
      }
    } catch (error) {
      off();
      throw error;
    }

    return {
      async *[Symbol.asyncIterator]() {
        let pollAtMs = clock.now() + pollMs;
        try {
          for (;;) {
            if (signal.aborted) throw aborted(signal);
            try {
              if (clock.now() >= pollAtMs) {
                pollAtMs = clock.now() + pollMs;
                await poll();
              }
              yield* dirtyBatches();
            } catch (error) {
              if (!(error instanceof MillraceError && error.retryable)) throw error;
              await clock.sleep(retryMs, signal);
              continue;
            }
            if (dirty.size > 0) continue;
            const waitMs = Math.max(1, pollAtMs - clock.now());
            await waitWithPoll(news, { clock, pollMs: waitMs, signal });
          }
        } finally {
          off();
        }
      },
    };
  }

  return async (pattern, request) => {
    if (request.isLive) return live(pattern, request);
    const matching = await registry.matching([pattern]);
    const ends = await eachOf(matching, async (each) => [each, await lastId(each)] as const);
    return toEnd(ends, request);
  };
}
