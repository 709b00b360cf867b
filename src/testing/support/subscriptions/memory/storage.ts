// The storage of subscriptions in memory, without SQL: the reference for those of the engines. Its transactions run
// effects of the test.

import { systemClock, type Clock } from '../../../../foundation/clock.ts';
import {
  decideAcquire,
  decideRenew,
  releasedAtMs,
} from '../../../../subscriptions/rules/decide-lease.ts';
import type {
  CheckpointStore,
  SubscriptionState,
  SubscriptionStorage,
  FenceTokens,
  LeaseStore,
  ShardKey,
  ProcessedEvents,
  WaitingEvents,
} from '../../../../subscriptions/subscription-storage.ts';
import { memoryDeadLetters } from './dead-letters.ts';
import {
  checkFence,
  createMemoryTables,
  keyOf,
  moveCheckpoint,
  settleIn,
  shardIn,
  insertWaiting,
  type MemoryTables,
} from './tables.ts';

/** Effects in memory, which run when the transaction commits. */
export interface MemoryTransaction {
  readonly onCommit: (effect: () => void) => void;
}

/** Runners that share one storage behave like processes that share a database. */
export function memorySubscriptionStorage(
  options: { readonly clock?: Clock | undefined } = {},
): SubscriptionStorage<MemoryTransaction> {
  const { clock = systemClock } = options;
  const tables = createMemoryTables();
  return {
    capabilities: { transactions: true, durable: false, crossProcess: false },
    checkpoints: memoryCheckpoints(tables),
    processed: memoryProcessed(clock),
    deadLetters: memoryDeadLetters(tables),
    waiting: memoryWaiting(tables),
    leases: memoryLeases(tables, clock),
    tokens: memoryTokens(tables),
    async settle(fence, settlement) {
      checkFence(tables, fence);
      return settleIn(tables, fence, settlement);
    },
    async begin(fence) {
      checkFence(tables, fence);
      const effects: (() => void)[] = [];
      return {
        transaction: { onCommit: (effect) => void effects.push(effect) },
        async commit(settlement) {
          checkFence(tables, fence);
          const result = settleIn(tables, fence, settlement);
          if (result === 'settled') for (const effect of effects) effect();
          return result;
        },
        rollback: async () => undefined,
      };
    },
  };
}

function memoryCheckpoints(tables: MemoryTables): CheckpointStore {
  const stateOf = (subscription: string): SubscriptionState | undefined => {
    const known = tables.subscriptions.get(subscription);
    if (known === undefined) return undefined;
    const positions = Array.from(
      { length: known.shards },
      (_, shard) => shardIn(tables, { subscription, shard }).position,
    );
    return { subscription, ...known, positions };
  };
  return {
    async open(subscription, shards, filter) {
      const known = tables.subscriptions.get(subscription);
      if (known === undefined) {
        tables.subscriptions.set(subscription, { shards, paused: false, filter });
      } else {
        known.filter = filter;
      }
      return stateOf(subscription) as SubscriptionState;
    },
    async load(key) {
      const { position, done, blocked } = shardIn(tables, key);
      const above = [...done].filter((each) => position === undefined || each > position);
      return { position, done: above, blocked: [...blocked.keys()] };
    },
    async save(fence, position) {
      checkFence(tables, fence);
      const shard = shardIn(tables, fence);
      moveCheckpoint(shard, position);
      for (const each of shard.done) if (each <= position) shard.done.delete(each);
    },
    async setPaused(subscription, paused) {
      const known = tables.subscriptions.get(subscription);
      if (known === undefined) return false;
      known.paused = paused;
      return true;
    },
    async reset(subscription, to, { by, atMs }) {
      const known = tables.subscriptions.get(subscription);
      if (known === undefined) return false;
      for (let each = 0; each < known.shards; each += 1) {
        const shard = shardIn(tables, { subscription, shard: each });
        shard.position = to;
        shard.done.clear();
        for (const [stream, blockedStream] of shard.blocked) {
          blockedStream.events = blockedStream.events.filter(({ position }) => position <= to);
          if (blockedStream.events.length === 0) shard.blocked.delete(stream);
        }
        const lease = tables.leases.get(keyOf({ subscription, shard: each }));
        if (lease !== undefined) {
          tables.leases.set(keyOf({ subscription, shard: each }), {
            ...lease,
            token: lease.token + 1,
            expiresAtMs: 0,
          });
        }
      }
      for (const [id, letter] of tables.letters) {
        const isReset =
          letter.handler === subscription && letter.status === 'pending' && letter.position > to;
        if (!isReset) continue;
        tables.letters.set(id, {
          ...letter,
          status: 'discarded',
          discardedAt: new Date(atMs).toISOString(),
          discardedBy: by,
          discardReason: 'the subscription was reset',
          replayRequestedAt: null,
        });
      }
      return true;
    },
    get: async (subscription) => stateOf(subscription),
    list: async () =>
      [...tables.subscriptions.keys()]
        .toSorted()
        .map((subscription) => stateOf(subscription) as SubscriptionState),
  };
}

