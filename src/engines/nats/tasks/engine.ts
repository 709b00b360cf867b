// Tasks on NATS JetStream, 2.9 or newer: jobs in a key-value bucket, their signals in the streams of the bus. Each process
// follows the bucket, chooses jobs from its index, and wins them by compare-and-set.

import { randomUUID } from 'node:crypto';
import type { NatsConnection as Driver } from '@nats-io/transport-node';
import { systemClock } from '../../../foundation/clock.ts';
import { silentObserver } from '../../../foundation/observer.ts';
import { closedError } from '../../../foundation/rename-error.ts';
import { createSubjects } from '../../../contracts/subjects.ts';
import { createWaiters } from '../../../foundation/async/waiters.ts';
import { claimUntilFound } from '../../../tasks/claim-until-found.ts';
import { createTasks, type TasksOptions } from '../../../tasks/create-tasks.ts';
import type {
  ClaimRequest,
  ClaimWait,
  TaskCapabilities,
  TaskEngine,
} from '../../../tasks/task-engine.ts';
import type { StoredTask } from '../../../tasks/task-job.ts';
import type { Tasks } from '../../../tasks/tasks.ts';
import { createAppend } from '../bus/append.ts';
import { busStreamOf, checkNames, createBusLayout } from '../bus/layout.ts';
import { createBusReader } from '../bus/read.ts';
import { createBusStreams } from '../bus/streams.ts';
import { openJetStreamWire } from '../connection/jetstream-wire.ts';
import type { NatsConnectionOptions } from '../connection/connection.ts';
import { asTasks, createTaskBucket } from './bucket.ts';
import { createTaskChanges } from './changes.ts';
import { createClaims } from './claims.ts';
import { createEnqueue } from './enqueue.ts';
import { createTaskIndex } from './task-index.ts';
import { taskKeys } from './keys.ts';
import { createTaskQueries } from './queries.ts';
import { createTaskRows } from './rows.ts';
import { createTaskSignals } from './signals.ts';
import { createTaskSlots } from './slots.ts';
import { createTaskUpkeep } from './upkeep.ts';
import { createTaskWatch } from './watch.ts';
import { createWorkersGroups } from './workers.ts';

export interface NatsTaskEngineOptions
  extends Omit<TasksOptions, 'types'>, Pick<NatsConnectionOptions, 'timeoutMs'> {
  /** The prefix of the bus that the signals go to: `shop` uses the bucket `shop-tasks`. */
  readonly prefix?: string | undefined;
  /** The bucket of the jobs. Default: `millrace-tasks`, or `<prefix>-tasks`. A missing bucket is created. */
  readonly bucket?: string | undefined;
  /** The stream of the bus, as in `natsBus`. */
  readonly stream?: string | undefined;
  /** Replicas of the bucket and streams that are created. Default: 1. */
  readonly replicas?: number | undefined;
}

export interface NatsTasksOptions extends NatsTaskEngineOptions, Pick<TasksOptions, 'types'> {}

export const natsTaskCapabilities: TaskCapabilities = {
  durable: true,
  crossProcess: true,
  // Bucket and streams have no common transaction: jobs are written first, and the sweeper publishes missing signals.
  atomicSignals: false,
  // Rate limits and slots of concurrency keys use compare-and-set too.
  exactLimits: true,
  // Each process chooses from its local index, and leaves jobs to their preferred workers.
  exactOrder: false,
};

/**
 * Tasks on NATS JetStream, by URL or with your connection, which you close.
 *
 * @example
 * import { natsTasks } from 'millrace/adapters/nats';
 * import { taskType } from 'millrace/tasks';
 *
 * await using tasks = await natsTasks('nats://localhost:4222', { types: [taskType('email-send')] });
 * await tasks.enqueue({ type: 'email-send', payload: { to: 'c-1' } });
 */
export async function natsTasks(
  target: string | Driver,
  options: NatsTasksOptions = {},
): Promise<Tasks> {
  return createTasks(await natsTaskEngine(target, options), options);
}

/**
 * The engine alone, for `createTasks`.
 *
 * @example
 * import { natsTaskEngine } from 'millrace/adapters/nats';
 * import { createTasks, taskType } from 'millrace/tasks';
 *
 * const engine = await natsTaskEngine('nats://localhost:4222', { replicas: 3 });
 * await using tasks = createTasks(engine, { types: [taskType('email-send')] });
 */
