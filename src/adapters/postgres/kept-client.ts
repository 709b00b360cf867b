// A connection that stays checked out while one query follows the other: handing it over through the
// pool costs a tenth of an append. Whoever waits for a connection gets it back at once.

import type { Pool, PoolClient } from 'pg';
import { checkOut, type Queryable } from './postgres-connection.ts';

export interface KeptClient {
  /** The kept connection while it is free, else the pool. */
  use<T>(work: (on: Queryable) => Promise<T>): Promise<T>;
  readonly isBusy: boolean;
  /** Before the pool is ended, which waits for what is checked out. */
  release(): void;
}

/** Unused for so long, at most twice, it goes back. Of the machine's own clock: the pool has no other. */
const idleMs = 100;

/** A smaller pool needs all that it has. */
const poolMin = 4;

export function createKeptClient(pool: Pool): KeptClient {
  let kept: PoolClient | undefined;
  let isBusy = false;
  let usedSinceCheck = false;
  let timer: NodeJS.Timeout | undefined;

  const release = (error?: unknown): void => {
    const client = kept;
    kept = undefined;
    clearTimeout(timer);
    client?.off('error', onBroken);
    client?.release(error !== undefined);
  };
  const onBroken = (error: Error): void => {
    if (!isBusy) release(error);
  };
  // Looks back instead of being set again by every query.
  const check = (): void => {
    if (!usedSinceCheck && !isBusy) return release();
    usedSinceCheck = false;
    timer = setTimeout(check, idleMs);
  };

  const keep = async (): Promise<PoolClient> => {
    const client = await checkOut(pool);
    client.on('error', onBroken);
    kept = client;
    timer = setTimeout(check, idleMs);
    return client;
  };

  return {
    get isBusy() {
      return isBusy;
    },
    async use(work) {
      if (isBusy || (pool.options.max ?? 10) < poolMin) return work(pool);
      isBusy = true;
      try {
        const result = await work(kept ?? (await keep()));
        usedSinceCheck = true;
        if (pool.waitingCount > 0) release();
        return result;
      } catch (error) {
        // As the pool does: whatever it was, the connection is not trusted any more.
        release(error);
        throw error;
      } finally {
        isBusy = false;
      }
    },
    release: () => release(),
  };
}
