// Wakes dispatchers when somebody enqueues. Writers notify only while the lock is held that is taken
// here before a dispatcher goes to sleep; a poll finds what a notification missed.

import type { PoolClient } from 'pg';
import type { Clock } from '../../foundation/clock.ts';
import { waitWithPoll } from '../../outbox/wait-with-poll.ts';
import { createWaiters } from '../../store/waiters.ts';
import { checkOut, type PostgresConnection } from './postgres-connection.ts';
import { quoteName } from './postgres-schema-names.ts';

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

/** A writer that looked at the lock just before we took it commits soon after. */
const firstNapMs = 10;
/** Whoever is awake for longer looks by himself: writers need not tell. */
const awakeMs = 20;

export function createPostgresOutboxListener(
  connection: PostgresConnection,
  options: OutboxListenerOptions,
): PostgresOutboxListener {
  const { clock, channel } = options;
  const waiters = createWaiters();
  /** A pool of one has no connection to spare: then the poll is all there is. */
  const mayListen = (connection.pool.options.max ?? 10) > 1;
  let ear: PoolClient | undefined;
  let arming: Promise<void> | undefined;
  let isArmed = false;
  /** While nobody was asleep: what was asked for before may have missed it. */
  let wasTold = false;
  let awake: AbortController | undefined;
  let napMs = firstNapMs;
  let isClosed = false;

  async function listen(): Promise<PoolClient> {
    if (ear !== undefined) return ear;
    const client = await checkOut(connection.pool);
    try {
      await client.query(`listen ${quoteName(channel)}`);
    } catch (error) {
      client.release(true);
      throw error;
    }
    const hangUp = (error: Error): void => {
      if (ear !== client) return;
      ear = undefined;
      isArmed = false;
      client.release(error);
      waiters.wakeAll();
    };
    client.on('notification', wake);
    client.on('error', hangUp);
    client.on('end', () => hangUp(new Error('the connection ended')));
    ear = client;
    return client;
  }

  async function arm(): Promise<void> {
    try {
      const client = await listen();
      await client.query('select pg_advisory_lock_shared($1, 1)', [options.lockClass + 1]);
      isArmed = true;
      napMs = firstNapMs;
    } catch (error) {
      options.onFailure(error);
    }
  }

  function wake(): void {
    wasTold = waiters.size === 0;
    waiters.wakeAll();
    if (!isArmed || awake !== undefined) return;
    awake = new AbortController();
    clock.sleep(awakeMs, awake.signal).then(disarm, () => undefined);
  }

  function disarm(): void {
    awake = undefined;
    if (!isArmed) return;
    isArmed = false;
    ear
      ?.query('select pg_advisory_unlock_shared($1, 1)', [options.lockClass + 1])
      .catch(options.onFailure);
  }

  return {
    wakeAll: wake,
    async whenDue(pollMs, signal) {
      awake?.abort();
      awake = undefined;
      if (wasTold) {
        wasTold = false;
        return;
      }
      if (mayListen && !isArmed && !isClosed) {
        arming ??= arm().finally(() => {
          arming = undefined;
        });
        await arming;
        // What was committed before the lock was ours told nobody: look once more before sleeping.
        if (isArmed) return;
      }
      const waitMs = isArmed ? Math.min(napMs, pollMs) : pollMs;
      napMs = Math.min(napMs * 2, pollMs);
      await waitWithPoll(waiters, { clock, pollMs: waitMs, signal });
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      awake?.abort();
      await arming;
      const client = ear;
      ear = undefined;
      isArmed = false;
      client?.removeAllListeners('notification');
      client?.release(true);
      waiters.wakeAll();
    },
  };
}
