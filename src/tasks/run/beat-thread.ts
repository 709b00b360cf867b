// The thread that says that a worker is alive: a handler that keeps the main thread busy for a minute is
// slow, not dead.

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
    // The program's own flags are not ours: with --input-type, say, the thread would not start.
    execArgv: [],
  });
  const gone = new Promise<void>((resolve) => thread.once('exit', () => resolve()));
  const { worker } = settings;
  // The main thread beats, too: without this one a worker merely must not block for long.
  thread.on('error', (err) => observer.log?.error({ worker, err }, 'the thread that beats ended'));
  thread.on('message', (message: { readonly failure?: string; readonly isOver?: boolean }) => {
    // Sockets that a driver leaves behind would keep it for ever.
    if (message.isOver === true) void thread.terminate();
    if (message.failure === undefined) return;
    observer.log?.warn({ worker, reason: message.failure }, 'a beat could not be told');
  });
  thread.unref();
  return {
    async [Symbol.asyncDispose]() {
      thread.ref();
      thread.postMessage('stop');
      // It has nothing to finish: a server that does not answer holds nobody up.
      const limit = setTimeout(() => void thread.terminate(), stopMs);
      await gone;
      clearTimeout(limit);
    },
  };
}
