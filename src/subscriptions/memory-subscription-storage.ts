// The storage of subscriptions in memory: for unit tests, and the plain statement of what the
// durable ones do.

import { systemClock, type Clock } from '../foundation/clock.ts';
import { memoryDeadLetters } from './memory-dead-letters.ts';
import { memoryLeases, memoryTokens } from './memory-leases.ts';
import { memoryProcessed } from './memory-processed.ts';
import {
  checkFence,
  createMemoryTables,
  keyOf,
  moveCheckpoint,
  settleIn,
  shardIn,
  type MemoryTables,
} from './memory-tables.ts';
import { memoryWaiting } from './memory-waiting.ts';
import type {
  CheckpointStore,
  SubscriptionState,
  SubscriptionStorage,
} from './subscription-storage.ts';

/** Effects in memory: they happen when the transaction commits, and not at all when it does not. */
export interface MemoryTransaction {
  readonly onCommit: (effect: () => void) => void;
}

/**
 * Lives and dies with the process; runners that share one behave as processes that share a database.
 *
 * @example
 * import { memorySubscriptionStorage } from 'millrace/subscriptions';
 *
 * const storage = memorySubscriptionStorage();
 * await storage.checkpoints.open('sub:core-lookup:currency-projection:v1', 1);
 */
export function memorySubscriptionStorage(
  options: { readonly clock?: Clock } = {},
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
        for (const [stream, held] of shard.blocked) {
          held.events = held.events.filter(({ position }) => position <= to);
          if (held.events.length === 0) shard.blocked.delete(stream);
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
        const isOver =
          letter.handler === subscription && letter.status === 'pending' && letter.position > to;
        if (!isOver) continue;
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
