// Who works, what nobody looks after any more, and what may go.

import type { TaskEngine, WorkerBeat } from '../../tasks/task-engine.ts';
import type { StoredTask, TaskRef } from '../../tasks/task-job.ts';
import { eachOf } from './redis-bus-calls.ts';
import type { RedisTaskContext } from './redis-task-context.ts';
import type { TaskReads } from './redis-task-read.ts';
import { suffixOf } from './redis-task-space.ts';
import { taskUpkeepScripts as scripts } from './redis-task-upkeep-scripts.ts';

type Upkeep = Pick<
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

export function createTaskUpkeep(context: RedisTaskContext, reads: TaskReads): Upkeep {
  const { calls, space, groups } = context;
  const keysOf = (type: string): string[] => {
    const { base, never } = space.place(type);
    return [base, never];
  };
  const refOf = (type: string, suffix: string): TaskRef => ({ id: `${type}.${suffix}`, type });

  async function found(refs: readonly TaskRef[]): Promise<readonly StoredTask[]> {
    return (await reads.get(refs)).flatMap((task) => task ?? []);
  }

  /** A claim on a cluster says that its worker is alive beside the jobs of its type. */
  async function aliveUntil(): Promise<Map<string, number>> {
    const alive = new Map<string, number>();
    const note = (worker: string, untilMs: number): void => {
      alive.set(worker, Math.max(alive.get(worker) ?? 0, untilMs));
    };
    const beats = await calls.ask((client) => client.hgetall(space.workers));
    for (const [worker, ms] of Object.entries(beats)) note(worker, Number(ms));
    if (space.bus.isOneDomain) return alive;
    await eachOf(await reads.types(), async (type) => {
      const key = `${space.place(type).base}:b`;
      const own = await calls.ask((client) => client.hgetall(key));
      for (const [worker, ms] of Object.entries(own)) note(worker, Number(ms));
    });
    return alive;
  }

  return {
    async beat({ worker, aliveUntilMs, about }) {
      await calls.ask((client) =>
        Promise.all([
          client.hset(space.workers, worker, aliveUntilMs),
          ...(about === undefined ? [] : [client.hset(space.about, worker, about)]),
        ]),
      );
    },
    async workers() {
      const [alive, abouts] = await Promise.all([
        aliveUntil(),
        calls.ask((client) => client.hgetall(space.about)),
      ]);
      return [...alive].map(([worker, aliveUntilMs]): WorkerBeat => ({
        worker,
        aliveUntilMs,
        about: abouts[worker],
      }));
    },
    async forgetWorker(worker) {
      await calls.ask((client) =>
        Promise.all([client.hdel(space.workers, worker), client.hdel(space.about, worker)]),
      );
      if (space.bus.isOneDomain) return;
      await eachOf(await reads.types(), async (type) => {
        const key = `${space.place(type).base}:b`;
        await calls.ask((client) => client.hdel(key, worker));
      });
    },

    async overdue({ nowMs, limit }) {
      const types = await reads.types();
      // Who has jobs is asked before who is alive: a worker says so before it claims.
      const rows = await eachOf(types, async (type) => {
        const cells = await calls.runText(scripts.overdue, keysOf(type), [nowMs, limit]);
        return [type, cells as readonly [string[], string[], string[]]] as const;
      });
      const alive = await aliveUntil();
      const ids = new Set<string>();
      for (const [type, [late]] of rows) for (const each of late) ids.add(`${type}.${each}`);
      for (const [type, [, working]] of rows) {
        const gone = working.filter((worker) => (alive.get(worker) ?? 0) <= nowMs);
        if (gone.length === 0 || ids.size >= limit) continue;
        const held = await calls.runText(scripts.heldBy, keysOf(type), [limit, ...gone]);
        for (const suffix of held as readonly string[]) ids.add(`${type}.${suffix}`);
      }
      const some = [...ids]
        .slice(0, limit)
        .map((id) => refOf(id.slice(0, id.indexOf('.')), suffixOf(id)));
      return (await found(some)).filter(({ head }) => head.state === 'running');
    },
    async dueScheduled({ nowMs, limit }) {
      const refs = await eachOf(await reads.types(), async (type) => {
        const key = `${space.place(type).base}:u`;
        const due = await calls.ask((client) =>
          client.zrangebyscore(key, '-inf', nowMs, 'LIMIT', 0, limit),
        );
        return due.map((suffix) => refOf(type, suffix));
      });
      const tasks = await found(refs.flat().slice(0, limit));
      return tasks.filter(({ head }) => head.state === 'scheduled');
    },
    async endedBefore({ type, beforeMs, limit }) {
      const key = `${space.place(type).base}:e`;
      const ended = await calls.ask((client) =>
        client.zrangebyscore(key, '-inf', `(${beforeMs}`, 'LIMIT', 0, limit),
      );
      return ended.map((suffix) => refOf(type, suffix));
    },
    async remove(refs) {
      const counts = await Promise.all(
        [...Map.groupBy(refs, ({ type }) => type)].map(async ([type, some]) => {
          const suffixes = some.map(({ id }) => suffixOf(id));
          return Number(await calls.runText(scripts.remove, keysOf(type), suffixes));
        }),
      );
      return counts.reduce((sum, count) => sum + count, 0);
    },
    async tidy(nowMs) {
      const records = new Map((await groups.all()).map((record) => [record.name, record.native]));
      await eachOf(await reads.types(), async (type) => {
        const { queue, workersGroup } = space.place(type);
        const native = records.get(workersGroup) ?? workersGroup;
        const values = [nowMs, native, space.bus.channel, queue.subject];
        await calls.runText(scripts.tidy, [...keysOf(type), queue.key], values);
      });
    },

    async setMode(type, mode) {
      const { queue } = space.place(type);
      await calls.ask((client) => client.sadd(space.types, type));
      const values = [mode === 'open' ? '' : mode, space.bus.channel, queue.subject];
      await calls.runText(scripts.setMode, keysOf(type), values);
    },
    async modes() {
      const modes = await eachOf(await reads.types(), async (type) => {
        const [base = ''] = keysOf(type);
        const mode = await calls.ask((client) => client.hget(base, 'mode'));
        return mode === 'paused' || mode === 'draining' ? [{ type, mode } as const] : [];
      });
      return modes.flat();
    },
  };
}