export async function natsTaskEngine(
  target: string | Driver,
  options: NatsTaskEngineOptions = {},
): Promise<TaskEngine> {
  const { clock = systemClock, observer = silentObserver, prefix, replicas = 1 } = options;
  const { bucket: name = `${prefix ?? 'millrace'}-tasks`, stream = busStreamOf(prefix) } = options;
  checkNames('tasks', { prefix, bucket: name, stream });
  const { timeoutMs } = options;
  const wire = await asTasks(() => openJetStreamWire(target, { observer, timeoutMs }));
  const index = createTaskIndex();
  const waiters = createWaiters();
  const processId = randomUUID();
  const bucket = createTaskBucket(wire, {
    bucket: name,
    replicas,
    observer,
    onRecreated() {
      index.clear();
      watch.restart();
    },
  });
  try {
    await asTasks(() => bucket.streams.ensure(''));
  } catch (error) {
    await wire[Symbol.asyncDispose]();
    throw error;
  }
  const wake = (): void => waiters.wakeAll();
  const watch = createTaskWatch(wire, { bucket, index, observer, processId, onChange: wake });
  const sync = (): Promise<void> => watch.sync();
  const rows = createTaskRows(bucket, index);
  const layout = createBusLayout({ stream, prefix });
  const parts = { wire, layout, observer };
  const streams = createBusStreams(parts, { replicas });
  const append = createAppend(parts, streams);
  const reader = createBusReader(parts, streams);
  const signals = createTaskSignals(parts, { streams, append, reader });
  const subjects = createSubjects<string>({ root: options.root });
  const shared = { parts, streams, append, reader, index, subjects, sync };
  const ackClaimed = createWorkersGroups(shared);
  const slots = createTaskSlots(rows, index);
  const enqueue = createEnqueue({ rows, index, signals });
  const change = createTaskChanges({ rows, index, signals });
  const claimNow = createClaims({ rows, index, slots, sync });
  const queries = createTaskQueries({ rows, index, sync });
  const upkeep = createTaskUpkeep({ bucket, rows, index, slots });
  let isClosed = false;
  let isLoaded = false;

  async function call<T>(work: () => Promise<T>): Promise<T> {
    if (isClosed) throw closedError('TASKS');
    return asTasks(async () => {
      if (!isLoaded) {
        await sync();
        isLoaded = true;
      }
      return work();
    });
  }

  const put = (key: string, data: string) => rows.writeKeys([{ key, data }]);

  async function claim(request: ClaimRequest, wait: ClaimWait): Promise<readonly StoredTask[]> {
    let isSynced = false;
    return claimUntilFound(
      async (now) => {
        if (isClosed) throw closedError('TASKS');
        const found = await claimNow(now);
        if (found.claimed.length > 0 || isSynced) return found;
        // The index may be outdated.
        isSynced = true;
        await sync();
        return claimNow(now);
      },
      request,
      { ...wait, clock, waiters },
    );
  }

  return {
    capabilities: natsTaskCapabilities,
    beatThread:
      typeof target === 'string'
        ? {
            module: new URL(`./beat${extension}`, import.meta.url).href,
            settings: { url: target, bucket: name },
          }
        : undefined,

    enqueue: (entries, nowMs) =>
      call(async () => {
        const outcomes = await enqueue(entries, nowMs);
        wake();
        return outcomes;
      }),
    changeAndClaim: (changes, request, nowMs) =>
      call(async () => {
        const changed = change(changes, nowMs);
        if (request === undefined) {
          const outcomes = await changed;
          wake();
          return { outcomes, claimed: [] };
        }
        const claimOnce = async (): Promise<readonly StoredTask[]> =>
          (await claimNow({ ...request, nowMs }, changed)).claimed;
        const first = await claimOnce();
        const outcomes = await changed;
        wake();
        if (first.length > 0) return { outcomes, claimed: first };
        // The changes may have released jobs, and other processes may have enqueued some.
        const second = await claimOnce();
        if (second.length > 0) return { outcomes, claimed: second };
        await sync();
        return { outcomes, claimed: await claimOnce() };
      }),
    claim: (request, wait) => call(() => claim(request, wait)),

    get: (refs) => call(() => queries.get(refs)),
    heads: (refs) => call(() => queries.heads(refs)),
    list: (filter, page) => call(() => queries.list(filter, page)),
    counts: () => call(() => queries.counts()),
    overdue: (request) => call(() => queries.overdue(request)),
    dueScheduled: (request) => call(() => queries.dueScheduled(request)),
    endedBefore: (request) => call(() => queries.endedBefore(request)),
    remove: (refs) => call(() => upkeep.remove(refs)),
    tidy: (nowMs) =>
      call(async () => {
        await upkeep.tidy(nowMs);
        await ackClaimed();
      }),

    beat: ({ worker, aliveUntilMs, about }) =>
      call(async () => {
        await put(taskKeys.beat(worker), String(aliveUntilMs));
        if (about !== undefined && about !== index.aboutOf(worker)) {
          await put(taskKeys.about(worker), about);
        }
      }),
    workers: () =>
      call(async () => {
        await sync();
        return index.beats();
      }),
    forgetWorker: (worker) =>
      call(async () => {
        await put(taskKeys.beat(worker), '');
        if (index.aboutOf(worker) !== undefined) await put(taskKeys.about(worker), '');
      }),

    setMode: (type, mode) =>
      call(async () => {
        await put(taskKeys.mode(type), mode === 'open' ? '' : mode);
        wake();
      }),
    modes: () =>
      call(async () => {
        await sync();
        return [...index.modes].map(([type, { value }]) => ({ type, mode: value }));
      }),

    repair: (missing, nowMs) => call(() => signals.repair(missing, nowMs)),

    async [Symbol.asyncDispose]() {
      if (isClosed) return;
      isClosed = true;
      wake();
      await watch[Symbol.asyncDispose]();
      await wire[Symbol.asyncDispose]();
    },
  };
}

/** The heartbeat thread imports a file of the same kind, compiled or not. */
const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
