// How the roles of a handle share its pool, so that none of them can take all connections.

import type { Pool } from 'pg';

/** Connections that listeners leave free: one for the transaction of a handler, one for everything else. */
const connectionsFree = 2;

const listenersByPool = new WeakMap<Pool, number>();

/** Connections that can be checked out without waiting. */
export function freeConnections(pool: Pool): number {
  return pool.options.max - pool.totalCount + pool.idleCount - pool.waitingCount;
}

/** Reserves a connection for a listener; returns undefined if the pool has none to spare, else a function that ends it. */
export function reserveListener(pool: Pool): (() => void) | undefined {
  const listeners = listenersByPool.get(pool) ?? 0;
  if (pool.options.max - listeners <= connectionsFree) return undefined;
  listenersByPool.set(pool, listeners + 1);
  return () => void listenersByPool.set(pool, (listenersByPool.get(pool) ?? 1) - 1);
}
