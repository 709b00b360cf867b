// Tasks on NATS JetStream, 2.9 or newer: jobs in a key-value bucket, their signals in the streams of the bus. Each process
// follows the bucket, chooses jobs from its index, and wins them by compare-and-set.

import { randomUUID } from 'node:crypto';
import { extname } from 'node:path';
import { aroundCalls } from '../../../foundation/async/around-calls.ts';
import { systemClock } from '../../../foundation/clock.ts';
import { closedError } from '../../../foundation/error.ts';
import { createSubjects } from '../../../contracts/subjects.ts';
import { createWaiters } from '../../../foundation/async/waiters.ts';
import { claimUntilFound } from '../../../tasks/claim-until-found.ts';
import type { TasksOptions } from '../../../tasks/create-tasks.ts';
import type {
  ClaimRequest,
  ClaimWait,
  TaskCapabilities,
  TaskEngine,
} from '../../../tasks/task-engine.ts';
import type { StoredTask } from '../../../tasks/task-job.ts';
import type { BusLog } from '../bus/bus.ts';
import { createBucket } from '../connection/bucket.ts';
import { withCodes } from '../connection/connection.ts';
import type { NatsBeatSettings } from './beat.ts';
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

interface NatsTaskEngineOptions extends Pick<TasksOptions, 'clock' | 'root'> {
  readonly bucket: string;
  readonly replicas: number;
  /** For the heartbeat thread, which opens a connection; undefined: no thread. */
  readonly url: string | undefined;
}

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

export function natsTaskEngine(log: BusLog, options: NatsTaskEngineOptions): TaskEngine {
  const { clock = systemClock, bucket: name, replicas, url } = options;
  const { wire, observer } = log.parts;
  const index = createTaskIndex();
  const waiters = createWaiters();
  const processId = randomUUID();
  const bucket = createBucket(wire, {
    name,
    replicas,
    observer,
    onRecreated() {
      index.clear();
      watch.restart();
    },
  });
  const wake = (): void => waiters.wakeAll();
  const watch = createTaskWatch(wire, { bucket, index, observer, processId, onChange: wake });
  const sync = (): Promise<void> => watch.sync();
  const rows = createTaskRows(bucket, index);
  const signals = createTaskSignals(log);
  const subjects = createSubjects<string>({ root: options.root });
  const ackClaimed = createWorkersGroups({ ...log, index, subjects, sync });
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
    return withCodes('TASKS', async () => {
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
      url === undefined
        ? undefined
        : {
            module: new URL(`./beat${extname(import.meta.url)}`, import.meta.url).href,
            settings: { url, bucket: name } satisfies NatsBeatSettings,
          },

    ...aroundCalls<Omit<TaskEngine, 'capabilities' | 'beatThread' | typeof Symbol.asyncDispose>>(
      {
        async enqueue(entries, nowMs) {
          const outcomes = await enqueue(entries, nowMs);
          wake();
          return outcomes;
        },
        async changeAndClaim(changes, request, nowMs) {
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
        },
        claim,
        ...queries,
        remove: (refs) => upkeep.remove(refs),
        async tidy(nowMs) {
          await upkeep.tidy(nowMs);
          await ackClaimed();
        },
        async beat({ worker, aliveUntilMs, about }) {
          await put(taskKeys.beat(worker), String(aliveUntilMs));
          if (about !== undefined && about !== index.aboutOf(worker)) {
            await put(taskKeys.about(worker), about);
          }
        },
        async workers() {
          await sync();
          return index.beats();
        },
        async forgetWorker(worker) {
          await put(taskKeys.beat(worker), '');
          if (index.aboutOf(worker) !== undefined) await put(taskKeys.about(worker), '');
        },
        async setMode(type, mode) {
          await put(taskKeys.mode(type), mode === 'open' ? '' : mode);
          wake();
        },
        async modes() {
          await sync();
          return [...index.modes].map(([type, { value }]) => ({ type, mode: value }));
        },
        repair: (missing, nowMs) => signals.repair(missing, nowMs),
      },
      call,
    ),
    async [Symbol.asyncDispose]() {
      if (isClosed) return;
      isClosed = true;
      wake();
      await watch[Symbol.asyncDispose]();
    },
  };
}
