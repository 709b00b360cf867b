// Wakes waiting readers after commits of other processes. A change of the log file announces most commits, and a poll
// finds the others.

import { watch, type FSWatcher } from 'node:fs';
import { basename, dirname } from 'node:path';

export interface SqliteWatch {
  /** Starts or stops watching. Only a waiting reader keeps the process alive. */
  setWaiting(isWaiting: boolean): void;
  close(): void;
}

export interface WatchOptions {
  readonly pollIntervalMs: number;
  /** Whether there is a commit that the waiting readers have not seen. */
  readonly hasMore: () => boolean;
  readonly onMore: () => void;
}

/** The poll interval, for file systems without change events. */
const commitPollMs = 250;

/** The first delay after a file event; each following delay is twice as long. */
const firstDelayMs = 1;

/** If no append completes within this time, another process probably holds the write lock. */
const replyMs = 20;

/**
 * While replies to appends arrive in quick succession, a new commit is probably one of those appends, and its reply
 * wakes the readers. An append that waits for another process's lock delays no reader.
 */
export function isReplyNear(appending: number, msSinceReply: number): boolean {
  return appending > 0 && msSinceReply < replyMs;
}

/** Calls `onCommit` after a commit by another connection, while something waits. */
export function watchCommits(
  file: { readonly watch: (options: WatchOptions) => SqliteWatch },
  options: {
    readonly reader: { dataVersion(): number };
    /** Called once per commit. Default: every commit is relevant. */
    readonly isRelevant?: () => boolean;
    readonly onCommit: () => void;
  },
): SqliteWatch {
  const { reader, isRelevant = () => true, onCommit } = options;
  let version = reader.dataVersion();
  return file.watch({
    pollIntervalMs: commitPollMs,
    hasMore() {
      const before = version;
      version = reader.dataVersion();
      return version !== before && isRelevant();
    },
    onMore: onCommit,
  });
}

export function watchSqlite(path: string, options: WatchOptions): SqliteWatch {
  const { pollIntervalMs, hasMore, onMore } = options;
  let waiting = false;
  let retry: NodeJS.Timeout | undefined;
  let retryMs = 0;

  const check = (): boolean => {
    if (!waiting) return true;
    const found = isTrueOrFails(hasMore);
    if (found) onMore();
    return found;
  };

  /**
   * The file changes when a transaction is written, but the commit is visible only after its sync, which causes no
   * file event. So the check repeats until the poll takes over. The first check is delayed, because commits of this
   * process cause file events too.
   */
  const checkUntilVisible = (ms: number): void => {
    if (retry !== undefined && retryMs <= ms) return;
    clearTimeout(retry);
    retryMs = ms;
    retry = setTimeout(() => {
      retry = undefined;
      if (!check() && ms < pollIntervalMs) checkUntilVisible(ms * 2);
    }, ms);
    retry.unref();
  };

  const cancelRetry = (): void => {
    clearTimeout(retry);
    retry = undefined;
  };

  const log = `${basename(path)}-wal`;
  let watcher: FSWatcher | undefined;
  let waitedAtPoll = false;
  const timer = setInterval(() => {
    check();
    // Writes of this process wake the watcher too, so stop it when no reader has waited since the last poll.
    if (!waiting && !waitedAtPoll) stopWatching();
    waitedAtPoll = waiting;
  }, pollIntervalMs);
  timer.unref();

  const stopWatching = (): void => {
    watcher?.close();
    watcher = undefined;
  };

  return {
    setWaiting(isWaiting) {
      waiting = isWaiting;
      if (isWaiting) {
        waitedAtPoll = true;
        watcher ??= watchFolder(dirname(path), (file) => {
          if (file === log) checkUntilVisible(firstDelayMs);
        });
        timer.ref();
        // A file event may have come before the reader waited.
        checkUntilVisible(firstDelayMs);
      } else {
        timer.unref();
        cancelRetry();
      }
    },
    close() {
      waiting = false;
      cancelRetry();
      clearInterval(timer);
      stopWatching();
    },
  };
}

export function isTrueOrFails(check: () => boolean): boolean {
  try {
    return check();
  } catch {
    // Wake the reader: its next read fails with the same error and reports it.
    return true;
  }
}

function watchFolder(
  folder: string,
  onEvent: (file: string | null) => void,
): FSWatcher | undefined {
  try {
    const watcher = watch(folder, { persistent: false }, (_event, file) => onEvent(file));
    // Ignore the error: the poll still finds commits.
    watcher.on('error', () => watcher.close());
    return watcher;
  } catch {
    // The file system has no change events: the poll still finds commits.
    return undefined;
  }
}
