// start, stop and dispose of a resource, safe in any order and at any time.

import { MillraceError } from './error.ts';

export type LifecycleState = 'stopped' | 'starting' | 'started' | 'stopping';

export interface Lifecycle extends AsyncDisposable {
  readonly state: LifecycleState;
  /** Resolves once started; concurrent calls share one start. Rejects with `LIFECYCLE_STOPPED` if stopped first. */
  start(): Promise<void>;
  /** Resolves once everything is released; cancels a running start. Concurrent calls share one stop. */
  stop(): Promise<void>;
}

export interface LifecycleHooks {
  /** Acquires. The signal fires when stop is called before this has finished. */
  readonly start: (signal: AbortSignal) => Promise<void>;
  /** Releases what start acquired, also when it acquired only a part and failed. */
  readonly stop: () => Promise<void>;
}

/**
 * Wraps acquire and release. Any interleaving of start and stop ends in a clean state: release runs exactly once per
 * acquire, and a failed start releases what it had acquired.
 *
 * @example
 * import { createLifecycle } from 'millrace/foundation';
 *
 * await using service = createLifecycle({
 *   start: async () => console.log('open'),
 *   stop: async () => console.log('closed'),
 * });
 * await service.start();
 */
export function createLifecycle(hooks: LifecycleHooks): Lifecycle {
  let state: LifecycleState = 'stopped';
  let starting: { readonly done: Promise<void>; readonly abort: AbortController } | undefined;
  let stopping: Promise<void> | undefined;

  const start = async (): Promise<void> => {
    // A running stop finishes first; then the first caller starts for all.
    while (stopping !== undefined) await settled(stopping);
    if (state === 'started') return;
    if (starting === undefined) {
      const abort = new AbortController();
      starting = { abort, done: acquire(abort) };
    }
    await starting.done;
  };

  const acquire = async (abort: AbortController): Promise<void> => {
    state = 'starting';
    try {
      await hooks.start(abort.signal);
      if (abort.signal.aborted)
        throw new MillraceError('LIFECYCLE_STOPPED', 'stopped before the start completed');
      state = 'started';
    } catch (error) {
      await releaseResources();
      throw error;
    } finally {
      starting = undefined;
    }
  };

  const release = async (): Promise<void> => {
    if (starting !== undefined) {
      starting.abort.abort();
      // The failed start releases what it had acquired and rejects for its caller.
      await settled(starting.done);
    }
    if (state === 'started') await releaseResources();
  };

  const releaseResources = async (): Promise<void> => {
    state = 'stopping';
    try {
      await hooks.stop();
    } finally {
      state = 'stopped';
    }
  };

  const stop = (): Promise<void> => {
    stopping ??= release().finally(() => {
      stopping = undefined;
    });
    return stopping;
  };

  return {
    get state() {
      return state;
    },
    start,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/**
 * The lifecycle of a background loop: each start runs it once; stop aborts its signal and waits until the loop has returned.
 * A start fails if `prepare` rejects.
 */
export function runUntilStopped(
  run: (stopping: AbortSignal) => Promise<unknown>,
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

/** `part` with the members of its lifecycle. Members of `part` win, and getters stay getters. */
export function withLifecycle<Part extends object>(
  lifecycle: Lifecycle,
  part: Part,
): Lifecycle & NoInfer<Part> {
  const members = {
    ...Object.getOwnPropertyDescriptors(lifecycle),
    ...Object.getOwnPropertyDescriptors(part),
  };
  return Object.defineProperties({}, members) as Lifecycle & Part;
}

function settled(promise: Promise<unknown>): Promise<void> {
  return promise.then(
    () => undefined,
    () => undefined,
  );
}
