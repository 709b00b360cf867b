// Tasks in Redis, on one server or a cluster.

import { extname } from 'node:path';
import { systemClock } from '../../../foundation/clock.ts';
import { closedError } from '../../../foundation/rename-error.ts';
import { createTasks, type TasksOptions } from '../../../tasks/create-tasks.ts';
import type { TaskCapabilities, TaskEngine } from '../../../tasks/task-engine.ts';
import type { Tasks } from '../../../tasks/tasks.ts';
import { createAppender } from '../bus/append.ts';
import { createBusGroups } from '../bus/groups.ts';
import { createBusKeyspace } from '../bus/keyspace.ts';
import { createBusRegistry } from '../bus/registry.ts';
import { createBusWakes } from '../bus/wakes.ts';
import type { RedisClient } from '../connection/connection.ts';
import { openEngine } from '../connection/engine.ts';
import { createTaskClaims } from './claim.ts';
import type { RedisTaskContext } from './context.ts';
import { createTaskEnqueue } from './enqueue.ts';
import { createChangeAndClaim } from './change-and-claim.ts';
import { createHandOffs } from './hand-off.ts';
import { createTaskKeyspace } from './keyspace.ts';
import { createTaskMaintenance } from './maintenance.ts';
import { createTaskReads } from './read.ts';
import { createTaskSignals } from './signals.ts';
import { createUndeliveredTasks } from './undelivered.ts';

export interface RedisTasksOptions extends TasksOptions {
  /**
   * Prefix of every key, the same as that of the bus with its signals. A hash tag (`{tasks}:`) puts all keys in one
   * slot of a cluster, and every signal is then stored atomically with its job.
   */
  readonly keyPrefix?: string | undefined;
  /** Time limit of a command. Default: 5 s. A client that you pass keeps its time limit. */
  readonly timeoutMs?: number | undefined;
}

const capabilities: TaskCapabilities = {
  durable: true,
  crossProcess: true,
  atomicSignals: true,
  exactLimits: true,
  exactOrder: true,
};

/**
 * Tasks in one Redis or a Redis Cluster, by its URL or with a client of your own. Their signals are messages of the
 * bus that `redisBus` opens with the same prefix.
 *
 * @example
 * import { redisTasks } from 'millrace/adapters/redis';
 * import { taskType } from 'millrace/tasks';
 *
 * await using tasks = await redisTasks('redis://localhost:6379', { types: [taskType('email-send')] });
 * await tasks.enqueue({ type: 'email-send', payload: { to: 'c-1' } });
 */
export async function redisTasks(
  target: string | RedisClient,
  options: RedisTasksOptions = {},
): Promise<Tasks> {
  return createTasks(await redisTaskEngine(target, options), options);
}

/**
 * The engine alone, for `createTasks`.
 *
 * @example
 * import { redisTaskEngine } from 'millrace/adapters/redis';
 * import { createTasks, taskType } from 'millrace/tasks';
 *
 * const engine = await redisTaskEngine('redis://localhost:6379');
 * await using tasks = createTasks(engine, { types: [taskType('report-gen')] });
 */
export async function redisTaskEngine(
  target: string | RedisClient,
  options: Omit<RedisTasksOptions, 'types'> = {},
): Promise<TaskEngine> {
  const { clock = systemClock, keyPrefix: prefix = '', root } = options;
  return openEngine('TASKS', target, options, (redis) => {
    const { client } = redis;
    const bus = createBusKeyspace({ isCluster: client.isCluster, prefix });
    const keyspace = createTaskKeyspace(bus, root);
    const registry = createBusRegistry(redis, bus);
    const undelivered = createUndeliveredTasks();
    const handOffs = client.isCluster
      ? undefined
      : createHandOffs({ redis, keyspace, undelivered });
    const wakes = createBusWakes(client, keyspace.workerChannel, handOffs);
    const groups = createBusGroups({ redis, keyspace: bus, registry, wakes, clock });
    const append = createAppender(redis, bus, registry);
    const shared = { redis, keyspace, registry, groups, wakes, append, clock };
    const beat = typeof target === 'string' ? { url: target, keyPrefix: prefix } : undefined;
    return taskEngineOf({ ...shared, handOffs, undelivered }, beat);
  });
}

function taskEngineOf(
  context: RedisTaskContext,
  beat: { readonly url: string; readonly keyPrefix: string } | undefined,
): TaskEngine {
  const { redis, wakes, keyspace, handOffs } = context;
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
      await handOffs?.leave();
      await signals[Symbol.asyncDispose]();
      await wakes[Symbol.asyncDispose]();
      await redis[Symbol.asyncDispose]();
    },
  };
}
