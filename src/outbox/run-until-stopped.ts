// The lifecycle of whatever runs in the background: one run for each start, told to stop by a signal and
// waited for.

import { createLifecycle, type Lifecycle } from '../foundation/lifecycle.ts';

export function runUntilStopped(
  run: (stopping: AbortSignal) => Promise<unknown>,
  /** Rejects: it does not start. */
  prepare?: () => Promise<void>,
): Lifecycle {
  let running: { readonly stopping: AbortController; readonly done: Promise<unknown> } | undefined;
  return createLifecycle({
    async start() {
      await prepare?.();
      const stopping = new AbortController();
      running = { stopping, done: run(stopping.signal) };
    },
    async stop() {
      const { stopping, done } = running ?? {};
      running = undefined;
      stopping?.abort();
      await done;
    },
  });
}
