// The workers of a queue in this process: closing the queue stops them and waits for them.

import { createOngoingCalls } from '../foundation/async/ongoing-calls.ts';

export interface RunningWork {
  /** Runs a worker until its signal fires or the queue is closed. */
  run(signal: AbortSignal, work: (signal: AbortSignal) => Promise<void>): Promise<void>;
  stop(): Promise<void>;
}

export function createRunningWork(): RunningWork {
  const closing = new AbortController();
  const running = createOngoingCalls();
  return {
    run: (signal, work) => running.track(work(AbortSignal.any([signal, closing.signal]))),
    async stop() {
      closing.abort();
      await running.settled();
    },
  };
}
