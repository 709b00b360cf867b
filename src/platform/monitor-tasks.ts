// Whoever must hear of every job's end: a durable group on the terminal streams, which goes on where it was.

import type { Bus, BusGroup, GroupInfo } from '../bus/bus.ts';
import { consumerGroups, subjects } from '../contracts/subjects.ts';
import { MillraceError } from '../foundation/error.ts';

export interface MonitorTasksOptions {
  /** Who reads together; another name is another reader, from the first end that is kept. Default: `monitors`. */
  readonly group?: string | undefined;
  /** Ends when nothing is left, instead of waiting for more. */
  readonly isOnce?: boolean | undefined;
  readonly signal: AbortSignal;
}

/** One end of a job, as the stream has it. */
export interface MonitoredEnd {
  readonly id: string;
  readonly at: Date;
  readonly tenant: string | undefined;
  /** From 1 on: more, when somebody was told of it before and did not come to an end with it. */
  readonly deliveryCount: number;
  /** `taskId`, `type`, `state`, `failures`, `endedAt`, and `error` where there is one. */
  readonly signal: Readonly<Record<string, unknown>>;
}

const pattern: string = subjects.tasks.everyType.terminal;
const batch = 100;
/** Readers that break off have looked at it, too: it shall not end as a dead letter by that. */
const maxDeliveries = 1_000;

/**
 * The ends of all jobs, of all tenants, each to one reader of the group, which is there when the promise resolves. An end is acked when the next one is
 * asked for: whoever breaks off hears of the last one again.
 *
 * @example
 * import { createPlatform, monitorTasks } from 'millrace/platform';
 *
 * await using platform = await createPlatform();
 * const signal = AbortSignal.timeout(60_000);
 * const ends = await monitorTasks(await platform.taskBus(), { group: 'pager', signal });
 * for await (const { signal: told } of ends) console.log(told['taskId'], told['state']);
 */
export async function monitorTasks(
  bus: Pick<Bus, 'group'>,
  { group: name = consumerGroups.monitors, isOnce = false, signal }: MonitorTasksOptions,
): Promise<AsyncIterable<MonitoredEnd>> {
  // It would take from the archive what it has not got yet.
  if (name === consumerGroups.archiver) throw notOfMonitors(name);
  const group = await bus.group({ group: name, subject: pattern, maxDeliveries });
  return endsOf(group, { isOnce, signal });
}

async function* endsOf(
  group: BusGroup,
  { isOnce, signal }: { readonly isOnce: boolean; readonly signal: AbortSignal },
): AsyncGenerator<MonitoredEnd> {
  while (!signal.aborted) {
    const waiting = [
      ...(await group.fetch({ limit: batch, signal, ...(isOnce ? { waitMs: 0 } : {}) })),
    ];
    if (waiting.length === 0 && isOnce) return;
    try {
      for (let next = waiting[0]; next !== undefined && !signal.aborted; next = waiting[0]) {
        const { id, time: at, tenant, deliveryCount, payload } = next;
        yield { id, at, tenant, deliveryCount, signal: payload as MonitoredEnd['signal'] };
        await next.ack();
        waiting.shift();
      }
    } finally {
      // Broken off: others need not wait for the leases to run out.
      await Promise.allSettled(waiting.map((left) => left.nack({ reason: 'its reader went' })));
    }
  }
}

/**
 * The groups that read the streams of tasks, and how far each is behind.
 *
 * @example
 * import { createPlatform, taskGroups } from 'millrace/platform';
 *
 * await using platform = await createPlatform();
 * for (const { name, lag } of await taskGroups(await platform.taskBus())) console.log(name, lag);
 */
export async function taskGroups(bus: Pick<Bus, 'groups'>): Promise<readonly GroupInfo[]> {
  const front = subjects.tasks.all.slice(0, -1);
  return (await bus.groups()).filter(({ subject }) => subject.startsWith(front));
}

/**
 * Deletes a group of monitors, so that it no longer holds the streams. False: there was none. A group of
 * another kind is `BUS_INVALID`.
 *
 * @example
 * import { createPlatform, forgetMonitors } from 'millrace/platform';
 *
 * await using platform = await createPlatform();
 * console.log(await forgetMonitors(await platform.taskBus(), 'pager'));
 */
export async function forgetMonitors(
  bus: Pick<Bus, 'groups' | 'deleteGroup'>,
  group: string = consumerGroups.monitors,
): Promise<boolean> {
  const there = (await bus.groups()).find(({ name }) => name === group);
  if (there === undefined) return false;
  if (there.subject === pattern && group !== consumerGroups.archiver) return bus.deleteGroup(group);
  throw notOfMonitors(group);
}

function notOfMonitors(group: string): MillraceError {
  return new MillraceError('BUS_INVALID', `the group '${group}' is none of monitors`, {
    details: { field: 'group' },
  });
}
