// Wakes live readers: after commits of this process, on notifications from other processes, and by a poll for
// commits that no notification announced.

import type { PoolClient } from 'pg';
import type { Waiters } from '../../../foundation/async/waiters.ts';
import { checkOut, type PostgresConnection } from '../connection/connection.ts';
import { reserveListener } from '../connection/free-connections.ts';
import { lockClass, quoteName } from '../connection/schema.ts';

export interface PostgresListener extends AsyncDisposable {
  /** `isKnown` means that `lastKnown` covers all commits, so no query is needed. */
  wakeAll(isKnown?: boolean): void;
  whenMore(after: number, signal: AbortSignal): Promise<void>;
}

export interface ListenerOptions {
  readonly schema: string;
  readonly channel: string;
  /** The waiting readers, which other roles may wake too. */
  readonly waiters: Waiters;
  /** The poll interval while notifications arrive. */
  readonly pollIntervalMs: number;
  readonly safeHead: () => Promise<{ readonly head: number; readonly inFlight: boolean }>;
  /** The position of the last commit of this process that readers can read from memory. */
  readonly lastKnown: () => number;
  readonly onFailure: (error: unknown) => void;
}

/** A listening connection; `isListening` is true once notifications arrive. */
interface Subscription {
  isListening: boolean;
  close: () => void;
}

/** The poll delay while another transaction is about to commit, or after the listening connection was lost. */
const soonPollMs = 10;
/** The poll interval without a listening connection. */
const fallbackPollMs = 100;

export function createPostgresListener(
  connection: PostgresConnection,
  options: ListenerOptions,
): PostgresListener {
  const { waiters } = options;
  const lock = lockClass(options.schema);
  /** Ends the reservation of a connection; undefined if the pool has none to spare, then only the poll runs. */
  let reserved: (() => void) | undefined;
  let subscription: Subscription | undefined;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  /** Every waiting reader waits for an event after its position; this is the lowest of those positions. */
  let lowestPosition = 0;
  /** Whether there may be a commit that no poll has seen. */
  let mayHaveMore = true;
  /** The head of the last poll that found nothing new. */
  let polledHead = 0;

  /**
   * Writers notify while a process holds this lock. The listener takes the lock when the first reader waits and keeps
   * it until the connection closes. Taking it for every wait would cost two round trips.
   */
  async function listen(): Promise<void> {
    if (subscription !== undefined || closed) return;
    reserved ??= reserveListener(connection.pool);
    if (reserved === undefined) return;
    const opened: Subscription = { isListening: false, close: () => undefined };
    subscription = opened;
    try {
      const client = await checkOut(connection.pool);
      opened.close = attach(client, opened);
      if (closed) return opened.close();
      await client.query(`listen ${quoteName(options.channel)}`);
      await client.query('select pg_advisory_lock_shared($1, 1)', [lock + 1]);
      opened.isListening = true;
      mayHaveMore = true;
      // Poll once: commits before this point sent no notification.
      void poll();
    } catch (error) {
      options.onFailure(error);
      opened.close();
      if (subscription === opened) subscription = undefined;
    }
  }

  /** Returns a function that releases the client once; a broken connection calls it too. */
  function attach(client: PoolClient, attached: Subscription): () => void {
    let isAttached = true;
    const onNotification = (): void => wakeAll();
    const close = (error?: Error): void => {
      if (!isAttached) return;
      isAttached = false;
      mayHaveMore = true;
      if (subscription === attached) subscription = undefined;
      client.off('notification', onNotification);
      client.release(error ?? true);
      // Notifications may be lost with the connection: poll soon, which also listens again.
      schedule(soonPollMs);
    };
    client.on('notification', onNotification);
    // Never remove this listener: a breaking connection may emit more than one error.
    client.on('error', close);
    return close;
  }

  function schedule(ms: number): void {
    if (closed || waiters.size === 0) return;
    clearTimeout(timer);
    // Do not unref the timer: a waiting reader keeps the process alive even without an open connection.
    timer = setTimeout(() => void poll(), ms);
  }

  async function poll(): Promise<void> {
    if (closed || waiters.size === 0) return;
    // Do not await: polling must continue while no connection is free for listening.
    void listen();
    // Reset before the query: its result may lack a commit that is announced during the query.
    mayHaveMore = false;
    try {
      const { head, inFlight } = await options.safeHead();
      if (head > lowestPosition || inFlight) mayHaveMore = true;
      else polledHead = Math.max(polledHead, head);
      if (head > lowestPosition) waiters.wakeAll();
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
      lowestPosition = waiters.size === 0 ? after : Math.min(lowestPosition, after);
      const woken = waiters.wait(signal, () => false);
      // Check after joining the waiters: a commit in between is seen by the poll or wakes the waiters.
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
      reserved?.();
      reserved = undefined;
      waiters.wakeAll();
    },
  };
}
