// Tasks in Redis, on one server or a cluster.

import { extname } from 'node:path';
import { systemClock, type Clock } from '../../../foundation/clock.ts';
import { closedError } from '../../../foundation/error.ts';
import type { TaskCapabilities, TaskEngine } from '../../../tasks/task-engine.ts';
import { createAppender } from '../bus/append.ts';
import { createBusGroups } from '../bus/groups.ts';
import { createBusKeyspace } from '../bus/keyspace.ts';
import { createBusRegistry } from '../bus/registry.ts';
import { createBusWakes } from '../bus/wakes.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisBeatSettings } from './beat.ts';
import { createTaskClaims } from './claim.ts';
import type { RedisTaskContext } from './context.ts';
import { createTaskEnqueue } from './enqueue.ts';
import { createChangeAndClaim } from './change-and-claim.ts';
import { createTaskKeyspace } from './keyspace.ts';
import { createTaskMaintenance } from './maintenance.ts';
import { createTaskReads } from './read.ts';
import { createTaskSignals } from './signals.ts';
import { createUndeliveredTasks } from './undelivered.ts';

interface RedisTasksOptions {
  readonly clock?: Clock | undefined;
  readonly keyPrefix?: string | undefined;
  readonly root?: string | undefined;
  /** The heartbeat thread opens a separate connection. Undefined: no thread, because a client has no URL. */
  readonly beatUrl?: string | undefined;
}

const capabilities: TaskCapabilities = {
  durable: true,
  crossProcess: true,
  atomicSignals: true,
  exactLimits: true,
  exactOrder: true,
};

/** The signals of its jobs are messages of the bus with the same prefix. */
export function redisTaskEngine(
  redis: RedisConnection,
  { clock = systemClock, keyPrefix = '', root, beatUrl }: RedisTasksOptions = {},
): TaskEngine {
  const { client } = redis;
  const bus = createBusKeyspace({ isCluster: client.isCluster, prefix: keyPrefix });
  const keyspace = createTaskKeyspace(bus, root);
  const registry = createBusRegistry(redis, bus);
  const wakes = createBusWakes(client, keyspace.workerChannel);
  const groups = createBusGroups({ redis, keyspace: bus, registry, wakes, clock });
  const append = createAppender(redis, bus, registry);
  const shared = { redis, keyspace, registry, groups, wakes, append, clock };
  const beat = beatUrl === undefined ? undefined : { url: beatUrl, keyPrefix };
  return taskEngineOf({ ...shared, undelivered: createUndeliveredTasks() }, beat);
}

function taskEngineOf(context: RedisTaskContext, beat: RedisBeatSettings | undefined): TaskEngine {
  const { redis, wakes, keyspace } = context;
  let isClosed = false;
  const failIfClosed = (): void => {
    if (isClosed) throw closedError('TASKS');
  };
  const signals = createTaskSignals(context);
  const changeAndClaimOfType = createChangeAndClaim(context, signals.publishToOtherSlots);
  const claims = createTaskClaims(context, changeAndClaimOfType, failIfClosed);
  const reads = createTaskReads(context);
  const module = new URL(`beat${extname(import.meta.url)}`, import.meta.url);
  return {
    // On a cluster, signals in other slots are stored after the record.
    capabilities: { ...capabilities, atomicSignals: keyspace.bus.isOneDomain },
    beatThread: beat === undefined ? undefined : { module: module.href, settings: beat },
    callsAtOnce: 2,
    enqueue: createTaskEnqueue(context, (type) => claims.onNewWork(type)),
    changeAndClaim: claims.changeAndClaim,
    claim: claims.claim,
    get: reads.get,
    heads: reads.heads,
    list: reads.list,
    counts: reads.counts,
    ...createTaskMaintenance(context, reads),
    repair: (lost, nowMs) => signals.repair(lost, nowMs),
    async [Symbol.asyncDispose]() {
      if (isClosed) return;
      isClosed = true;
      claims.wakeAll();
      await signals[Symbol.asyncDispose]();
      await wakes[Symbol.asyncDispose]();
      await redis[Symbol.asyncDispose]();
    },
  };
}
