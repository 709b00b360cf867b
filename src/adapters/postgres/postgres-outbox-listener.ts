// Wakes dispatchers when somebody enqueues. Writers notify only while the lock is held that is taken
// here before a dispatcher goes to sleep; a poll finds what a notification missed.

import type { PoolClient } from 'pg';
import type { Clock } from '../../foundation/clock.ts';
import { createWaiters, waitWithPoll } from '../../store/waiters.ts';
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

/** The connection that listens. */
interface Ear {
  readonly client: PoolClient;
  readonly hangUp: (error: Error) => void;
}

/** A writer that looked at the lock just before we took it commits soon after. */
const firstNapMs = 10;
/** After a failure to listen, longer each time: until then only polls find what others enqueue. */
const deafMsRange = { first: 100, max: 10_000 };
/** A dispatcher that is awake for longer polls by itself: writers need not notify it. */
const awakeMs = 20;

export function createPostgresOutboxListener(
  connection: PostgresConnection,
  options: OutboxListenerOptions,
): PostgresOutboxListener {
  const { clock, channel } = options;
  const waiters = createWaiters();
  /** A pool of one has no connection to spare: then the poll is all there is. */
  const mayListen = (connection.pool.options.max ?? 10) > 1;
  let ear: Ear | undefined;
  let arming: Promise<void> | undefined;
  let isArmed = false;
  /** A notification arrived while no dispatcher waited: its last query may have missed the message. */
  let wasTold = false;
  let awake: AbortController | undefined;
  let napMs = firstNapMs;
  let deafMs = deafMsRange.first;
  let isClosed = false;

  async function listen(): Promise<Ear> {
    if (ear !== undefined) return ear;
    const client = await checkOut(connection.pool);
    const hangUp = (error: Error): void => {
      if (ear?.client !== client) return;
      const wasArmed = isArmed;
      ear = undefined;
      isArmed = false;
      client.off('notification', wake);
      client.release(error);
      if (wasArmed) waiters.wakeAll();
    };
    // Before the first query: the server may cut the connection off right after its answer.
    client.on('notification', wake);
    client.on('error', hangUp);
    client.on('end', () => hangUp(new Error('the connection ended')));
    const own = { client, hangUp };
    ear = own;
    await client.query(`listen ${quoteName(channel)}`);
    return own;
  }

  async function arm(): Promise<void> {
    try {
      const { client } = await listen();
      await client.query('select pg_advisory_lock_shared($1, 1)', [options.lockClass + 1]);
      isArmed = ear?.client === client;
      napMs = firstNapMs;
    } catch (error) {
      ear?.hangUp(error as Error);
      options.onFailure(error);
    }
    if (isArmed) deafMs = deafMsRange.first;
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
    ear?.client
      .query('select pg_advisory_unlock_shared($1, 1)', [options.lockClass + 1])
      .catch(options.onFailure);
  }

  function nextWaitMs(pollMs: number): number {
    if (!mayListen) return pollMs;
    const waitMs = Math.min(isArmed ? napMs : deafMs, pollMs);
    if (isArmed) napMs = Math.min(napMs * 2, pollMs);
    else deafMs = Math.min(deafMs * 2, deafMsRange.max);
    return waitMs;
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
        // Commits before the lock was taken sent no notification: query once more before sleeping.
        if (isArmed) return;
      }
      await waitWithPoll(waiters, { clock, pollMs: nextWaitMs(pollMs), signal });
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      awake?.abort();
      await arming;
      ear?.hangUp(new Error('the outbox was closed'));
      waiters.wakeAll();
    },
  };
}
