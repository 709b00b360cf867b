// One Redis or Redis Cluster as several roles: one client for the commands of all of them.

import type { KeyClaims } from '../../aggregates/idempotency.ts';
import type { SnapshotStore } from '../../aggregates/snapshot-store.ts';
import type { Bus } from '../../bus/bus.ts';
import { createBus, type BusOptions } from '../../bus/create-bus.ts';
import type { BreakerStore } from '../../delivery/breaker-store.ts';
import { MillraceError } from '../../foundation/error.ts';
import { lazyRoles } from '../../foundation/lazy-roles.ts';
import type { ReadModelStore } from '../../projections/read-model-store.ts';
import type { ReadModelVersions } from '../../projections/read-model-versions.ts';
import type { MirrorOutlet } from '../../projections/run/mirror-buffer.ts';
import type { LeaseStore, SubscriptionStorage } from '../../subscriptions/subscription-storage.ts';
import type { TaskEngine } from '../../tasks/task-engine.ts';
import type { KeyStore } from '../../work/key-store.ts';
import type { WorkQueue } from '../../work/work-queue.ts';
import { redisKeyClaims, redisSnapshots } from './aggregates/aggregates.ts';
import { redisBusEngine } from './bus/bus.ts';
import {
  connectRedis,
  redisClosed,
  type RedisClient,
  type RedisConnectionOptions,
} from './connection/connection.ts';
import { readRedisRisks, warnOfRisks } from './connection/risks.ts';
import { redisBreakerStore } from './keys/breaker-store.ts';
import { redisKeyStore } from './keys/key-store.ts';
import { redisLeases } from './leases/leases.ts';
import { redisMirror } from './mirror.ts';
import { bullmqWorkQueue } from './queue/work-queue.ts';
import { redisReadModels } from './read-models/read-models.ts';
import { redisReadModelVersions } from './read-models/versions.ts';
import { redisSagaIndex, type RedisSagaIndex } from './sagas/saga-index.ts';
import { redisSubscriptionStorage } from './subscriptions/storage.ts';
import { redisTaskEngine } from './tasks/tasks.ts';

export interface RedisOptions extends RedisConnectionOptions, BusOptions {
  /**
   * Prefix of the keys of bus and tasks, so that one Redis can hold several of them. A hash tag (`{bus}:`) puts all
   * these keys in one slot of a cluster: `maxAckPending` is then exact over all streams of a group, and dead letters
   * and signals of jobs are stored atomically.
   */
  readonly keyPrefix?: string | undefined;
  /** The first token of the subjects of tasks. Default: `gbe`. */
  readonly root?: string | undefined;
  /**
   * How read models are stored: JSON at `app:{core}:banking:currency:v1:USD` (default), or a hash with a
   * field for each member at `app:{core}:banking:currency:v1:h:USD`.
   */
  readonly documents?: 'json' | 'hash' | undefined;
  /** The key of the circuit breakers. Default: `millrace:breakers`. */
  readonly breakersKey?: string | undefined;
}

interface RedisRoles {
  /** Without transactions for handlers. */
  readonly subscriptions: SubscriptionStorage<never>;
  readonly snapshots: SnapshotStore;
  readonly keyClaims: KeyClaims;
  readonly readModels: ReadModelStore;
  readonly readModelVersions: ReadModelVersions;
  /** Entries that Redis loses are restored from the streams of the sagas. */
  readonly sagas: RedisSagaIndex;
  readonly leases: LeaseStore;
  readonly bus: Bus;
  /** For `createTasks`. Its signals are messages of `bus`. */
  readonly tasks: TaskEngine;
  readonly keys: KeyStore;
  /** While Redis is unreachable, each process uses separate breakers. */
  readonly breakers: BreakerStore;
  /** For `createLiveMirror`. */
  readonly mirror: MirrorOutlet;
  /** Work queues on BullMQ. */
  readonly queue: WorkQueue;
}

export interface RedisEngine extends RedisRoles, AsyncDisposable {}

/**
 * Connects to one Redis or a Redis Cluster, by its URL or with a client of your own, which stays open. The server's
 * `appendonly` and `appendfsync` decide whether a confirmed write survives a crash.
 *
 * @example
 * import { openRedis } from 'millrace/engines/redis';
 * import { createTasks, taskType } from 'millrace/tasks';
 *
 * await using redis = await openRedis('redis://localhost:6379');
 * const types = [taskType('email-send')];
 * await using tasks = createTasks(redis.tasks, { types });
 * await tasks.enqueue({ type: 'email-send', payload: { to: 'c-1' } });
 * await redis.bus.publish({ subject: 'shop.orders.placed', payload: { order: 'o-1' } });
 */
export async function openRedis(
  target: string | RedisClient,
  options: RedisOptions = {},
): Promise<RedisEngine> {
  const { observer, clock, keyPrefix } = options;
  const connection = await connectRedis(target, options);
  const risks = await readRedisRisks(connection);
  const warn = (warning: string): void => warnOfRisks(risks, observer, warning);
  // A server that does not reveal its settings counts as durable.
  const durable = risks?.some(({ loses }) => loses === 'all') !== true;

  /** ioredis adds the prefix of a client to declared keys only, and BullMQ rejects it. */
  function failIfPrefixed(instead: string): void {
    if ((connection.client.options.keyPrefix ?? '') === '') return;
    const text = `the keyPrefix of the client does not apply to keys inside scripts: use ${instead} instead`;
    throw new MillraceError('CONFIG_INVALID', text, { details: { field: 'keyPrefix' } });
  }

  return lazyRoles<RedisRoles>(
    {
      subscriptions() {
        warn('Redis may lose checkpoints');
        return redisSubscriptionStorage(connection, { durable });
      },
      snapshots: () => redisSnapshots(connection),
      keyClaims: () => redisKeyClaims(connection),
      readModelVersions: () => redisReadModelVersions(connection),
      readModels() {
        warn('Redis may lose documents of events that a checkpoint has passed');
        return redisReadModels(connection, { documents: options.documents, durable });
      },
      sagas: () => redisSagaIndex(connection),
      leases: () => redisLeases(connection),
      bus() {
        failIfPrefixed('the option keyPrefix');
        warn('Redis may lose confirmed messages');
        return createBus(redisBusEngine(connection.forRole('BUS'), { clock, keyPrefix }), options);
      },
      tasks() {
        failIfPrefixed('the option keyPrefix');
        warn('Redis may lose confirmed jobs');
        const beatUrl = typeof target === 'string' ? target : undefined;
        const { root } = options;
        const tasks = connection.forRole('TASKS');
        return redisTaskEngine(tasks, { clock, keyPrefix, root, beatUrl });
      },
      keys: () => redisKeyStore(connection.forRole()),
      breakers: () => redisBreakerStore(connection, options.breakersKey),
      mirror: () => redisMirror(connection),
      queue() {
        failIfPrefixed('a prefix in the name of the queue');
        return bullmqWorkQueue(connection.forRole(), options);
      },
    },
    { close: async () => connection[Symbol.asyncDispose](), closedError: redisClosed },
  );
}
