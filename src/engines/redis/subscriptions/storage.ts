// Subscription storage in Redis, next to the leases. A handler has no transaction here: an effect is made once by
// `claim()` or by the idempotency key.

import { redisKeys } from '../../../contracts/redis-keys.ts';
import { MillraceError } from '../../../foundation/error.ts';
import { toSequence } from '../../../store/position.ts';
import {
  leaseLost,
  type Fence,
  type FenceTokens,
  type ProcessedEvents,
  type SubscriptionStorage,
} from '../../../subscriptions/subscription-storage.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisScript, ScriptValue } from '../connection/script.ts';
import { redisLeases } from '../leases/leases.ts';
import { redisCheckpoints } from './checkpoints.ts';
import { redisDeadLetters } from './dead-letters.ts';
import { shardKeyspace, subscriptionKeyspace, subscriptionScripts as scripts } from './keyspace.ts';
import { redisWaiting } from './waiting.ts';

export function redisSubscriptionStorage(
  connection: RedisConnection,
  { durable = true }: { readonly durable?: boolean | undefined } = {},
): SubscriptionStorage<never> {
  const runFenced = fencedBy(connection);
  const { checkpoints, mirror } = redisCheckpoints(connection, runFenced);
  return {
    capabilities: { transactions: false, durable, crossProcess: true },
    checkpoints,
    processed: redisProcessed(connection),
    deadLetters: redisDeadLetters(connection, runFenced),
    waiting: redisWaiting(connection, runFenced),
    leases: redisLeases(connection, { fences: true }),
    tokens: redisTokens(connection),
    async settle(fence, settlement) {
      const { leases, state, marks, waiting, letters, lettersPending } = shardKeyspace(fence);
      const common = [leases, state, marks];
      if (settlement.kind === 'drained') {
        const { stream, position, eventId, atMs } = settlement;
        const keys = [...common, waiting, letters, lettersPending];
        const values = [stream, position, toSequence(position), eventId, atMs];
        const reply = await runFenced(fence, scripts.drain, keys, values);
        return reply === 'duplicate' ? 'duplicate' : 'settled';
      }
      const { positions, checkpoint } = settlement;
      const values = [
        checkpoint === undefined ? '' : toSequence(checkpoint),
        ...positions.map(toSequence),
      ];
      const reply = await runFenced(fence, scripts.settle, common, values);
      if (reply === 'duplicate') return 'duplicate';
      if (checkpoint !== undefined) await mirror(fence.subscription, reply);
      return 'settled';
    },
    async begin({ subscription }) {
      throw new MillraceError(
        'NOT_SUPPORTED',
        `${subscription}: Redis has no transactions for handlers: use claim() or the idempotency key`,
        { details: { subscription, capability: 'transactions' } },
      );
    },
  };
}

/** Runs a script of the owner of a shard; rejects with `LEASE_LOST` once another owner took over. */
export type RunFenced = (
  fence: Fence,
  script: RedisScript,
  keys: readonly string[],
  values: readonly ScriptValue[],
) => Promise<unknown>;

function fencedBy({ run }: RedisConnection): RunFenced {
  return async (fence, script, keys, values) => {
    const reply = await run(script, keys, [fence.shard, fence.token, ...values]);
    if (reply === 'lost') throw leaseLost(fence);
    return reply;
  };
}

function redisTokens(connection: RedisConnection): FenceTokens {
  return {
    async current({ subscription, shard }) {
      const { leases } = subscriptionKeyspace(subscription);
      return Number((await connection.ask((client) => client.hget(leases, `${shard}:fence`))) ?? 0);
    },
    async raise({ subscription, shard, token }) {
      const { leases } = subscriptionKeyspace(subscription);
      return (await connection.run(scripts.raise, [leases], [shard, token])) === 1;
    },
  };
}

function redisProcessed(connection: RedisConnection): ProcessedEvents {
  const { run } = connection;
  /** Handlers whose names this process has stored; `sweep` finds the claims of all processes by them. */
  const known = new Set<string>();

  async function register(handler: string): Promise<void> {
    if (known.has(handler)) return;
    await connection.ask((client) => client.sadd(redisKeys.subscriptions(), handler));
    known.add(handler);
  }

  async function settle(
    { eventId, handler }: { readonly eventId: string; readonly handler: string },
    token: number,
    how: 'confirm' | 'release',
  ): Promise<boolean> {
    const { processed } = subscriptionKeyspace(handler);
    return (await run(scripts.settleClaim, [processed], [eventId, token, how])) === 1;
  }

  return {
    async claim({ eventId, handler }, { leaseMs, ttlMs }) {
      await register(handler);
      const { processed, processedExpiry } = subscriptionKeyspace(handler);
      const values = [eventId, leaseMs, ttlMs];
      const reply = await run(scripts.claim, [processed, processedExpiry], values);
      const [kind, number = 0] = reply as readonly ['claimed' | 'busy' | 'done', number?];
      if (kind === 'done') return { kind };
      return kind === 'claimed' ? { kind, token: number } : { kind, retryInMs: number };
    },
    confirm: (key, token) => settle(key, token, 'confirm'),
    release: (key, token) => settle(key, token, 'release'),
    async sweep(limit) {
      let removed = 0;
      for (const handler of await connection.ask((client) =>
        client.smembers(redisKeys.subscriptions()),
      )) {
        if (removed >= limit) break;
        const { processed, processedExpiry } = subscriptionKeyspace(handler);
        const keys = [processed, processedExpiry];
        removed += Number(await run(scripts.sweepClaims, keys, [limit - removed]));
      }
      return removed;
    },
  };
}
