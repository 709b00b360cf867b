// Scans many events with a filter that rarely matches. A read answers only when it has found enough events, however
// long that takes; a subscription reports its progress, so that a scan can continue where it stopped.

import type { Client, ClientRecord, ClientSubscription } from './client.ts';
import type { ServerFilter } from './push-down.ts';

export interface ScanOptions {
  readonly fromPosition: 'start' | 'end' | { readonly commit: bigint; readonly prepare: bigint };
  readonly filter: ServerFilter;
  readonly limit: number;
}

export interface Scanned {
  readonly records: readonly ClientRecord[];
  /**
   * Why the scan stopped: at the limit, at a checkpoint, at the end, or because the server sent nothing. In the last
   * case, use a read.
   */
  readonly stop: 'limit' | { readonly considered: number } | 'caughtUp' | 'silent';
}

/** The number of scanned events between two checkpoints. */
const checkpointEvents = { maxSearchWindow: 500, checkpointInterval: 10 } as const;

/** Servers before 23.10 do not report that the subscription has caught up. */
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
    // Events received before the stop may still be buffered in the Readable.
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
