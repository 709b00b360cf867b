import type { Clock } from '../foundation/clock.ts';
import type { ProcessedEvents } from './subscription-storage.ts';

interface MemoryClaim {
  token: number;
  isDone: boolean;
  leasedUntilMs: number;
  readonly expiresAtMs: number;
}

export function memoryProcessed(clock: Clock): ProcessedEvents {
  const claims = new Map<string, MemoryClaim>();
  let tokens = 0;
  return {
    async claim({ eventId, handler }, { leaseMs, ttlMs }) {
      const key = `${handler} ${eventId}`;
      const nowMs = clock.now();
      const held = claims.get(key);
      const isOver = held !== undefined && held.expiresAtMs <= nowMs;
      if (held?.isDone === true && !isOver) return { kind: 'done' };
      if (held !== undefined && !held.isDone && held.leasedUntilMs > nowMs) {
        return { kind: 'busy', retryInMs: held.leasedUntilMs - nowMs };
      }
      tokens += 1;
      claims.set(key, {
        token: tokens,
        isDone: false,
        leasedUntilMs: nowMs + leaseMs,
        expiresAtMs: nowMs + ttlMs,
      });
      return { kind: 'claimed', token: tokens };
    },
    async confirm({ eventId, handler }, token) {
      const held = claims.get(`${handler} ${eventId}`);
      if (held?.token !== token) return false;
      held.isDone = true;
      return true;
    },
    async release({ eventId, handler }, token) {
      const key = `${handler} ${eventId}`;
      const held = claims.get(key);
      if (held?.token !== token || held.isDone) return false;
      claims.delete(key);
      return true;
    },
    async sweep(limit) {
      const nowMs = clock.now();
      let removed = 0;
      for (const [key, { expiresAtMs }] of claims) {
        if (removed === limit) break;
        if (expiresAtMs > nowMs) continue;
        claims.delete(key);
        removed += 1;
      }
      return removed;
    },
  };
}
