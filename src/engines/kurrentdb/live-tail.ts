// Live reading. One loop per store reads all events from the position of the first waiting reader on, page by page,
// and keeps the last ones in memory for all readers. A subscription only tells when to read: the position of a reader
// comes from events that were read, because the server that sends notifications may be another node of the cluster.

import { createWaiters } from '../../foundation/async/waiters.ts';
import { systemClock } from '../../foundation/clock.ts';
import { slept } from '../../foundation/async/slept.ts';
import { tailLimits, type TailRow } from '../../store/append-tail.ts';
import { compileFilter } from '../../store/event-filter.ts';
import { pageLimits, rowBytes, rowsBytes } from '../../store/page-bound.ts';
import type { AllPage, AllQuery, StoreEngine } from '../../store/store-engine.ts';
import type { Client } from './client.ts';
import type { KurrentdbConnection } from './connection.ts';
import type { KurrentdbReader } from './reader.ts';
import { createPageCollector, type RecordsPage } from './records-page.ts';

export interface KurrentdbTail extends AsyncDisposable, Pick<StoreEngine, 'whenMore'> {
  /** The page from memory; undefined if it needs older events, or nothing is followed. */
  read(query: AllQuery): AllPage | undefined;
  /** There may be new events. */
  readonly notify: () => void;
}

export interface TailOptions {
  readonly readAll: KurrentdbReader['readAll'];
  /** How often the loop reads without a notification. */
  readonly pollIntervalMs: number;
  readonly onFailure: (error: unknown) => void;
}

/** All events after `from` up to `to`, without gaps. */
interface Followed {
  from: number;
  to: number;
  rows: readonly TailRow[];
}

const everything = {
  direction: 'forwards',
  filter: compileFilter({ system: true }),
  isLive: true,
  limit: pageLimits.eventsDefault,
  bytesMax: pageLimits.bytesDefault,
} as const;

/**
 * The first pause after a notification; each one doubles, up to the poll interval. The node that is read may get the
 * event later than the node that sent the notification.
 */
const lagMs = 50;

export function createKurrentdbTail(
  connection: KurrentdbConnection,
  { readAll, pollIntervalMs, onFailure }: TailOptions,
): KurrentdbTail {
  const waiters = createWaiters();
  const end = new AbortController();
  let followed: Followed | undefined;
  /** Aborted by a notification, also during the read before the pause. */
  let pausing = new AbortController();
  const notify = (): void => pausing.abort();

  /** Runs while readers wait. After a failure the readers read themselves and report the outage. */
  async function follow(after: number): Promise<void> {
    const own: Followed = { from: after, to: after, rows: [] };
    followed = own;
    const listening = new AbortController();
    let pauseMs: number = lagMs;
    try {
      listen(AbortSignal.any([end.signal, listening.signal])).catch(onFailure);
      while (!end.signal.aborted) {
        pausing = new AbortController();
        const page = await readAll({ ...everything, after: own.to });
        if (page.considered > own.to) {
          addPage(own, page);
          waiters.wakeAll();
        }
        if (!page.end) continue;
        const isIdle = await slept(systemClock, pauseMs, pausing.signal);
        if (isIdle && pauseMs === pollIntervalMs && waiters.size === 0) return;
        pauseMs = isIdle ? Math.min(pauseMs * 2, pollIntervalMs) : lagMs;
      }
    } finally {
      listening.abort();
      followed = undefined;
      waiters.wakeAll();
    }
  }

  async function listen(signal: AbortSignal): Promise<void> {
    const open = async (client: Client) => {
      const subscription = client.subscribeToAll({
        fromPosition: 'end',
        filter: {
          // It matches no event: the server sends a checkpoint per event instead of the event.
          filterOn: 'eventType',
          prefixes: ['$millrace.none'],
          checkpointInterval: 1,
          maxSearchWindow: 1,
          checkpointReached: notify,
        },
      });
      // Events before the confirmation have no notification.
      subscription.once('confirmation', notify);
      return { subscription, items: subscription };
    };
    await Array.fromAsync(connection.follow(open, { signal, onFailure }), notify);
  }

  return {
    read(query) {
      const { after } = query;
      if (query.isLive !== true || followed === undefined) return undefined;
      const { from, to, rows } = followed;
      if (after < from || after > to) return undefined;
      const collector = createPageCollector(query);
      for (const row of rows) {
        if (row.sequence > after && !collector.add(row.sequence, row))
          return collector.page('full');
      }
      return { ...collector.page('end'), considered: to };
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
      notify();
      waiters.wakeAll();
    },
  };
}

/** Bounded: a reader that needs an evicted event reads it from the server. */
function addPage(followed: Followed, page: RecordsPage): void {
  const rows = [...followed.rows, ...page.rows];
  let bytes = rowsBytes(rows);
  let evicted = 0;
  while (rows.length - evicted > tailLimits.rowsMax || bytes > tailLimits.bytesMax) {
    const row = rows[evicted] as TailRow;
    bytes -= rowBytes(row);
    followed.from = row.sequence;
    evicted += 1;
  }
  followed.rows = rows.slice(evicted);
  followed.to = page.considered;
}
