// Telling live readers that there is more: at once within the process, by a change stream where the
// server has them, and otherwise by looking, less and less often while nothing happens.

import type { ChangeStream } from 'mongodb';
import { createWaiters } from '../../store/waiters.ts';
import { coalesce } from './coalesce.ts';
import type { CommitLog } from './commit-log.ts';
import type { MongodbCollections } from './mongodb-schema.ts';

export interface MongodbLive extends AsyncDisposable {
  whenMore(after: number, signal: AbortSignal): Promise<void>;
  wakeAll(): void;
}

export interface LiveOptions {
  readonly hasChangeStreams: boolean;
  /** How often a reader looks at most, while nothing happens. */
  readonly pollIntervalMs: number;
  readonly onFailure: (error: unknown) => void;
}

/** The first look; every one that finds nothing doubles the time to the next. */
const firstPollMs = 5;
/** After a change stream broke, or was refused, looking has to do for so long. */
const deafMs = 10_000;

export function createMongodbLive(
  { commits }: MongodbCollections,
  log: () => CommitLog,
  options: LiveOptions,
): MongodbLive {
  const waiters = createWaiters();
  let changes: ChangeStream | undefined;
  let deafUntil = 0;
  let timer: NodeJS.Timeout | undefined;
  let waitMs = firstPollMs;
  let closed = false;

  /** Advancing wakes whoever waits, when there was something. */
  const look = coalesce(async () => {
    try {
      if (closed) return;
      listen();
      await log().advance();
    } catch (error) {
      options.onFailure(error);
    } finally {
      schedule();
    }
  });

  /** Opened when the first reader waits, and kept: readers that come and go would reopen it. */
  function listen(): void {
    if (!options.hasChangeStreams || changes !== undefined || performance.now() < deafUntil) return;
    // The event says that there is one; what is in it is read from the log.
    const onlyId = [{ $match: { operationType: 'insert' } }, { $project: { _id: 1 } }];
    const opened = commits.watch(onlyId);
    changes = opened;
    // What was committed before it began to listen, it does not tell.
    opened.on('init', () => void look());
    opened.on('change', () => void look());
    opened.on('error', (problem) => {
      deafUntil = performance.now() + deafMs;
      changes = undefined;
      options.onFailure(problem);
      void closing(opened);
    });
  }

  async function closing(opened: ChangeStream | undefined): Promise<void> {
    try {
      await opened?.close();
    } catch (error) {
      options.onFailure(error);
    }
  }

  function schedule(): void {
    clearTimeout(timer);
    if (closed || waiters.size === 0) return;
    // A change stream that listens makes the look a backstop.
    const ms = changes === undefined ? waitMs : options.pollIntervalMs;
    waitMs = Math.min(options.pollIntervalMs, waitMs * 2);
    timer = setTimeout(() => void look(), ms);
    timer.unref();
  }

  return {
    wakeAll() {
      waitMs = firstPollMs;
      waiters.wakeAll();
    },
    async whenMore(after, signal) {
      if (closed) return;
      const woken = waiters.wait(signal, () => log().head.position > after);
      // Looked at after joining: what commits in between is seen by the look, or tells us.
      if (waiters.size > 0) void look();
      await woken;
    },
    async [Symbol.asyncDispose]() {
      closed = true;
      clearTimeout(timer);
      waiters.wakeAll();
      await closing(changes);
    },
  };
}
