// The processes of a deployment. Each one announces itself where the leases are, and disappears with its lease.

import { hostname } from 'node:os';
import { randomUUID } from 'node:crypto';
import { buildSubscriptionName } from '../contracts/subscription-name.ts';
import type { Clock } from '../foundation/clock.ts';
import type { Observer } from '../foundation/observer.ts';
import { parseStored } from '../foundation/parse-json.ts';
import { sweepLoop } from '../loops/sweep-loop.ts';
import type { LeaseStore } from '../subscriptions/subscription-storage.ts';
import type { WorkerInfo } from '../tasks/tasks.ts';
import type { PlatformRole } from './config/platform-role.ts';

export interface ProcessFacts {
  /** Unique per process start; the owner of the leases of the process. */
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** The version of Node.js. */
  readonly node: string;
  readonly version?: string | undefined;
  readonly roles: readonly PlatformRole[];
  readonly startedAt: string;
  /** How long it counts as running without a heartbeat. */
  readonly leaseMs: number;
}

/** A process with a platform, or a worker that only claims jobs and says as much as it wants. */
export interface RunningProcess extends Partial<Omit<ProcessFacts, 'id' | 'leaseMs' | 'roles'>> {
  readonly id: string;
  readonly roles: readonly PlatformRole[];
  /** When its last heartbeat arrived. */
  readonly heardAt?: string | undefined;
  /** The types of the jobs that it runs. */
  readonly taskTypes?: readonly string[] | undefined;
  /** The process that lists them. */
  readonly isThis: boolean;
}

/** Not a subscription: the list of live workers under this name is that of the processes. */
const presence = buildSubscriptionName('millrace', 'processes', 1);

export function factsOfProcess(
  given: Pick<ProcessFacts, 'leaseMs' | 'roles' | 'version'>,
  clock: Clock,
): ProcessFacts {
  const host = hostname();
  const { pid } = process;
  return {
    id: `${host}-${pid}-${randomUUID().slice(0, 8)}`,
    host,
    pid,
    node: process.versions.node,
    startedAt: new Date(clock.now() - process.uptime() * 1_000).toISOString(),
    ...given,
  };
}

export function announceProcess(
  leases: LeaseStore,
  facts: ProcessFacts,
  { clock, observer }: { readonly clock: Clock; readonly observer: Observer },
): AsyncDisposable {
  const text = JSON.stringify(facts);
  const { leaseMs } = facts;
  const beating = sweepLoop(() => leases.announce(presence, text, leaseMs), {
    everyMs: Math.max(1, Math.floor(leaseMs / 3)),
    clock,
    onFailure: (err) => observer.log?.warn({ err }, 'process could not announce itself'),
  });
  return {
    async [Symbol.asyncDispose]() {
      await beating[Symbol.asyncDispose]();
      try {
        await leases.leave(presence, text);
      } catch (err) {
        observer.log?.warn({ err }, 'process could not deregister');
      }
    },
  };
}

/** All live processes, and the task workers that are part of none of them: this one, then the oldest first. */
export async function runningProcesses(
  leases: LeaseStore,
  workers: readonly WorkerInfo[],
  { self, clock }: { readonly self: string; readonly clock: Clock },
): Promise<readonly RunningProcess[]> {
  const nowMs = clock.now();
  const announced = (await leases.workers(presence)).map(({ worker, remainingMs }) => {
    const { leaseMs, ...facts } = parseStored(worker) as ProcessFacts;
    const heardAt = new Date(nowMs - (leaseMs - remainingMs)).toISOString();
    return { ...facts, heardAt, isThis: facts.id === self };
  });
  const alive = workers.filter(({ isAlive }) => isAlive).map(factsOfWorker);
  const processes = announced.map((each): RunningProcess => {
    const own = alive.filter(({ host, pid }) => host === each.host && pid === each.pid);
    const taskTypes = [...new Set(own.flatMap(({ taskTypes: types = [] }) => types))];
    return own.length === 0 ? each : { ...each, taskTypes };
  });
  const others = alive.filter(
    ({ host, pid }) => !announced.some((each) => each.host === host && each.pid === pid),
  );
  return [...processes, ...others].toSorted((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1));
}

/** Workers in other languages send any JSON about themselves. */
function factsOfWorker({ worker, about }: WorkerInfo): RunningProcess {
  const { host, pid, startedAt, types } = { ...(about as Readonly<Record<string, unknown>>) };
  return {
    id: worker,
    roles: ['workers'],
    isThis: false,
    ...(typeof host === 'string' ? { host } : {}),
    ...(typeof pid === 'number' ? { pid } : {}),
    ...(typeof startedAt === 'string' ? { startedAt } : {}),
    ...(Array.isArray(types) ? { taskTypes: types.map(String) } : {}),
  };
}

function orderOf({ isThis, startedAt = 'unknown', id }: RunningProcess): string {
  return `${isThis ? 0 : 1} ${startedAt} ${id}`;
}
