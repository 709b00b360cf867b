// How a waiting reader learns of other processes' appends: a change of the log file announces them,
// a poll is the backstop.

import { watch, type FSWatcher } from 'node:fs';
import { basename, dirname } from 'node:path';

export interface SqliteWatch {
  /**
   * Somebody waits, or nobody does any more. An idle store must not keep the process alive; a
   * reader that waits must.
   */
  setWaiting(waiting: boolean): void;
  close(): void;
}

export interface WatchOptions {
  readonly path: string;
  readonly pollIntervalMs: number;
  /** Whether there is something that those who wait were not told of. */
  readonly hasMore: () => boolean;
  readonly onMore: () => void;
}

/** The first wait for a commit that the file has announced; each one after it is twice as long. */
const announcedMs = 1;

export function watchSqlite(options: WatchOptions): SqliteWatch {
  const { path, pollIntervalMs, onMore } = options;
  let waiting = false;
  let again: NodeJS.Timeout | undefined;
  let againMs = 0;

  const hasMore = (): boolean => {
    try {
      return options.hasMore();
    } catch {
      // Whoever is woken meets the error in a read of its own, where it can be told.
      return true;
    }
  };

  const look = (): boolean => {
    if (!waiting) return true;
    const found = hasMore();
    if (found) onMore();
    return found;
  };

  /**
   * The file changes when a transaction is written, and the commit is seen only once it was synced,
   * about which the file says nothing: so the look is repeated, until the poll is as good. Not at once,
   * and not for each of the changes: those of our own commits come here, too.
   */
  const lookUntilSeen = (ms: number): void => {
    if (again !== undefined && againMs <= ms) return;
    clearTimeout(again);
    againMs = ms;
    again = setTimeout(() => {
      again = undefined;
      if (!look() && ms < pollIntervalMs) lookUntilSeen(ms * 2);
    }, ms);
    again.unref();
  };

  const forgetLook = (): void => {
    clearTimeout(again);
    again = undefined;
  };

  const log = `${basename(path)}-wal`;
  let watcher: FSWatcher | undefined;
  let waitedAtPoll = false;
  const timer = setInterval(() => {
    look();
    // Every write of our own wakes the watcher, too: nobody pays for that while nobody waits.
    if (!waiting && !waitedAtPoll) stopWatching();
    waitedAtPoll = waiting;
  }, pollIntervalMs);
  timer.unref();

  const stopWatching = (): void => {
    watcher?.close();
    watcher = undefined;
  };

  return {
    setWaiting(wanted) {
      waiting = wanted;
      if (wanted) {
        waitedAtPoll = true;
        watcher ??= watchFolder(dirname(path), (file) => {
          if (file === log) lookUntilSeen(announcedMs);
        });
        timer.ref();
        // Its announcement may have come before anybody waited.
        lookUntilSeen(announcedMs);
      } else {
        timer.unref();
        forgetLook();
      }
    },
    close() {
      waiting = false;
      forgetLook();
      clearInterval(timer);
      stopWatching();
    },
  };
}

function watchFolder(
  folder: string,
  onEvent: (file: string | null) => void,
): FSWatcher | undefined {
  try {
    const watcher = watch(folder, { persistent: false }, (_event, file) => onEvent(file));
    // A file system without events still has the poll.
    watcher.on('error', () => watcher.close());
    return watcher;
  } catch {
    return undefined;
  }
}
