// The bus over Redis Streams, on one server or a cluster.

import type { Bus, BusCapabilities } from '../../bus/bus.ts';
import type { BusEngine } from '../../bus/bus-engine.ts';
import { createBus, type BusOptions } from '../../bus/create-bus.ts';
import { systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { createAppender } from './redis-bus-append.ts';
import { busError, createBusCalls } from './redis-bus-calls.ts';
import type { RedisBusContext } from './redis-bus-context.ts';
import { createBusFetch } from './redis-bus-fetch.ts';
import { createBusGroups } from './redis-bus-groups.ts';
import { createBusRead } from './redis-bus-read.ts';
import { createBusRegistry } from './redis-bus-registry.ts';
import { createBusSettle } from './redis-bus-settle.ts';
import { createBusSpace } from './redis-bus-space.ts';
import { createBusStreams } from './redis-bus-streams.ts';
import { createBusWakes } from './redis-bus-wake.ts';
import { connectRedis, type RedisClient, type RedisConnection } from './redis-connection.ts';
import { readRedisRisks } from './redis-risks.ts';

export interface RedisBusOptions extends BusOptions {
  /**
   * Before every key: one Redis may have several buses. With a hash tag (`{bus}:`) all of it lies in one
   * slot of a cluster, where `maxAckPending` is exact over all streams of a group, and a dead letter is
   * stored in one step with its ack.
   */
  readonly keyPrefix?: string | undefined;
  /** How long an answer may take. Default: 5 s. Of a client of your own, what it is set to counts. */
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
 * A bus in one Redis or a Redis Cluster, by its URL or with a client of your own. What an acknowledgement
 * is worth is decided by the server's `appendonly` and `appendfsync`.
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
  const { observer, clock = systemClock, timeoutMs, keyPrefix: prefix = '' } = options;
  if (typeof target !== 'string' && (target.options.keyPrefix ?? '') !== '') {
    const text =
      'the client puts a prefix before keys, but not before those in scripts: give keyPrefix to the bus';
    throw new MillraceError('CONFIG_INVALID', text, { details: { field: 'keyPrefix' } });
  }
  const connection = await connect(target, {
    clock,
    ...(observer === undefined ? {} : { observer }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
  try {
    const risks = await readRedisRisks(connection);
    if (risks !== undefined && risks.length > 0) {
      const settings = risks.map(({ setting }) => setting).join(', ');
      observer?.log?.warn({ settings }, 'Redis may lose messages that it has confirmed');
    }
    const calls = createBusCalls(connection);
    const space = createBusSpace({ isCluster: connection.client.isCluster, prefix });
    const registry = createBusRegistry(calls, space);
    const wakes = createBusWakes(connection.client, space.channel);
    return createBus(redisEngine({ calls, space, registry, wakes, clock }, connection), options);
  } catch (error) {
    await connection[Symbol.asyncDispose]();
    throw error;
  }
}

async function connect(
  target: string | RedisClient,
  options: Parameters<typeof connectRedis>[1],
): Promise<RedisConnection> {
  try {
    return await connectRedis(target, options);
  } catch (error) {
    throw busError(error);
  }
}

function redisEngine(context: RedisBusContext, connection: AsyncDisposable): BusEngine {
  const { calls, space, registry, wakes } = context;
  const append = createAppender(calls, space, registry);
  const groups = createBusGroups(context);
  const { fetch, know, hear, pendingIs } = createBusFetch(context, groups);
  const settle = createBusSettle(context, append, pendingIs);
  wakes.on(hear);
  return {
    capabilities,
    append: (entries, { dedupeWindowMs }) => append(entries, dedupeWindowMs),
    async ensureGroup(settings) {
      know(settings, await groups.ensure(settings));
    },
    fetch,
    settle,
    read: createBusRead(context),
    ...createBusStreams(context, groups),
    groups: () => groups.infos(),
    pending: (name, limit) => groups.pending(name, limit),
    seek: (name, to) => groups.seek(name, to),
    deleteGroup: (name) => groups.delete(name),
    async [Symbol.asyncDispose]() {
      await wakes[Symbol.asyncDispose]();
      await connection[Symbol.asyncDispose]();
    },
  };
}