function memoryLeases({ leases, workers }: MemoryTables, clock: Clock): LeaseStore {
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
    async workers(subscription) {
      const nowMs = clock.now();
      return [...(workers.get(subscription) ?? [])]
        .map(([worker, expiresAtMs]) => ({ worker, remainingMs: expiresAtMs - nowMs }))
        .filter(({ remainingMs }) => remainingMs > 0)
        .toSorted((a, b) => (a.worker < b.worker ? -1 : 1));
    },
  };
}

function memoryTokens({ leases }: MemoryTables): FenceTokens {
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

interface MemoryClaim {
  token: number;
  isDone: boolean;
  leasedUntilMs: number;
  readonly expiresAtMs: number;
}

function memoryProcessed(clock: Clock): ProcessedEvents {
  const claims = new Map<string, MemoryClaim>();
  let tokens = 0;
  return {
    async claim({ eventId, handler }, { leaseMs, ttlMs }) {
      const key = `${handler} ${eventId}`;
      const nowMs = clock.now();
      const claim = claims.get(key);
      const isExpired = claim !== undefined && claim.expiresAtMs <= nowMs;
      if (claim?.isDone === true && !isExpired) return { kind: 'done' };
      if (claim !== undefined && !claim.isDone && claim.leasedUntilMs > nowMs) {
        return { kind: 'busy', retryInMs: claim.leasedUntilMs - nowMs };
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
      const claim = claims.get(`${handler} ${eventId}`);
      if (claim?.token !== token) return false;
      claim.isDone = true;
      return true;
    },
    async release({ eventId, handler }, token) {
      const key = `${handler} ${eventId}`;
      const claim = claims.get(key);
      if (claim?.token !== token || claim.isDone) return false;
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

function memoryWaiting(tables: MemoryTables): WaitingEvents {
  return {
    async park(fence, streams) {
      checkFence(tables, fence);
      const { blocked, done } = shardIn(tables, fence);
      for (const { stream, due, events } of streams) {
        const blockedStream = blocked.get(stream) ?? { due: 0, events: [] };
        blocked.set(stream, blockedStream);
        if (due !== 'queued') {
          blockedStream.due = due;
          // The first event has been retried, so replace its attempts.
          const known = new Set(events.map(({ position }) => position));
          blockedStream.events = blockedStream.events.filter(
            ({ position }) => !known.has(position),
          );
        }
        for (const event of events) {
          // The feed may deliver an event again that was drained above the checkpoint.
          if (due === 'queued' && done.has(event.position)) continue;
          insertWaiting(blockedStream, event);
        }
      }
    },
    async due(key, nowMs, limit) {
      const { blocked } = shardIn(tables, key);
      return [...blocked]
        .filter(([, { due }]) => due !== undefined && due <= nowMs)
        .slice(0, limit)
        .map(([stream]) => stream);
    },
    async next(key, stream, limit, after) {
      const events = shardIn(tables, key).blocked.get(stream)?.events ?? [];
      return events
        .filter(({ position }) => after === undefined || position > after)
        .slice(0, limit);
    },
    async unblock(fence, stream) {
      checkFence(tables, fence);
      const { blocked } = shardIn(tables, fence);
      if ((blocked.get(stream)?.events.length ?? 0) > 0) return false;
      blocked.delete(stream);
      return true;
    },
    async count(subscription) {
      let count = 0;
      for (const [key, { blocked }] of tables.shards) {
        if (!key.startsWith(`${subscription}/`)) continue;
        for (const { events } of blocked.values()) count += events.length;
      }
      return count;
    },
    countOf: async (key, stream) => shardIn(tables, key).blocked.get(stream)?.events.length ?? 0,
  };
}
