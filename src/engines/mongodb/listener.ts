// Wakes live readers: immediately after commits of this process, by a change stream if the server supports it, and
// otherwise by polling at growing intervals.

import type { ChangeStream } from 'mongodb';
import { createWaiters } from '../../foundation/async/waiters.ts';
import { coalesce } from './coalesce.ts';
import type { CommitLog } from './commit-log.ts';
import type { MongodbCollections } from './collections.ts';

export interface MongodbListener extends AsyncDisposable {
  whenMore(after: number, signal: AbortSignal): Promise<void>;
  wakeAll(): void;
}

export interface ListenerOptions {
  readonly hasChangeStreams: boolean;
  /** The longest poll interval, reached when no new events arrive. */
  readonly pollIntervalMs: number;
  readonly onFailure: (error: unknown) => void;
}

/** The first poll interval; it doubles with every poll that finds nothing. */
const firstPollMs = 5;
/** How long only polling is used after a change stream failed. */
const pollOnlyMs = 10_000;

export function createMongodbListener(
  { commits }: MongodbCollections,
  log: () => CommitLog,
  options: ListenerOptions,
): MongodbListener {
  const waiters = createWaiters();
  let changes: ChangeStream | undefined;
  let pollOnlyUntil = 0;
  let timer: NodeJS.Timeout | undefined;
  let waitMs = firstPollMs;
  let closed = false;

  /** `advance` wakes the waiting readers if it finds new commits. */
  const poll = coalesce(async () => {
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

  /** Opens the change stream when the first reader waits; later readers share it. */
  function listen(): void {
    if (!options.hasChangeStreams || changes !== undefined || performance.now() < pollOnlyUntil)
      return;
    // Request only the id: the commit itself is read from the log.
    const onlyId = [{ $match: { operationType: 'insert' } }, { $project: { _id: 1 } }];
    const opened = commits.watch(onlyId);
    changes = opened;
    // The stream does not report commits from before it was opened.
    opened.on('init', () => void poll());
    opened.on('change', () => void poll());
    opened.on('error', (problem) => {
      pollOnlyUntil = performance.now() + pollOnlyMs;
      changes = undefined;
      options.onFailure(problem);
      void close(opened);
    });
  }

  async function close(opened: ChangeStream | undefined): Promise<void> {
    try {
      await opened?.close();
    } catch (error) {
      options.onFailure(error);
    }
  }

  function schedule(): void {
    clearTimeout(timer);
    if (closed || waiters.size === 0) return;
    // With an open change stream, polling is only a fallback.
    const ms = changes === undefined ? waitMs : options.pollIntervalMs;
    waitMs = Math.min(options.pollIntervalMs, waitMs * 2);
    timer = setTimeout(() => void poll(), ms);
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
      // Poll after joining the waiters: a commit in between is seen by the poll or wakes them.
      if (waiters.size > 0) void poll();
      await woken;
    },
    async [Symbol.asyncDispose]() {
      closed = true;
      clearTimeout(timer);
      waiters.wakeAll();
      await close(changes);
    },
  };
}
