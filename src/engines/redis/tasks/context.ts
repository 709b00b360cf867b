// The dependencies and scripts that all parts of the Redis task engine share, and the registration of task types.

import { redoSubject } from '../../../bus/dead-letter.ts';
import { busLimits } from '../../../bus/bus-limits.ts';
import type { Clock } from '../../../foundation/clock.ts';
import type { createAppender } from '../bus/append.ts';
import type { BusGroups } from '../bus/groups.ts';
import type { BusRegistry } from '../bus/registry.ts';
import type { BusWakes } from '../bus/wakes.ts';
import type { RedisConnection } from '../connection/connection.ts';
import { loadScripts } from '../connection/script.ts';
import type { TaskKeyspace, TypeKeys } from './keyspace.ts';
import type { UndeliveredTasks } from './undelivered.ts';

export interface RedisTaskContext {
  readonly redis: RedisConnection;
  readonly keyspace: TaskKeyspace;
  readonly registry: BusRegistry;
  readonly groups: BusGroups;
  readonly wakes: BusWakes;
  readonly append: ReturnType<typeof createAppender>;
  readonly clock: Clock;
  readonly undelivered: UndeliveredTasks;
}

/** One script changes jobs together with their order and their signals. */
export const taskScripts = loadScripts(new URL('scripts/', import.meta.url), [
  'enqueue',
  'changeAndClaim',
  'readSignalIds',
  'writeSignalIds',
  'restoreSignals',
  'overdue',
  'jobsOfWorkers',
  'remove',
  'tidy',
  'read',
  'readRecords',
  'list',
  'setMode',
  'counts',
]);

/** Registers the streams, which readers find by pattern, and creates the workers' group before the first job. */
async function registerType(context: RedisTaskContext, typeKeys: TypeKeys): Promise<void> {
  const { redis, keyspace, registry, groups } = context;
  const { type, queue, progress, terminal, workersGroup } = typeKeys;
  await redis.ask((client) => client.sadd(keyspace.types, type));
  await registry.register([queue.subject, progress.subject, terminal.subject]);
  await groups.ensure({
    name: workersGroup,
    filters: [queue.subject, redoSubject(workersGroup)],
    from: 'start',
    leaseMs: busLimits.leaseMsDefault,
    maxAckPending: busLimits.maxAckPendingDefault,
  });
}

/** Runs a script. If the script returns null, registers the type and its streams and runs the script again. */
export async function runRegistered<T>(
  context: RedisTaskContext,
  typeKeys: TypeKeys,
  run: (isRegistered: boolean) => Promise<T | null>,
): Promise<T> {
  const reply = await run(false);
  if (reply !== null) return reply;
  await registerType(context, typeKeys);
  const second = await run(true);
  // Another process may have deleted and deregistered the stream between the two calls.
  await context.registry.register([typeKeys.queue.subject]);
  return second as T;
}
