// Looking through a long way with a filter that seldom matches. A read would answer when it has
// found enough, however long that takes; a subscription tells in between how far it got, so that the
// way already gone need not be gone again.

import type { Client, ClientRecord, ClientSubscription } from './kurrentdb-client.ts';
import type { ServerFilter } from './push-down.ts';

export interface ScanOptions {
  readonly fromPosition: 'start' | 'end' | { readonly commit: bigint; readonly prepare: bigint };
  readonly filter: ServerFilter;
  readonly limit: number;
}

export interface Scanned {
  readonly records: readonly ClientRecord[];
  /**
   * Why it stopped: it has as many as it may, it came to a checkpoint, there is no more, or the
   * server says nothing; then the way has to be gone by reading.
   */
  readonly stop: 'limit' | { readonly considered: number } | 'caughtUp' | 'silent';
}

/** Events that the server looks at between two checkpoints. */
const checkpointEvents = { maxSearchWindow: 500, checkpointInterval: 10 } as const;

/** Servers before 23.10 do not say that there is no more. */
const silenceMsMax = 5_000;

export async function scanAll(client: Client, options: ScanOptions): Promise<Scanned> {
  const { fromPosition, filter, limit } = options;
  const records: ClientRecord[] = [];
  const stopped = Promise.withResolvers<Scanned['stop']>();
  const opened: ClientSubscription = client.subscribeToAll({
    fromPosition,
    filter: {
      ...filter,
      ...checkpointEvents,
      checkpointReached: (_of, { commit }) => stopped.resolve({ considered: Number(commit) }),
    },
  });
  const timer = setTimeout(() => stopped.resolve('silent'), silenceMsMax);
  opened.on('data', ({ event }) => {
    if (event === undefined || records.length === limit) return;
    records.push(event);
    timer.refresh();
    if (records.length === limit) stopped.resolve('limit');
  });
  opened.on('caughtUp', () => stopped.resolve('caughtUp'));
  opened.on('error', (error) => stopped.reject(error));
  try {
    const stop = await stopped.promise;
    // What came before the last word may still be on its way out of the Readable.
    while (records.length < limit && opened.readableLength > 0) {
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
    }
    return { records, stop: records.length === limit ? 'limit' : stop };
  } finally {
    clearTimeout(timer);
    await opened.unsubscribe();
  }
}
