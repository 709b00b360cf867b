// Tasks in Redis, on one server or a cluster.

import { systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { createTasks, type TasksOptions } from '../../tasks/create-tasks.ts';
import type { TaskCapabilities, TaskEngine } from '../../tasks/task-engine.ts';
import type { Tasks } from '../../tasks/tasks.ts';
import { createAppender } from './redis-bus-append.ts';
import { createBusGroups } from './redis-bus-groups.ts';
import { createBusRegistry } from './redis-bus-registry.ts';
import { createBusSpace } from './redis-bus-space.ts';
import { createBusWakes } from './redis-bus-wake.ts';
import { connectRedis, type RedisClient, type RedisConnection } from './redis-connection.ts';
import { readRedisRisks } from './redis-risks.ts';
import { createTaskCalls, tasksError } from './redis-task-calls.ts';
import { createTaskClaims } from './redis-task-claim.ts';
import type { RedisTaskContext } from './redis-task-context.ts';
import { createTaskEnqueue } from './redis-task-enqueue.ts';
import { createExchangeType } from './redis-task-exchange.ts';
import { createTaskHands } from './redis-task-hands.ts';
import { createKeptTasks } from './redis-task-kept.ts';
import { newsSuffix } from './redis-task-lua.ts';
import { createTaskReads } from './redis-task-read.ts';
import { createTaskSpace } from './redis-task-space.ts';
import { createTaskTell } from './redis-task-tell.ts';
import { createTaskUpkeep } from './redis-task-upkeep.ts';

export interface RedisTasksOptions extends TasksOptions {
  /**
   * Before every key, as of the bus that its signals are on. With a hash tag (`{tasks}:`) all of it lies in
   * one slot of a cluster, and every signal is stored in one step with its job.
   */
  readonly keyPrefix?: string | undefined;
  /** How long an answer may take. Default: 5 s. Of a client of your own, what it is set to counts. */
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
 * Tasks in one Redis or a Redis Cluster, by its URL or with a client of your own; their signals are on the
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
  const { observer, clock = systemClock, timeoutMs, keyPrefix: prefix = '', root } = options;
  if (typeof target !== 'string' && (target.options.keyPrefix ?? '') !== '') {
    const text =
      'the client puts a prefix before keys, but not before those in scripts: give keyPrefix to the tasks';
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
      observer?.log?.warn({ settings }, 'Redis may lose jobs that it has confirmed');
    }
    const calls = createTaskCalls(connection);
    const bus = createBusSpace({ isCluster: connection.client.isCluster, prefix });
    const space = createTaskSpace(bus, root);
    const registry = createBusRegistry(calls, bus);
    const kept = createKeptTasks();
    const hands = connection.client.isCluster ? undefined : createTaskHands({ calls, space, kept });
    const wakes = createBusWakes(connection.client, `${bus.channel}${newsSuffix}`, hands);
    const groups = createBusGroups({ calls, space: bus, registry, wakes, clock });
    const append = createAppender(calls, bus, registry);
    const context = { calls, space, registry, groups, wakes, append, clock, hands, kept };
    const beat = typeof target === 'string' ? { url: target, keyPrefix: prefix } : undefined;
    return taskEngineOf(context, connection, beat);
  } catch (error) {
    await connection[Symbol.asyncDispose]();
    throw tasksError(error);
  }
}

async function connect(
  target: string | RedisClient,
  options: Parameters<typeof connectRedis>[1],
): Promise<RedisConnection> {
  try {
    return await connectRedis(target, options);
  } catch (error) {
    throw tasksError(error);
  }
}

function taskEngineOf(
  context: RedisTaskContext,
  connection: AsyncDisposable,
  beat: { readonly url: string; readonly keyPrefix: string } | undefined,
): TaskEngine {
  const { wakes, space, hands } = context;
  let isClosed = false;
  const failIfClosed = (): void => {
    if (isClosed) throw new MillraceError('TASKS_CLOSED', 'the tasks were closed');
  };
  const tell = createTaskTell(context);
  const exchangeType = createExchangeType(context, tell.tellOthers);
  const claims = createTaskClaims(context, exchangeType, failIfClosed);
  const reads = createTaskReads(context);
  const module = new URL(
    import.meta.url.endsWith('.ts') ? 'redis-task-beat.ts' : 'redis-task-beat.js',
    import.meta.url,
  );
  return {
    // Of a cluster, what is told elsewhere follows the record.
    capabilities: { ...capabilities, atomicSignals: space.bus.isOneDomain },
    beatThread: beat === undefined ? undefined : { module: module.href, settings: beat },
    callsAtOnce: 2,
    enqueue: createTaskEnqueue(context, (type) => claims.hear(type)),
    exchange: claims.exchange,
    claim: claims.claim,
    get: reads.get,
    heads: reads.heads,
    list: reads.list,
    counts: reads.counts,
    ...createTaskUpkeep(context, reads),
    repair: (signals, nowMs) => tell.repair(signals, nowMs),
    async [Symbol.asyncDispose]() {
      if (isClosed) return;
      isClosed = true;
      claims.wakeAll();
      await hands?.leave();
      await tell[Symbol.asyncDispose]();
      await wakes[Symbol.asyncDispose]();
      await connection[Symbol.asyncDispose]();
    },
  };
}
