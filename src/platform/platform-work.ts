// The keys and queues of a platform's modules: each opened when it is first asked for, closed with the engines.

import type { Clock } from '../foundation/clock.ts';
import type { Observer } from '../foundation/observer.ts';
import type { KeyStore } from '../work/key-store.ts';
import type { WorkQueue } from '../work/work-queue.ts';
import { openKeyStore, openWorkQueue, workUrlsOf } from './open-work.ts';

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
        // Whoever asks next tries again.
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
