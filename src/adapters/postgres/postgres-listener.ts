// Wakes live readers: by notification from other processes, by our own commits, and by a poll for
// whatever a notification missed.

import type { PoolClient } from 'pg';
import { createWaiters, type Waiters } from '../../store/waiters.ts';
import { checkOut, type PostgresConnection } from './postgres-connection.ts';
import { lockClass, quoteName } from './postgres-schema.ts';

export interface PostgresListener extends AsyncDisposable {
  /** `isKnown`: `lastKnown` tells of all that was committed, and nobody has to ask for it. */
  wakeAll(isKnown?: boolean): void;
  whenMore(after: number, signal: AbortSignal): Promise<void>;
}

export interface ListenerOptions {
  readonly schema: string;
  readonly channel: string;
  /** The backstop, while notifications work. */
  readonly pollIntervalMs: number;
  readonly safeHead: () => Promise<{ readonly head: number; readonly inFlight: boolean }>;
  /** The last of our own commits that readers have without the database. */
  readonly lastKnown: () => number;
  readonly onFailure: (error: unknown) => void;
}

/** The connection that listens, from the moment that it is asked for. */
interface Ear {
  hears: boolean;
  hangUp: () => void;
}

/** Somebody is about to commit: worth looking again soon. */
const soonMs = 10;
/** Without a listening connection the poll is all there is. */
const deafPollMs = 100;

export function createPostgresListener(
  connection: PostgresConnection,
  options: ListenerOptions,
): PostgresListener {
  const waiters: Waiters = createWaiters();
  const lock = lockClass(options.schema);
  /** A pool of one has no connection to spare: then the poll is all there is. */
  const mayListen = (connection.pool.options.max ?? 10) > 1;
  let ear: Ear | undefined;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let lowest = 0;
  /** Something may have been committed that no look has found yet. */
  let isUnseen = true;
  /** As of the last look that found nothing. */
  let seenHead = 0;

  /**
   * While this lock is held, writers notify. It is taken when the first reader waits and kept for as
   * long as the connection lives: readers that come and go would cost two round trips each time.
   */
  async function listen(): Promise<void> {
    if (ear !== undefined || closed || !mayListen) return;
    const mine: Ear = { hears: false, hangUp: () => undefined };
    ear = mine;
    try {
      const client = await checkOut(connection.pool);
      mine.hangUp = attend(client, mine);
      if (closed) return mine.hangUp();
      await client.query(`listen ${quoteName(options.channel)}`);
      await client.query('select pg_advisory_lock_shared($1, 1)', [lock + 1]);
      mine.hears = true;
      isUnseen = true;
      // What was committed before we listened told nobody.
      void look();
    } catch (error) {
      options.onFailure(error);
      mine.hangUp();
      if (ear === mine) ear = undefined;
    }
  }

  /** Returns what gives the connection back, once; it is called when the connection breaks, too. */
  function attend(client: PoolClient, mine: Ear): () => void {
    let attending = true;
    const onNotification = (): void => wakeAll();
    const hangUp = (error?: Error): void => {
      if (!attending) return;
      attending = false;
      isUnseen = true;
      if (ear === mine) ear = undefined;
      client.off('notification', onNotification);
      client.release(error ?? true);
      // Notifications may have gone down with it: whoever waits looks again, and listens again.
      schedule(soonMs);
    };
    client.on('notification', onNotification);
    // Stays: a connection may report more than one error on its way down.
    client.on('error', hangUp);
    return hangUp;
  }

  function schedule(ms: number): void {
    if (closed || waiters.size === 0) return;
    clearTimeout(timer);
    // Holds the event loop: somebody waits for events, also while no connection is open.
    timer = setTimeout(() => void look(), ms);
  }

  async function look(): Promise<void> {
    if (closed || waiters.size === 0) return;
    // Not waited for: the poll must go on while there is no connection to listen on.
    void listen();
    // Before the question: what is told while it is under way may not be in its answer.
    isUnseen = false;
    try {
      const { head, inFlight } = await options.safeHead();
      if (head > lowest || inFlight) isUnseen = true;
      else seenHead = Math.max(seenHead, head);
      if (head > lowest) waiters.wakeAll();
      else schedule(inFlight ? soonMs : ear?.hears === true ? options.pollIntervalMs : deafPollMs);
    } catch (error) {
      isUnseen = true;
      options.onFailure(error);
      schedule(deafPollMs);
    }
  }

  function wakeAll(isKnown = false): void {
    if (!isKnown) isUnseen = true;
    waiters.wakeAll();
  }

  return {
    wakeAll,
    async whenMore(after, signal) {
      lowest = waiters.size === 0 ? after : Math.min(lowest, after);
      const woken = waiters.wait(signal, () => false);
      // Looked at after joining: what commits in between is seen by the look or tells us.
      const isTold = ear?.hears === true && !isUnseen;
      if (isTold && after >= Math.max(seenHead, options.lastKnown())) {
        schedule(options.pollIntervalMs);
      } else {
        void look();
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
      ear?.hangUp();
      waiters.wakeAll();
    },
  };
}
