// The bus over Redis Streams, on one server or a cluster.

import type { Bus, BusCapabilities } from '../../../bus/bus.ts';
import type { BusEngine } from '../../../bus/bus-engine.ts';
import { createBus, type BusOptions } from '../../../bus/create-bus.ts';
import { systemClock } from '../../../foundation/clock.ts';
import type { RedisClient } from '../connection/connection.ts';
import { openEngine } from '../connection/engine.ts';
import { createAppender } from './append.ts';
import type { RedisBusContext } from './context.ts';
import { createBusFetch } from './fetch.ts';
import { createBusGroups } from './groups.ts';
import { createBusKeyspace } from './keyspace.ts';
import { createBusRead } from './read.ts';
import { createBusRegistry } from './registry.ts';
import { createBusSettle } from './settle.ts';
import { createBusStreams } from './streams.ts';
import { createBusWakes } from './wakes.ts';

export interface RedisBusOptions extends BusOptions {
  /**
   * Prefix of every key, so that one Redis can hold several buses. A hash tag (`{bus}:`) puts all keys in one slot of
   * a cluster: `maxAckPending` is then exact over all streams of a group, and a dead letter is stored atomically
   * with its ack.
   */
  readonly keyPrefix?: string | undefined;
  /** Time limit of a command. Default: 5 s. A client that you pass keeps its time limit. */
  readonly timeoutMs?: number | undefined;
}

const capabilities: BusCapabilities = {
  durable: true,
  crossProcess: true,
  atomicBatch: false,
  fencedAcks: true,
  patternPositions: false,
  uncountedRelease: true,
  pendingList: true,
  streamBytes: true,
};

/**
 * A bus in one Redis or a Redis Cluster, by its URL or with a client of your own. The server's `appendonly` and
 * `appendfsync` decide whether an acknowledged message survives a crash.
 *
 * @example
 * import { redisBus } from 'millrace/adapters/redis';
 *
 * await using bus = await redisBus('redis://localhost:6379');
 * await bus.publish({ subject: 'gbe.tasks.email-send.queue', payload: { taskId: 't1' } });
 */
export async function redisBus(
  target: string | RedisClient,
  options: RedisBusOptions = {},
): Promise<Bus> {
  const { clock = systemClock, keyPrefix: prefix = '' } = options;
  return openEngine('BUS', target, options, (redis) => {
    const keyspace = createBusKeyspace({ isCluster: redis.client.isCluster, prefix });
    const registry = createBusRegistry(redis, keyspace);
    const wakes = createBusWakes(redis.client, keyspace.channel);
    return createBus(redisEngine({ redis, keyspace, registry, wakes, clock }), options);
  });
}

function redisEngine(context: RedisBusContext): BusEngine {
  const { redis, keyspace, registry, wakes } = context;
  const append = createAppender(redis, keyspace, registry);
  const groups = createBusGroups(context);
  const fetching = createBusFetch(context, groups);
  const settle = createBusSettle(context, append, fetching.setPending);
  wakes.on(fetching.onWake);
  return {
    capabilities,
    append: (entries, { dedupeWindowMs }) => append(entries, dedupeWindowMs),
    async ensureGroup(settings) {
      fetching.addGroup(settings, await groups.ensure(settings));
    },
    fetch: fetching.fetch,
    settle,
    read: createBusRead(context),
    ...createBusStreams(context, groups),
    groups: () => groups.infos(),
    pending: (name, limit) => groups.pending(name, limit),
    seek: (name, to) => groups.seek(name, to),
    deleteGroup: (name) => groups.delete(name),
    async [Symbol.asyncDispose]() {
      await wakes[Symbol.asyncDispose]();
      await redis[Symbol.asyncDispose]();
    },
  };
}
