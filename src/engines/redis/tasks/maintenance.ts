// Workers and their leases, overdue and old jobs, and the modes of types.

import type { TaskEngine, WorkerBeat } from '../../../tasks/task-engine.ts';
import type { StoredTask, TaskRef } from '../../../tasks/task-job.ts';
import { damagedField } from '../../../tasks/task-record.ts';
import { eachOf } from '../connection/engine.ts';
import { taskScripts as scripts, type RedisTaskContext } from './context.ts';
import { suffixOf } from './keyspace.ts';
import type { TaskReads } from './read.ts';

type Maintenance = Pick<
  TaskEngine,
  | 'beat'
  | 'workers'
  | 'forgetWorker'
  | 'overdue'
  | 'dueScheduled'
  | 'endedBefore'
  | 'remove'
  | 'tidy'
  | 'setMode'
  | 'modes'
>;

export function createTaskMaintenance(context: RedisTaskContext, reads: TaskReads): Maintenance {
  const { redis, keyspace, groups } = context;
  const keysOf = (type: string): string[] => {
    const { base, never } = keyspace.typeKeys(type);
    return [base, never];
  };
  const refOf = (type: string, suffix: string): TaskRef => ({ id: `${type}.${suffix}`, type });

  async function found(refs: readonly TaskRef[]): Promise<readonly StoredTask[]> {
    return (await reads.get(refs)).flatMap((task) => task ?? []);
  }

  /** On a cluster, a claim renews the lease of its worker in the slot of its type. */
  async function aliveUntil(): Promise<Map<string, number>> {
    const alive = new Map<string, number>();
    const note = (worker: string, untilMs: number): void => {
      alive.set(worker, Math.max(alive.get(worker) ?? 0, untilMs));
    };
    const beats = await redis.ask((client) => client.hgetall(keyspace.workers));
    for (const [worker, ms] of Object.entries(beats)) note(worker, Number(ms));
    if (keyspace.bus.isOneDomain) return alive;
    await eachOf(await reads.types(), async (type) => {
      const key = `${keyspace.typeKeys(type).base}:b`;
      const own = await redis.ask((client) => client.hgetall(key));
      for (const [worker, ms] of Object.entries(own)) note(worker, Number(ms));
    });
    return alive;
  }

  return {
    async beat({ worker, aliveUntilMs, about }) {
      await redis.ask((client) =>
        Promise.all([
          client.hset(keyspace.workers, worker, aliveUntilMs),
          ...(about === undefined ? [] : [client.hset(keyspace.about, worker, about)]),
        ]),
      );
    },
    async workers() {
      const [alive, abouts] = await Promise.all([
        aliveUntil(),
        redis.ask((client) => client.hgetall(keyspace.about)),
      ]);
      return [...alive].map(([worker, aliveUntilMs]): WorkerBeat => ({
        worker,
        aliveUntilMs,
        about: abouts[worker],
      }));
    },
    async forgetWorker(worker) {
      await redis.ask((client) =>
        Promise.all([client.hdel(keyspace.workers, worker), client.hdel(keyspace.about, worker)]),
      );
      if (keyspace.bus.isOneDomain) return;
      await eachOf(await reads.types(), async (type) => {
        const key = `${keyspace.typeKeys(type).base}:b`;
        await redis.ask((client) => client.hdel(key, worker));
      });
    },

    async overdue({ nowMs, limit }) {
      const types = await reads.types();
      // Read workers with jobs before leases: a worker renews its lease before it claims.
      const rows = await eachOf(types, async (type) => {
        const cells = await redis.run(scripts.overdue, keysOf(type), [nowMs, limit]);
        return [type, cells as readonly [string[], string[]]] as const;
      });
      const alive = await aliveUntil();
      const ids = new Set<string>();
      for (const [type, [late]] of rows) for (const each of late) ids.add(`${type}.${each}`);
      for (const [type, [, working]] of rows) {
        const expired = working.filter((worker) => (alive.get(worker) ?? 0) <= nowMs);
        if (expired.length === 0 || ids.size >= limit) continue;
        const jobs = await redis.run(scripts.jobsOfWorkers, keysOf(type), [limit, ...expired]);
        for (const suffix of jobs as readonly string[]) ids.add(`${type}.${suffix}`);
      }
      const some = [...ids]
        .slice(0, limit)
        .map((id) => refOf(id.slice(0, id.indexOf('.')), suffixOf(id)));
      return (await found(some)).filter(
        ({ head, fields }) => head.state === 'running' || damagedField in fields,
      );
    },
    async dueScheduled({ nowMs, limit }) {
      const refs = await eachOf(await reads.types(), async (type) => {
        const key = `${keyspace.typeKeys(type).base}:u`;
        const due = await redis.ask((client) =>
          client.zrangebyscore(key, '-inf', nowMs, 'LIMIT', 0, limit),
        );
        return due.map((suffix) => refOf(type, suffix));
      });
      const tasks = await found(refs.flat().slice(0, limit));
      return tasks.filter(({ head }) => head.state === 'scheduled');
    },
    async endedBefore({ type, beforeMs, limit }) {
      const key = `${keyspace.typeKeys(type).base}:e`;
      const ended = await redis.ask((client) =>
        client.zrangebyscore(key, '-inf', `(${beforeMs}`, 'LIMIT', 0, limit),
      );
      return ended.map((suffix) => refOf(type, suffix));
    },
    async remove(refs) {
      const counts = await Promise.all(
        [...Map.groupBy(refs, ({ type }) => type)].map(async ([type, some]) => {
          const suffixes = some.map(({ id }) => suffixOf(id));
          return Number(await redis.run(scripts.remove, keysOf(type), suffixes));
        }),
      );
      return counts.reduce((sum, count) => sum + count, 0);
    },
    async tidy(nowMs) {
      const records = new Map((await groups.all()).map((record) => [record.name, record.native]));
      await eachOf(await reads.types(), async (type) => {
        const { queue, workersGroup } = keyspace.typeKeys(type);
        const native = records.get(workersGroup) ?? workersGroup;
        const values = [nowMs, native, keyspace.workerChannel, queue.subject];
        await redis.run(scripts.tidy, [...keysOf(type), queue.key], values);
      });
    },

    async setMode(type, mode) {
      const { queue } = keyspace.typeKeys(type);
      await redis.ask((client) => client.sadd(keyspace.types, type));
      const values = [mode === 'open' ? '' : mode, keyspace.workerChannel, queue.subject];
      await redis.run(scripts.setMode, keysOf(type), values);
    },
    async modes() {
      const modes = await eachOf(await reads.types(), async (type) => {
        const [base = ''] = keysOf(type);
        const mode = await redis.ask((client) => client.hget(base, 'mode'));
        return mode === 'paused' || mode === 'draining' ? [{ type, mode } as const] : [];
      });
      return modes.flat();
    },
  };
}
