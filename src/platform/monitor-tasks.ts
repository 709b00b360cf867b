// A durable consumer group that receives the terminal signal of every job, and continues where it stopped.

import type { Bus, BusGroup, GroupInfo } from '../bus/bus.ts';
import { consumerGroups, subjects } from '../contracts/subjects.ts';
import { MillraceError } from '../foundation/error.ts';

export interface MonitorTasksOptions {
  /** Readers of one group share the terminal signals; a new group starts with the oldest one. Default: `monitors`. */
  readonly group?: string | undefined;
  /** Stops when all terminal signals are read, instead of waiting for more. */
  readonly isOnce?: boolean | undefined;
  readonly signal: AbortSignal;
}

/** The terminal signal of a job, from the stream. */
export interface MonitoredEnd {
  readonly id: string;
  readonly at: Date;
  readonly tenant: string | undefined;
  /** Counts from 1; higher if an earlier reader did not acknowledge the signal. */
  readonly deliveryCount: number;
  /** `taskId`, `type`, `state`, `failures`, `endedAt`, and `error` if the job failed. */
  readonly signal: Readonly<Record<string, unknown>>;
}

const pattern: string = subjects.tasks.everyType.terminal;
const batch = 100;
/** High, because a reader that stops early must not turn a signal into a dead letter. */
const maxDeliveries = 1_000;

/**
 * The terminal signals of all jobs of all tenants, each to one reader of the group. The group exists when the promise
 * resolves. A signal is acknowledged when the next one is requested: a reader that stops gets the last one again.
 *
 * @example
 * import { createPlatform, monitorTasks } from 'millrace/platform';
 *
 * await using platform = await createPlatform();
 * const signal = AbortSignal.timeout(60_000);
 * const signals = await monitorTasks(await platform.taskBus(), { group: 'pager', signal });
 * for await (const { signal: job } of signals) console.log(job['taskId'], job['state']);
 */
export async function monitorTasks(
  bus: Pick<Bus, 'group'>,
  { group: name = consumerGroups.monitors, isOnce = false, signal }: MonitorTasksOptions,
): Promise<AsyncIterable<MonitoredEnd>> {
  // A monitor in the group of the archiver would remove messages that are not archived yet.
  if (name === consumerGroups.archiver) throw notOfMonitors(name);
  const group = await bus.group({ group: name, subject: pattern, maxDeliveries });
  return terminalSignals(group, { isOnce, signal });
}

async function* terminalSignals(
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
      // A reader stopped: release its leases, so that others need not wait for them to expire.
      await Promise.allSettled(waiting.map((left) => left.nack({ reason: 'the reader stopped' })));
    }
  }
}

/**
 * The groups that read the streams of tasks, with their lags.
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
 * Deletes a group of monitors, so that it no longer holds back trims. False: it did not exist. Another kind of group
 * is rejected with `BUS_INVALID`.
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
  const existing = (await bus.groups()).find(({ name }) => name === group);
  if (existing === undefined) return false;
  if (existing.subject === pattern && group !== consumerGroups.archiver)
    return bus.deleteGroup(group);
  throw notOfMonitors(group);
}

function notOfMonitors(group: string): MillraceError {
  return new MillraceError('BUS_INVALID', `'${group}' is not a group of monitors`, {
    details: { field: 'group' },
  });
}
