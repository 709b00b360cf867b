// Wakes live readers: after own commits, on notifications from other processes, and by a poll for commits that
// no notification announced.

import type { PoolClient } from 'pg';
import { createWaiters, type Waiters } from '../../../foundation/waiters.ts';
import { checkOut, type PostgresConnection } from '../connection/connection.ts';
import { lockClass, quoteName } from '../connection/schema.ts';

export interface PostgresListener extends AsyncDisposable {
  /** `isKnown`: `lastKnown` covers everything that was committed, so no query is needed. */
  wakeAll(isKnown?: boolean): void;
  whenMore(after: number, signal: AbortSignal): Promise<void>;
}

export interface ListenerOptions {
  readonly schema: string;
  readonly channel: string;
  /** While notifications work. */
  readonly pollIntervalMs: number;
  readonly safeHead: () => Promise<{ readonly head: number; readonly inFlight: boolean }>;
  /** The last own commit that readers can read from memory. */
  readonly lastKnown: () => number;
  readonly onFailure: (error: unknown) => void;
}

/** Exists from the start of the checkout; `isListening` once notifications arrive. */
interface Subscription {
  isListening: boolean;
  close: () => void;
}

/** While another transaction is about to commit, or after the listening connection was lost. */
const soonPollMs = 10;
/** Without a listening connection. */
const fallbackPollMs = 100;

export function createPostgresListener(
  connection: PostgresConnection,
  options: ListenerOptions,
): PostgresListener {
  const waiters: Waiters = createWaiters();
  const lock = lockClass(options.schema);
  /** A pool of one connection has none to spare for listening: then only the poll runs. */
  const mayListen = (connection.pool.options.max ?? 10) > 1;
  let subscription: Subscription | undefined;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  /** The lowest position after which a reader waits. */
  let lowest = 0;
  /** Whether there may be a commit that no poll has seen. */
  let mayHaveMore = true;
  /** The head of the last poll that found nothing new. */
  let polledHead = 0;

  /**
   * Writers notify while this lock is held. It is taken when the first reader waits and kept until the
   * connection closes: taking it for every wait would cost two round trips each time.
   */
  async function listen(): Promise<void> {
    if (subscription !== undefined || closed || !mayListen) return;
    const own: Subscription = { isListening: false, close: () => undefined };
    subscription = own;
    try {
      const client = await checkOut(connection.pool);
      own.close = attach(client, own);
      if (closed) return own.close();
      await client.query(`listen ${quoteName(options.channel)}`);
      await client.query('select pg_advisory_lock_shared($1, 1)', [lock + 1]);
      own.isListening = true;
      mayHaveMore = true;
      // Commits before this point sent no notification.
      void poll();
    } catch (error) {
      options.onFailure(error);
      own.close();
      if (subscription === own) subscription = undefined;
    }
  }

  /** Returns a function that releases the client once; a broken connection calls it too. */
  function attach(client: PoolClient, own: Subscription): () => void {
    let isAttached = true;
    const onNotification = (): void => wakeAll();
    const close = (error?: Error): void => {
      if (!isAttached) return;
      isAttached = false;
      mayHaveMore = true;
      if (subscription === own) subscription = undefined;
      client.off('notification', onNotification);
      client.release(error ?? true);
      // Notifications may be lost with the connection: poll soon, which also listens again.
      schedule(soonPollMs);
    };
    client.on('notification', onNotification);
    // Never removed: a breaking connection may emit more than one error.
    client.on('error', close);
    return close;
  }

  function schedule(ms: number): void {
    if (closed || waiters.size === 0) return;
    clearTimeout(timer);
    // Not unref'd: a waiting reader keeps the process alive even without an open connection.
    timer = setTimeout(() => void poll(), ms);
  }

  async function poll(): Promise<void> {
    if (closed || waiters.size === 0) return;
    // Not awaited: polling must continue while no connection is free for listening.
    void listen();
    // Reset before the query: its result may lack a commit that is announced while it runs.
    mayHaveMore = false;
    try {
      const { head, inFlight } = await options.safeHead();
      if (head > lowest || inFlight) mayHaveMore = true;
      else polledHead = Math.max(polledHead, head);
      if (head > lowest) waiters.wakeAll();
      else if (inFlight) schedule(soonPollMs);
      else schedule(subscription?.isListening === true ? options.pollIntervalMs : fallbackPollMs);
    } catch (error) {
      mayHaveMore = true;
      options.onFailure(error);
      schedule(fallbackPollMs);
    }
  }

  function wakeAll(isKnown = false): void {
    if (!isKnown) mayHaveMore = true;
    waiters.wakeAll();
  }

  return {
    wakeAll,
    async whenMore(after, signal) {
      lowest = waiters.size === 0 ? after : Math.min(lowest, after);
      const woken = waiters.wait(signal, () => false);
      // Checked after joining the waiters: a commit in between is seen by the poll or wakes them.
      const isUpToDate = subscription?.isListening === true && !mayHaveMore;
      if (isUpToDate && after >= Math.max(polledHead, options.lastKnown())) {
        schedule(options.pollIntervalMs);
      } else {
        void poll();
      }
      try {
        await woken;
      } finally {
        if (waiters.size === 0) clearTimeout(timer);
      }
    },
    async [Symbol.asyncDispose]() {
      closed = true;
      clearTimeout(timer);
      subscription?.close();
      waiters.wakeAll();
    },
  };
}
