// Checkpoints in Redis. `checkpoint:esdb:<subscription>` is a copy of the lowest position for other programs, in the form
// of the naming document.

import { redisKeys } from '../../../contracts/redis-keys.ts';
import { parseStored } from '../../../foundation/parse-json.ts';
import type { EventFilter } from '../../../store/event-filter.ts';
import { toPosition, toSequence, type Position } from '../../../store/position.ts';
import {
  checkpointLost,
  type CheckpointStore,
  type SubscriptionState,
} from '../../../subscriptions/subscription-storage.ts';
import type { RedisConnection } from '../connection/connection.ts';
import { eachOf, pairsOf } from '../connection/engine.ts';
import { shardKeyspace, subscriptionKeyspace, subscriptionScripts as scripts } from './keyspace.ts';
import type { RunFenced } from './storage.ts';

export interface RedisCheckpoints {
  readonly checkpoints: CheckpointStore;
  /** Writes the copy, from the reply of a script that moved a checkpoint: the number of changes and the lowest position. */
  readonly mirror: (subscription: string, reply: unknown) => Promise<void>;
}

export function redisCheckpoints(
  connection: RedisConnection,
  runFenced: RunFenced,
): RedisCheckpoints {
  const { run } = connection;
  /** The last change that this process has copied, by subscription. */
  const copied = new Map<string, string>();

  async function mirror(subscription: string, reply: unknown): Promise<void> {
    const [changes = '', lowest = ''] = reply as readonly string[];
    if (copied.get(subscription) === changes) return;
    const keys = [redisKeys.checkpoint(subscription), redisKeys.checkpointChanges(subscription)];
    // KurrentDB's positions are 64-bit integers, which its clients take as bigint: JSON has them as text.
    await run(scripts.mirror, keys, [changes, JSON.stringify({ commit: lowest, prepare: lowest })]);
    copied.set(subscription, changes);
  }

  async function get(subscription: string): Promise<SubscriptionState | undefined> {
    const { state } = subscriptionKeyspace(subscription);
    return stateOf(subscription, await connection.ask((client) => client.hgetall(state)));
  }

  const checkpoints: CheckpointStore = {
    async open(subscription, shards, filter) {
      await connection.ask((client) => client.sadd(redisKeys.subscriptions(), subscription));
      const { state } = subscriptionKeyspace(subscription);
      const values = [shards, filter === undefined ? '' : JSON.stringify(filter)];
      const cells = (await run(scripts.open, [state], values)) as readonly string[];
      return stateOf(subscription, Object.fromEntries(pairsOf(cells))) as SubscriptionState;
    },
    async load(key) {
      const { state, marks, blocked } = shardKeyspace(key);
      const reply = await run(scripts.load, [state, marks, blocked], [key.shard]);
      const [exists, position, done, streams] = reply as [
        number,
        string | null,
        string[],
        string[],
      ];
      if (exists === 0) throw checkpointLost(key.subscription);
      return {
        position: positionOf(position),
        done: done.map((each) => toPosition(Number(each))),
        blocked: streams,
      };
    },
    async save(fence, position) {
      const { leases, state, marks } = shardKeyspace(fence);
      const keys = [leases, state, marks];
      const reply = await runFenced(fence, scripts.save, keys, [toSequence(position)]);
      await mirror(fence.subscription, reply);
    },
    async setPaused(subscription, paused) {
      const { state } = subscriptionKeyspace(subscription);
      return (await run(scripts.pause, [state], [paused ? 1 : 0])) === 1;
    },
    async reset(subscription, to, { by, atMs }) {
      const known = await get(subscription);
      if (known === undefined) return false;
      const { leases, state, letters, lettersPending } = subscriptionKeyspace(subscription);
      const ofShards = Array.from({ length: known.shards }, (_, shard) => {
        const { marks, blocked, waiting } = shardKeyspace({ subscription, shard });
        return [marks, blocked, waiting];
      });
      const keys = [leases, state, letters, lettersPending, ...ofShards.flat()];
      await mirror(subscription, await run(scripts.reset, keys, [toSequence(to), by, atMs]));
      return true;
    },
    get,
    async list() {
      const names = await connection.ask((client) => client.smembers(redisKeys.subscriptions()));
      const states = await eachOf(names.toSorted(), get);
      return states.filter((each) => each !== undefined);
    },
    marks: {
      async read(subscription) {
        const { state } = subscriptionKeyspace(subscription);
        return (await connection.ask((client) => client.hget(state, 'mark'))) ?? undefined;
      },
      async create(subscription, mark) {
        const { state } = subscriptionKeyspace(subscription);
        await connection.ask((client) => client.hsetnx(state, 'mark', mark));
        return (await connection.ask((client) => client.hget(state, 'mark'))) ?? mark;
      },
      async replace(subscription, mark) {
        const { state } = subscriptionKeyspace(subscription);
        await connection.ask((client) => client.hset(state, 'mark', mark));
      },
      onRestored: (listener) => connection.onRestored(listener),
    },
  };
  return { checkpoints, mirror };
}

function stateOf(
  subscription: string,
  fields: Readonly<Record<string, string>>,
): SubscriptionState | undefined {
  const { shards, paused, filter } = fields;
  if (shards === undefined) return undefined;
  return {
    subscription,
    shards: Number(shards),
    paused: paused === '1',
    filter: filter === undefined ? undefined : (parseStored(filter) as EventFilter | undefined),
    positions: Array.from({ length: Number(shards) }, (_, shard) =>
      positionOf(fields[`${shard}:position`]),
    ),
  };
}

function positionOf(number: string | null | undefined): Position | undefined {
  return number === null || number === undefined ? undefined : toPosition(Number(number));
}
