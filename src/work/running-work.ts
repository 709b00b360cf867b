// The workers of a queue in this process: closing the queue stops them and waits for them.

export interface RunningWork {
  /** Runs a worker until its signal fires or the queue is closed. */
  run(signal: AbortSignal, work: (signal: AbortSignal) => Promise<void>): Promise<void>;
  stop(): Promise<void>;
}

export function createRunningWork(): RunningWork {
  const closing = new AbortController();
  const running = new Set<Promise<void>>();
  return {
    async run(signal, work) {
      const either = AbortSignal.any([signal, closing.signal]);
      const done = work(either).finally(() => running.delete(done));
      running.add(done);
      await done;
    },
    async stop() {
      closing.abort();
      await Promise.allSettled(running);
    },
  };
}
