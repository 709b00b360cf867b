// One NATS JetStream, 2.9 or newer, as bus, tasks and leases: all of them use one connection.

import type { NatsConnection as Driver } from '@nats-io/transport-node';
import type { Bus } from '../../bus/bus.ts';
import { createBus, type BusOptions } from '../../bus/create-bus.ts';
import { MillraceError } from '../../foundation/error.ts';
import { lazyRoles } from '../../foundation/lazy-roles.ts';
import { silentObserver } from '../../foundation/observer.ts';
import type { LeaseStore } from '../../subscriptions/subscription-storage.ts';
import type { TaskEngine } from '../../tasks/task-engine.ts';
import { createBusLog, natsBusEngine } from './bus/bus.ts';
import { checkNames, createBusLayout } from './bus/layout.ts';
import { createBucket } from './connection/bucket.ts';
import { openJetStreamWire } from './connection/jetstream-wire.ts';
import { natsLeases } from './leases/leases.ts';
import { natsTaskEngine } from './tasks/engine.ts';

export interface NatsOptions extends BusOptions {
  /** How long the server may take to reply. Default: 5 s. */
  readonly timeoutMs?: number | undefined;
  /** Prefix of all subjects, streams and buckets, for a second system on one NATS: `shop` stores `shop.gbe.tasks.…`. */
  readonly prefix?: string | undefined;
  /** The name of the bus stream; the second stream is `<name>-system`. Default: `millrace-bus`, or `<prefix>-bus`. */
  readonly stream?: string | undefined;
  /** The bucket of the jobs. Default: `millrace-tasks`, or `<prefix>-tasks`. */
  readonly tasksBucket?: string | undefined;
  /** The bucket of the leases. Default: `millrace-leases`, or `<prefix>-leases`. */
  readonly leasesBucket?: string | undefined;
  /**
   * First tokens of subjects that exist after the first call of the bus, such as `gbe`, for producers that publish to
   * NATS directly. The bus adds others when it first sees them.
   */
  readonly roots?: readonly string[] | undefined;
  /** Replicas of the streams and buckets that are created. Default: 1. */
  readonly replicas?: number | undefined;
  /** The first token of the subjects of tasks. Default: `gbe`. */
  readonly root?: string | undefined;
}

interface NatsRoles {
  readonly bus: Bus;
  /** For `createTasks`. */
  readonly tasks: TaskEngine;
  /** For the `leases` of `startSubscription`. */
  readonly leases: LeaseStore;
}

export interface NatsEngine extends NatsRoles, AsyncDisposable {}

/**
 * Connects to NATS by URL, or uses your connection, which you close. Missing streams and buckets are created when a role
 * is first used.
 *
 * @example
 * import { openNats } from 'millrace/engines/nats';
 * import { createTasks, taskType } from 'millrace/tasks';
 *
 * await using nats = await openNats('nats://localhost:4222');
 * await nats.bus.publish({ subject: 'gbe.events.system.health', payload: { ok: true } });
 * await using tasks = createTasks(nats.tasks, { types: [taskType('email-send')] });
 * await tasks.enqueue({ type: 'email-send', payload: { to: 'c-1' } });
 */
export async function openNats(
  target: string | Driver,
  options: NatsOptions = {},
): Promise<NatsEngine> {
  const { observer = silentObserver, clock, prefix, root, roots, replicas = 1 } = options;
  const front = prefix ?? 'millrace';
  const {
    stream = `${front}-bus`,
    tasksBucket = `${front}-tasks`,
    leasesBucket = `${front}-leases`,
  } = options;
  checkNames({ prefix, stream, tasksBucket, leasesBucket });
  const wire = await openJetStreamWire(target, { observer, timeoutMs: options.timeoutMs });
  try {
    await wire.request('INFO');
  } catch (error) {
    await wire[Symbol.asyncDispose]();
    throw error;
  }
  const parts = { wire, layout: createBusLayout({ stream, prefix }), observer };
  const log = createBusLog(parts, replicas);
  const url = typeof target === 'string' ? target : undefined;
  return lazyRoles<NatsRoles>(
    {
      bus: () => createBus(natsBusEngine(log, roots), options),
      tasks: () => natsTaskEngine(log, { clock, root, bucket: tasksBucket, replicas, url }),
      leases: () => natsLeases(createBucket(wire, { name: leasesBucket, replicas, observer })),
    },
    {
      close: async () => wire[Symbol.asyncDispose](),
      closedError: () => new MillraceError('STORE_CLOSED', 'the engine is closed'),
    },
  );
}
