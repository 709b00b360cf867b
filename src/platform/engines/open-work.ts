// Key stores and work queues by URL, and those of a platform's modules: opened at the first use.

import type { Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import type { Observer } from '../../foundation/observer.ts';
import type { KeyStore } from '../../work/key-store.ts';
import type { WorkQueue } from '../../work/work-queue.ts';

export interface OpenWorkOptions {
  readonly observer?: Observer;
  readonly clock?: Clock;
}

export interface OpenWorkQueueOptions extends OpenWorkOptions {
  readonly name: string;
  /** After this, a job of a process that died is given to another one. Default: 30 s. */
  readonly leaseMs?: number | undefined;
}

const isRedis = /^rediss?(\+cluster)?:/i;
const isHere = /^(sqlite|memory):/i;

/**
 * Opens the key store at a URL: `redis://…`, `rediss:`, `redis+cluster://a:6379,b:6379`, `sqlite:<file>`, or `memory:`
 * within one process.
 *
 * @example
 * import { openKeyStore } from 'millrace/platform';
 *
 * await using keys = await openKeyStore('sqlite:.millrace/work.db');
 * console.log(await keys.get('orders:{core}:o-1:lock'));
 */
export async function openKeyStore(url: string, options: OpenWorkOptions = {}): Promise<KeyStore> {
  if (isRedis.test(url)) {
    const { redisKeyStore } = await import('../../engines/redis/index.ts');
    return redisKeyStore(url, options);
  }
  if (!isHere.test(url)) throw unknown('keys');
  const { sqliteKeyStore } = await import('../../engines/sqlite/index.ts');
  return sqliteKeyStore(url, options);
}

/**
 * Opens a work queue by name: `redis://…`, `rediss:`, `redis+cluster://…` (BullMQ), `sqlite:<file>`, or `memory:`
 * within one process.
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
    const { bullmqWorkQueue } = await import('../../engines/bullmq/index.ts');
    return bullmqWorkQueue(url, {
      ...options,
      ...(leaseMs === undefined ? {} : { lockMs: leaseMs }),
    });
  }
  if (!isHere.test(url)) throw unknown('queue');
  const { sqliteWorkQueue } = await import('../../engines/sqlite/index.ts');
  return sqliteWorkQueue(url, { ...options, ...(leaseMs === undefined ? {} : { leaseMs }) });
}

function unknown(field: string): MillraceError {
  return new MillraceError(
    'CONFIG_INVALID',
    `unsupported ${field} URL of workers; supported: redis://…, sqlite:<file>, memory:`,
    {
      details: { field },
    },
  );
}

/**
 * The defaults: a separate file next to the store's, so that no worker waits for the store's writer. Keys are in
 * Redis if `keys` or `queue` is, because all processes must see them.
 */
function workUrlsOf(urls: {
  readonly store: string;
  readonly keys: string;
  readonly queue?: string | undefined;
}): { readonly keys: string; readonly queue: string } {
  const queue = urls.queue ?? workFileOf(urls.store);
  return { queue, keys: isRedis.test(urls.keys) ? urls.keys : queue };
}

function workFileOf(store: string): string {
  if (/^memory:/i.test(store)) return 'memory:';
  const file = /^sqlite:(.+?)(\.db)?$/i.exec(store)?.[1];
  return file === undefined ? 'sqlite:.millrace/work.db' : `sqlite:${file}.work.db`;
}

export interface PlatformWork extends AsyncDisposable {
  keys(): Promise<KeyStore>;
  queue(name: string, options?: { readonly leaseMs?: number | undefined }): Promise<WorkQueue>;
}

export function platformWork(
  urls: Parameters<typeof workUrlsOf>[0],
  options: { readonly clock: Clock; readonly observer: Observer },
): PlatformWork {
  const at = workUrlsOf(urls);
  const opened = new AsyncDisposableStack();
  const kept = new Map<string, Promise<AsyncDisposable>>();

  function once<Part extends AsyncDisposable>(
    key: string,
    open: () => Promise<Part>,
  ): Promise<Part> {
    const known = kept.get(key) as Promise<Part> | undefined;
    if (known !== undefined) return known;
    const opening = open().then(
      (part) => opened.use(part),
      (error: unknown) => {
        // The next call tries again.
        kept.delete(key);
        throw error;
      },
    );
    kept.set(key, opening);
    return opening;
  }

  return {
    keys: () => once('keys', () => openKeyStore(at.keys, options)),
    queue: (name, { leaseMs } = {}) =>
      once(`queue ${name}`, () => openWorkQueue(at.queue, { ...options, name, leaseMs })),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
