// Wakes dispatchers when a message is enqueued. A dispatcher takes a shared lock here before it waits, and writers
// notify only while a dispatcher holds this lock. A poll finds messages without a notification.

import type { PoolClient } from 'pg';
import type { Clock } from '../../../foundation/clock.ts';
import { createWaiters, waitWithPoll } from '../../../foundation/async/waiters.ts';
import { checkOut, type PostgresConnection } from '../connection/connection.ts';
import { reserveListener } from '../connection/free-connections.ts';
import { quoteName } from '../connection/schema.ts';

export interface PostgresOutboxListener extends AsyncDisposable {
  whenDue(pollMs: number, signal: AbortSignal): Promise<void>;
  wakeAll(): void;
}

export interface OutboxListenerOptions {
  readonly lockClass: number;
  readonly channel: string;
  readonly clock: Clock;
  readonly onFailure: (error: unknown) => void;
}

interface Subscription {
  readonly client: PoolClient;
  readonly close: (error: Error) => void;
}

/** The delay of the first poll: a writer that checked the lock just before it was taken commits soon after. */
const firstPollMs = 10;
/** The delays between attempts to listen. Until one succeeds, only polls find messages of other processes. */
const retryMs = { first: 100, max: 10_000 };
/** After this time without a wait, the lock is released: a busy dispatcher needs no notifications. */
const awakeMs = 20;

export function createPostgresOutboxListener(
  connection: PostgresConnection,
  options: OutboxListenerOptions,
): PostgresOutboxListener {
  const { clock, channel } = options;
  const waiters = createWaiters();
  /** Ends the reservation of a connection; undefined if the pool has none to spare, then only the poll runs. */
  let reserved: (() => void) | undefined;
  let subscription: Subscription | undefined;
  let arming: Promise<void> | undefined;
  /** Whether this process holds the lock, so that writers notify. */
  let isArmed = false;
  /** Whether a notification arrived while no dispatcher waited: the last query may have missed the message. */
  let wasNotified = false;
  let awake: AbortController | undefined;
  let nextPollMs = firstPollMs;
  let nextRetryMs = retryMs.first;
  let isClosed = false;

  async function listen(): Promise<Subscription> {
    if (subscription !== undefined) return subscription;
    const client = await checkOut(connection.pool);
    const close = (error: Error): void => {
      if (subscription?.client !== client) return;
      const wasArmed = isArmed;
      subscription = undefined;
      isArmed = false;
      client.off('notification', wake);
      client.release(error);
      if (wasArmed) waiters.wakeAll();
    };
    // Attach the listeners before the first query: the server may close the connection right after its response.
    client.on('notification', wake);
    client.on('error', close);
    client.on('end', () => close(new Error('the connection ended')));
    const opened = { client, close };
    subscription = opened;
    await client.query(`listen ${quoteName(channel)}`);
    return opened;
  }

  async function arm(): Promise<void> {
    try {
      const { client } = await listen();
      await client.query('select pg_advisory_lock_shared($1, 1)', [options.lockClass + 1]);
      isArmed = subscription?.client === client;
      nextPollMs = firstPollMs;
    } catch (error) {
      subscription?.close(error as Error);
      options.onFailure(error);
    }
    if (isArmed) nextRetryMs = retryMs.first;
  }

  function wake(): void {
    wasNotified = waiters.size === 0;
    waiters.wakeAll();
    if (!isArmed || awake !== undefined) return;
    awake = new AbortController();
    clock.sleep(awakeMs, awake.signal).then(disarm, () => undefined);
  }

  function disarm(): void {
    awake = undefined;
    if (!isArmed) return;
    isArmed = false;
    subscription?.client
      .query('select pg_advisory_unlock_shared($1, 1)', [options.lockClass + 1])
      .catch(options.onFailure);
  }

  function nextWaitMs(pollMs: number): number {
    if (reserved === undefined) return pollMs;
    const waitMs = Math.min(isArmed ? nextPollMs : nextRetryMs, pollMs);
    if (isArmed) nextPollMs = Math.min(nextPollMs * 2, pollMs);
    else nextRetryMs = Math.min(nextRetryMs * 2, retryMs.max);
    return waitMs;
  }

  return {
    wakeAll: wake,
    async whenDue(pollMs, signal) {
      awake?.abort();
      awake = undefined;
      if (wasNotified) {
        wasNotified = false;
        return;
      }
      if (!isClosed) reserved ??= reserveListener(connection.pool);
      if (reserved !== undefined && !isArmed) {
        arming ??= arm().finally(() => {
          arming = undefined;
        });
        await arming;
        // Commits before the lock was taken sent no notification: query once more before sleeping.
        if (isArmed) return;
      }
      await waitWithPoll(waiters, { clock, pollMs: nextWaitMs(pollMs), signal });
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      reserved?.();
      reserved = undefined;
      awake?.abort();
      await arming;
      subscription?.close(new Error('the outbox was closed'));
      waiters.wakeAll();
    },
  };
}
