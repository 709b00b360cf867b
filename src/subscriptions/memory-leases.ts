import type { Clock } from '../foundation/clock.ts';
import { decideAcquire, decideRenew, releasedAtMs } from './decide-lease.ts';
import { keyOf, type MemoryTables } from './memory-tables.ts';
import type { FenceTokens, LeaseStore, ShardKey } from './subscription-storage.ts';

export function memoryLeases({ leases, workers }: MemoryTables, clock: Clock): LeaseStore {
  return {
    async acquire(key, owner, ttlMs, { above = 0 } = {}) {
      const nowMs = clock.now();
      const decision = decideAcquire(leases.get(keyOf(key)), { owner, nowMs, ttlMs, above });
      if (decision.kind === 'held') return decision;
      leases.set(keyOf(key), decision.row);
      return { kind: 'acquired', token: decision.row.token };
    },
    async renew(fence, ttlMs) {
      const { token } = fence;
      const row = decideRenew(leases.get(keyOf(fence)), { token, nowMs: clock.now(), ttlMs });
      if (row !== undefined) leases.set(keyOf(fence), row);
      return row !== undefined;
    },
    async release(fence) {
      const row = leases.get(keyOf(fence));
      if (row?.token === fence.token)
        leases.set(keyOf(fence), { ...row, expiresAtMs: releasedAtMs });
    },
    async list(subscription) {
      const nowMs = clock.now();
      return [...leases]
        .filter(([key]) => key.startsWith(`${subscription}/`))
        .map(([key, { owner, expiresAtMs }]) => ({
          shard: Number(key.slice(subscription.length + 1)),
          owner,
          remainingMs: Math.max(0, expiresAtMs - nowMs),
        }));
    },
    async announce(subscription, worker, ttlMs) {
      const nowMs = clock.now();
      const known = workers.get(subscription) ?? new Map<string, number>();
      workers.set(subscription, known);
      known.set(worker, nowMs + ttlMs);
      for (const [name, expiresAtMs] of known) if (expiresAtMs <= nowMs) known.delete(name);
      return [...known.keys()].toSorted();
    },
    async leave(subscription, worker) {
      workers.get(subscription)?.delete(worker);
    },
  };
}

export function memoryTokens({ leases }: MemoryTables): FenceTokens {
  const current = (key: ShardKey): number => leases.get(keyOf(key))?.token ?? 0;
  return {
    current: async (key) => current(key),
    async raise(fence) {
      const { token } = fence;
      if (current(fence) >= token) return false;
      leases.set(keyOf(fence), { owner: '', token, expiresAtMs: releasedAtMs });
      return true;
    },
  };
}
