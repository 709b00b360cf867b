// Key stores and work queues by URL, and those of a platform's modules: opened at the first use.

import type { Clock } from '../../foundation/clock.ts';
import type { Observer } from '../../foundation/observer.ts';
import { once } from '../../foundation/once.ts';
import type { KeyStore } from '../../work/key-store.ts';
import type { WorkQueue } from '../../work/work-queue.ts';
import { engineOf, isEngine } from './store-url.ts';

export interface OpenWorkOptions {
  readonly observer?: Observer | undefined;
  readonly clock?: Clock | undefined;
}

export interface OpenWorkQueueOptions extends OpenWorkOptions {
  readonly name: string;
  /** After this, a job of a process that died is given to another one. Default: 30 s. */
  readonly leaseMs?: number | undefined;
}

const supported = ['redis', 'sqlite', 'memory'] as const;

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
  return engineOf('keys', url, supported) === 'redis'
    ? (await import('../../engines/redis/index.ts')).redisKeyStore(url, options)
    : (await import('../../engines/sqlite/index.ts')).sqliteKeyStore(url, options);
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
  options: OpenWorkQueueOptions,
): Promise<WorkQueue> {
  if (engineOf('queue', url, supported) === 'redis') {
    const { bullmqWorkQueue } = await import('../../engines/bullmq/index.ts');
    return bullmqWorkQueue(url, { ...options, lockMs: options.leaseMs });
  }
  return (await import('../../engines/sqlite/index.ts')).sqliteWorkQueue(url, options);
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
  return { queue, keys: isEngine('redis', urls.keys) ? urls.keys : queue };
}

function workFileOf(store: string): string {
  if (isEngine('memory', store)) return 'memory:';
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
  const queues = new Map<string, () => Promise<WorkQueue>>();
  return {
    keys: once(async () => opened.use(await openKeyStore(at.keys, options))),
    queue(name, { leaseMs } = {}) {
      const open =
        queues.get(name) ??
        once(async () => opened.use(await openWorkQueue(at.queue, { ...options, name, leaseMs })));
      queues.set(name, open);
      return open();
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
