// Live reading. One loop per store reads all events from the position of the first waiting reader on, page by page,
// and keeps the last ones in memory for all readers. A subscription only tells when to read: the position of a reader
// comes from events that were read, because the server that sends notifications may be another node of the cluster.

import { createWaiters } from '../../foundation/async/waiters.ts';
import { systemClock } from '../../foundation/clock.ts';
import { slept } from '../../foundation/async/slept.ts';
import { tailLimits, type TailRow } from '../../store/append-tail.ts';
import { rowBytes, rowsBytes } from '../../store/page-bound.ts';
import type { AllPage, AllQuery, StoreEngine } from '../../store/store-engine.ts';
import { itemsOf } from './client.ts';
import type { KurrentdbConnection } from './connection.ts';
import { createPageCollector, type RecordsPage } from './records-page.ts';

export interface KurrentdbTail extends AsyncDisposable {
  /** The page from memory; undefined if it needs older events, or nothing is followed. */
  read(query: AllQuery): AllPage | undefined;
  readonly whenMore: StoreEngine['whenMore'];
  /** There may be new events. */
  readonly notify: () => void;
}

export interface TailOptions {
  readonly readAfter: (after: number) => Promise<RecordsPage>;
  /** How often the loop reads without a notification. */
  readonly pollIntervalMs: number;
  readonly onFailure: (error: unknown) => void;
}

/** All events after `from` up to `to`, without gaps. */
interface Followed {
  from: number;
  to: number;
  rows: TailRow[];
  bytes: number;
}

/** The pause before a new subscription; every failure doubles it. */
const retryMs = { first: 50, max: 2_000 } as const;

/**
 * The first pause after a notification; each one doubles, up to the poll interval. The node that is read may get the
 * event later than the node that sent the notification.
 */
const lagMs = 50;

/** A filter that matches no event: the server sends a checkpoint per event instead of the event. */
const nothing = {
  filterOn: 'eventType',
  prefixes: ['$millrace.none'],
  checkpointInterval: 1,
  maxSearchWindow: 1,
} as const;

export function createKurrentdbTail(
  connection: KurrentdbConnection,
  { readAfter, pollIntervalMs, onFailure }: TailOptions,
): KurrentdbTail {
  const waiters = createWaiters();
  const end = new AbortController();
  let followed: Followed | undefined;
  let isNotified = false;
  let sleeping = new AbortController();

  function notify(): void {
    isNotified = true;
    sleeping.abort();
  }

  /** Runs while readers wait. After a failure the readers read themselves and report the outage. */
  async function follow(after: number): Promise<void> {
    const own: Followed = { from: after, to: after, rows: [], bytes: 0 };
    followed = own;
    const listening = new AbortController();
    let pauseMs: number = lagMs;
    try {
      void listen(AbortSignal.any([end.signal, listening.signal]));
      while (!end.signal.aborted) {
        isNotified = false;
        const page = await readAfter(own.to);
        if (page.considered > own.to) {
          addPage(own, page);
          waiters.wakeAll();
        }
        if (!page.end) continue;
        sleeping = new AbortController();
        const isIdle = !isNotified && (await slept(systemClock, pauseMs, sleeping.signal));
        if (isIdle && pauseMs === pollIntervalMs && waiters.size === 0) return;
        pauseMs = isIdle ? Math.min(pauseMs * 2, pollIntervalMs) : lagMs;
      }
    } finally {
      listening.abort();
      followed = undefined;
      waiters.wakeAll();
    }
  }

  /** Keeps one subscription until it is aborted. */
  async function listen(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        await connection.use(async (client) => {
          const subscription = client.subscribeToAll({
            fromPosition: 'end',
            filter: { ...nothing, prefixes: [...nothing.prefixes], checkpointReached: notify },
          });
          subscription.on('confirmation', () => {
            failures = 0;
            // Events before the confirmation have no notification.
            notify();
          });
          await Array.fromAsync(itemsOf(subscription, signal), notify);
        });
      } catch (error) {
        if (!signal.aborted) onFailure(error);
      }
      await slept(systemClock, Math.min(retryMs.max, retryMs.first * 2 ** failures), signal);
    }
  }

  return {
    read(query) {
      const { after } = query;
      if (query.isLive !== true || followed === undefined) return undefined;
      const { from, to, rows } = followed;
      if (after < from || after > to) return undefined;
      const collector = createPageCollector(query);
      for (const row of rows) {
        if (row.sequence > after && !collector.add(row.sequence, row)) return collector.page(false);
      }
      return { ...collector.page(true), considered: to };
    },
    notify,
    async whenMore(after, signal) {
      if (end.signal.aborted) return;
      if (followed === undefined) void follow(after).catch(onFailure);
      // The node that answered this reader lacks events that the loop has read.
      else if (after < followed.from) await slept(systemClock, lagMs, signal);
      await waiters.wait(signal, () => followed === undefined || after < followed.to);
    },
    async [Symbol.asyncDispose]() {
      end.abort();
      sleeping.abort();
      waiters.wakeAll();
    },
  };
}

/** Bounded: a reader that needs an evicted event reads it from the server. */
function addPage(followed: Followed, page: RecordsPage): void {
  const rows = [...followed.rows, ...page.rows];
  let bytes = followed.bytes + rowsBytes(page.rows);
  let evicted = 0;
  while (rows.length - evicted > tailLimits.rowsMax || bytes > tailLimits.bytesMax) {
    const row = rows[evicted] as TailRow;
    bytes -= rowBytes(row);
    followed.from = row.sequence;
    evicted += 1;
  }
  followed.rows = rows.slice(evicted);
  followed.bytes = bytes;
  followed.to = page.considered;
}
