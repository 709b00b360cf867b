// Keys and queues that workers share, by URL.

import type { Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import type { KeyStore } from '../work/key-store.ts';
import type { WorkQueue } from '../work/work-queue.ts';

export interface OpenWorkOptions {
  readonly observer?: Observer;
  readonly clock?: Clock;
}

export interface OpenWorkQueueOptions extends OpenWorkOptions {
  readonly name: string;
  /** After which a job is taken from a process that died. Default: 30 s. */
  readonly leaseMs?: number | undefined;
}

const isRedis = /^rediss?(\+cluster)?:/i;
const isHere = /^(sqlite|memory):/i;

/**
 * Opens the keys that a URL names: `redis://…`, `rediss:`, `redis+cluster://a:6379,b:6379`, `sqlite:<file>`, or
 * `memory:` within one process.
 *
 * @example
 * import { openKeyStore } from 'millrace/platform';
 *
 * await using keys = await openKeyStore('sqlite:.millrace/work.db');
 * console.log(await keys.get('orders:{core}:o-1:lock'));
 */
export async function openKeyStore(url: string, options: OpenWorkOptions = {}): Promise<KeyStore> {
  if (isRedis.test(url)) {
    const { redisKeyStore } = await import('../adapters/redis/index.ts');
    return redisKeyStore(url, options);
  }
  if (!isHere.test(url)) throw unknown('keys');
  const { sqliteKeyStore } = await import('../adapters/sqlite/index.ts');
  return sqliteKeyStore(url, options);
}

/**
 * Opens a queue of jobs by its name: `redis://…`, `rediss:`, `redis+cluster://…` (BullMQ), `sqlite:<file>`, or
 * `memory:` within one process.
 *
 * @example
 * import { openWorkQueue } from 'millrace/platform';
 *
 * await using queue = await openWorkQueue('sqlite:.millrace/work.db', { name: 'MessageRequestQueue' });
 * console.log(await queue.state('core.r-1.1'));
 */
export async function openWorkQueue(
  url: string,
  { leaseMs, ...options }: OpenWorkQueueOptions,
): Promise<WorkQueue> {
  if (isRedis.test(url)) {
    const { bullmqWorkQueue } = await import('../adapters/bullmq/index.ts');
    return bullmqWorkQueue(url, {
      ...options,
      ...(leaseMs === undefined ? {} : { lockMs: leaseMs }),
    });
  }
  if (!isHere.test(url)) throw unknown('queue');
  const { sqliteWorkQueue } = await import('../adapters/sqlite/index.ts');
  return sqliteWorkQueue(url, { ...options, ...(leaseMs === undefined ? {} : { leaseMs }) });
}

function unknown(field: string): MillraceError {
  return new MillraceError(
    'CONFIG_INVALID',
    `${field} of workers: redis://…, sqlite:<file>, memory:`,
    {
      details: { field },
    },
  );
}

/**
 * Where they are when nobody says: beside the store's file, in one of their own, so that no worker waits for the
 * store's writer. Keys are in Redis where either role is: all processes must see them.
 */
export function workUrlsOf(urls: {
  readonly store: string;
  readonly keys: string;
  readonly queue?: string | undefined;
}): { readonly keys: string; readonly queue: string } {
  const queue = urls.queue ?? besideOf(urls.store);
  return { queue, keys: isRedis.test(urls.keys) ? urls.keys : queue };
}

function besideOf(store: string): string {
  if (/^memory:/i.test(store)) return 'memory:';
  const file = /^sqlite:(.+?)(\.db)?$/i.exec(store)?.[1];
  return file === undefined ? 'sqlite:.millrace/work.db' : `sqlite:${file}.work.db`;
}
