// What the parts of the Redis engine of tasks share, and what is known of types between two calls.

import { redoSubject } from '../../bus/dead-letter.ts';
import { busLimits } from '../../bus/bus-limits.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { createAppender } from './redis-bus-append.ts';
import type { BusGroups } from './redis-bus-groups.ts';
import type { BusRegistry } from './redis-bus-registry.ts';
import type { BusWakes } from './redis-bus-wake.ts';
import type { TaskCalls } from './redis-task-calls.ts';
import type { TaskHands } from './redis-task-hands.ts';
import type { KeptTasks } from './redis-task-kept.ts';
import type { TaskSpace, TypePlace } from './redis-task-space.ts';

export interface RedisTaskContext {
  readonly calls: TaskCalls;
  readonly space: TaskSpace;
  readonly registry: BusRegistry;
  readonly groups: BusGroups;
  readonly wakes: BusWakes;
  readonly append: ReturnType<typeof createAppender>;
  readonly clock: Clock;
  /** Undefined on a cluster. */
  readonly hands: TaskHands | undefined;
  readonly kept: KeptTasks;
}

/** Streams are found by patterns, and the group of the workers is there, before the first job is. */
async function registerType(context: RedisTaskContext, place: TypePlace): Promise<void> {
  const { calls, space, registry, groups } = context;
  const { type, queue, progress, terminal, workersGroup } = place;
  await calls.ask((client) => client.sadd(space.types, type));
  await registry.register([queue.subject, progress.subject, terminal.subject]);
  await groups.ensure({
    name: workersGroup,
    filters: [queue.subject, redoSubject(workersGroup)],
    start: 'start',
    leaseMs: busLimits.leaseMsDefault,
    maxAckPending: busLimits.maxAckPendingDefault,
  });
}

/** Runs a script that answers nothing while its type or stream is unknown. */
export async function runRegistered<T>(
  context: RedisTaskContext,
  place: TypePlace,
  run: (isRegistered: boolean) => Promise<T | null>,
): Promise<T> {
  const answer = await run(false);
  if (answer !== null) return answer;
  await registerType(context, place);
  const second = await run(true);
  // Somebody may have deleted the stream in between, and its name.
  await context.registry.register([place.queue.subject]);
  return second as T;
}
