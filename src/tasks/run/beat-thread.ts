// The heartbeat thread: a worker whose handler blocks the main thread for a minute is slow, not dead.

import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Observer } from '../../foundation/observer.ts';
import type { BeatThread } from '../task-engine.ts';

export interface BeatSettings {
  readonly thread: BeatThread;
  readonly worker: string;
  readonly leaseMs: number;
  readonly everyMs: number;
  readonly about: string;
}

const stopMs = 2_000;

export function startBeatThread(settings: BeatSettings, observer: Observer): AsyncDisposable {
  const script = new URL(`./beat-thread-main${extname(import.meta.url)}`, import.meta.url);
  const thread = new Worker(script, {
    workerData: settings,
    name: 'millrace-task-beat',
    // Not inherited: with --input-type, for example, the thread would not start.
    execArgv: [],
  });
  const exited = new Promise<void>((resolve) => thread.once('exit', () => resolve()));
  const { worker } = settings;
  // The main thread sends heartbeats, too; without this thread a handler must not block it for long.
  thread.on('error', (err) => observer.log?.error({ worker, err }, 'heartbeat thread failed'));
  thread.on('message', (message: { readonly failure?: string; readonly isOver?: boolean }) => {
    // Open sockets of a driver would keep the thread running.
    if (message.isOver === true) void thread.terminate();
    if (message.failure === undefined) return;
    observer.log?.warn({ worker, reason: message.failure }, 'heartbeat failed');
  });
  thread.unref();
  return {
    async [Symbol.asyncDispose]() {
      thread.ref();
      thread.postMessage('stop');
      // The thread has nothing to finish, so a server that does not respond must not delay the stop.
      const limit = setTimeout(() => void thread.terminate(), stopMs);
      await exited;
      clearTimeout(limit);
    },
  };
}
