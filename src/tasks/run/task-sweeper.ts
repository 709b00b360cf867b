// Repairs what other parts missed: jobs of dead workers, hanging steps, ignored cancellations, parents that were not
// woken, lost signals and cron ticks; and removes old jobs. Several processes may sweep: each change is guarded by
// the revision that it was decided on.

import { batchesOf } from '../../foundation/async/batches-of.ts';
import { hasCode } from '../../foundation/error.ts';
import { idFromKey } from '../../foundation/ids.ts';
import { sweepLoop } from '../../loops/sweep-loop.ts';
import { parseCron } from '../cron.ts';
import { decideDamaged, decideLost } from '../rules/decide-end.ts';
import { decideDue } from '../rules/decide-queued.ts';
import type { DecideContext } from '../rules/task-decision.ts';
import { isTerminal, type StoredTask } from '../task-job.ts';
import { taskLimits as limits } from '../task-limits.ts';
import { infoOf, readTask, runOf, stepsOf } from '../task-record.ts';
import type { TaskSignal } from '../task-signal.ts';
import type { TaskType } from '../task-type.ts';
import type { TaskCore, Tasks } from '../tasks.ts';

/** The result of one sweep. */
export interface TasksSwept {
  /** Running jobs that were taken from their workers: retried or ended. */
  readonly lost: number;
  readonly due: number;
  readonly woken: number;
  readonly signals: number;
  readonly ticks: number;
  readonly removed: number;
}

export interface TaskSweeperOptions {
  /** Default: 5 s. */
  readonly everyMs?: number | undefined;
}

/** Signals of older jobs are not repaired; the retention of their streams applies. */
const signalAgeMsMax = 6 * 86_400_000;
/** The longest time that a writer may take between the record and its signal. */
const signalGraceMs = 60_000;
const workerForgetMs = 600_000;
const reportEveryMs = 60_000;
/** How often the types that have jobs are counted. */
const countEveryMs = 3_600_000;
/** Pages per sweep and kind; the next sweep continues there. */
const pagesMax = 10;
const listed = { limit: limits.batchMax, bytesMax: limits.pageBytesMax } as const;
/** Pages of jobs with all their values. */
const wholePagesMax = Math.ceil((pagesMax * limits.batchMax) / limits.wholeJobsMax);

/** The progress of a sweeper. */
interface SweepMemory {
  waitingCursor: string | undefined;
  signalCursor: string | undefined;
  /** The check of changed jobs that the next sweep continues. */
  changed:
    | { readonly fromMs: number; readonly startedMs: number; readonly cursor: string }
    | undefined;
  /** When the last whole check of changed jobs began. */
  changedCheckedMs: number;
  reportedAtMs: number;
  /** Types that have jobs, including types that are not configured. */
  types: ReadonlySet<string>;
  typesAtMs: number;
}

export interface TaskSweep {
  readonly sweep: () => Promise<TasksSwept>;
}

/**
 * A single sweep; `startTaskSweeper` repeats it.
 *
 * @example
 * import { createTaskSweep, type Tasks } from 'millrace/tasks';
 *
 * const sweepOnce = (tasks: Tasks) => createTaskSweep(tasks).sweep();
 */
export function createTaskSweep(
  tasks: Tasks,
  { everyMs = 5_000 }: TaskSweeperOptions = {},
): TaskSweep {
  const { core } = tasks;
  const { engine, clock, observer, signals } = core;
  const memory: SweepMemory = {
    waitingCursor: undefined,
    signalCursor: undefined,
    changed: undefined,
    changedCheckedMs: 0,
    reportedAtMs: 0,
    types: new Set(),
    typesAtMs: Number.NEGATIVE_INFINITY,
  };

  async function sweep(): Promise<TasksSwept> {
    const startedMs = clock.now();
    const swept = {
      lost: await takeLost(core),
      due: await queueDue(core),
      woken: await wakeParents(core, memory),
      signals: await repairSignals(core, memory, startedMs),
      ticks: await enqueueTicks(tasks, core, everyMs),
      removed: await removeOld(tasks, core, memory),
    };
    await engine.tidy(clock.now());
    for (const { worker, aliveUntilMs } of await engine.workers()) {
      if (aliveUntilMs < clock.now() - workerForgetMs) await engine.forgetWorker(worker);
    }
    observer.count?.('tasks_swept_total', {}, swept.lost);
    if (swept.signals > 0) observer.count?.('tasks_signals_repaired_total', {}, swept.signals);
    const isNews = swept.lost + swept.signals + swept.woken > 0;
    if (isNews || clock.now() - memory.reportedAtMs >= reportEveryMs) {
      memory.reportedAtMs = clock.now();
      const id = `sweep:${idFromKey(`${clock.now()}|${JSON.stringify(swept)}`)}`;
      await engine.repair([signals.control('sweep', id, { ...swept })], clock.now());
    }
    return swept;
  }
  return { sweep };
}

async function takeLost({ engine, clock, change, observer }: TaskCore): Promise<number> {
  let lost = 0;
  for (let page = 0; page < wholePagesMax; page += 1) {
    const nowMs = clock.now();
    const found = await engine.overdue({ nowMs, limit: limits.wholeJobsMax });
    const taken = await Promise.all(
      found.map((task) => {
        const { cancelAtMs, deadlineMs, id, type, worker } = task.head;
        const isCancel = cancelAtMs > 0 && cancelAtMs <= nowMs;
        const cause = isCancel ? 'cancel' : deadlineMs <= nowMs ? 'deadline' : 'worker';
        observer.log?.warn({ taskId: id, type, worker, cause }, 'job taken from its worker');
        return change(task, (each, context) => decideLost(each, cause, context));
      }),
    );
    lost += taken.filter(Boolean).length;
    if (found.length < limits.wholeJobsMax) break;
  }
  return lost;
}

async function queueDue({ engine, clock, change }: TaskCore): Promise<number> {
  let due = 0;
  for (let page = 0; page < wholePagesMax; page += 1) {
    const found = await engine.dueScheduled({ nowMs: clock.now(), limit: limits.wholeJobsMax });
    due += (await Promise.all(found.map((task) => change(task, decideDue)))).filter(Boolean).length;
    if (found.length < limits.wholeJobsMax) break;
  }
  return due;
}

/** The process that ended the last child may have died before it woke the parent. */
async function wakeParents(core: TaskCore, memory: SweepMemory): Promise<number> {
  const { engine, change, wakeParent } = core;
  let woken = 0;
  for (let page = 0; page < pagesMax; page += 1) {
    const { tasks, cursor } = await engine.list(
      { states: ['waiting'] },
      { cursor: memory.waitingCursor, ...listed },
    );
    for (const task of tasks) {
      const { damage } = readTask(task);
      // What it waits for cannot be read, so nothing would wake it.
      if (damage !== undefined) {
        await change(task, (each, context) => decideDamaged(each, damage, context));
      }
      if (runOf(task).waitsFor?.kind !== 'children') continue;
      if (await wakeParent(task.head.id)) woken += 1;
    }
    memory.waitingCursor = cursor;
    if (cursor === undefined) break;
  }
  return woken;
}

/**
 * One page of all jobs per sweep, all jobs once a signal is missing, and all changed jobs where engines need it. The list
 * is ordered by the time of the enqueue, so a job that changed just now may be its last.
 */
async function repairSignals(
  core: TaskCore,
  memory: SweepMemory,
  startedMs: number,
): Promise<number> {
  const { engine } = core;
  let repaired = 0;
  const oldestMs = startedMs - signalAgeMsMax;
  for (let isWalking = true; isWalking;) {
    const { tasks, cursor } = await engine.list(
      { updatedFromMs: oldestMs },
      { cursor: memory.signalCursor, ...listed },
    );
    const isFirst = memory.signalCursor === undefined;
    const missing = await repairOf(core, tasks);
    repaired += missing;
    // Restart once from the first page: earlier pages probably miss signals, too.
    memory.signalCursor = missing > 0 && !isFirst && repaired === missing ? undefined : cursor;
    isWalking = repaired > 0 && memory.signalCursor !== undefined;
  }
  if (engine.capabilities.atomicSignals) return repaired;
  const isFirst = memory.changedCheckedMs === 0;
  const check = memory.changed ?? {
    fromMs: Math.max(oldestMs, memory.changedCheckedMs - signalGraceMs),
    startedMs,
    cursor: undefined,
  };
  let { cursor } = check;
  for (let page = 0; page < pagesMax || repaired > 0; page += 1) {
    const listing = await engine.list({ updatedFromMs: check.fromMs }, { cursor, ...listed });
    repaired += await repairOf(core, listing.tasks);
    cursor = listing.cursor;
    if (cursor === undefined) break;
  }
  // The first check may be of millions of jobs, which the pages of all jobs reach in time.
  memory.changed = cursor === undefined || isFirst ? undefined : { ...check, cursor };
  // Only now: a check that an outage has ended is repeated.
  if (memory.changed === undefined) memory.changedCheckedMs = check.startedMs;
  return repaired;
}

async function repairOf(
  { engine, clock, signals }: TaskCore,
  tasks: readonly StoredTask[],
): Promise<number> {
  const ended = tasks.filter(({ head }) => head.endedAtMs > 0);
  const open = tasks.filter(({ head }) => head.endedAtMs === 0);
  // Lists do not contain steps.
  const nowMs = clock.now();
  const expected = ended.flatMap((task) => expectedSignals(task, { signals, nowMs }));
  for (const some of batchesOf(open, { countMax: limits.wholeJobsMax })) {
    for (const task of await engine.get(some.map(({ head }) => head))) {
      if (task !== undefined) expected.push(...expectedSignals(task, { signals, nowMs }));
    }
  }
  return expected.length === 0 ? 0 : engine.repair(expected, nowMs);
}

/** The signals that the streams should hold for a job in its current state. Steps of ended jobs are not repeated. */
function expectedSignals(
  task: StoredTask,
  { signals, nowMs }: Pick<DecideContext, 'signals' | 'nowMs'>,
): readonly TaskSignal[] {
  const { head } = task;
  const info = infoOf(task);
  if (isTerminal(head.state)) {
    return [signals.ended(head, info, { error: runOf(task).error?.message })];
  }
  const isQueued = head.state === 'queued' || (head.state === 'scheduled' && head.dueAtMs <= nowMs);
  const steps = stepsOf(task).flatMap(([step, { kind, state, fence, attempts, error }]) => {
    if (state === 'running' || kind === 'sleep') return [];
    const what = { kind: `step-${state}`, step, attempt: attempts, error: error?.message };
    return [signals.progressed({ ...head, fence: fence ?? head.fence }, info, what)];
  });
  return isQueued ? [signals.queued(head, info), ...steps] : steps;
}

/** The key of a tick is its time: however many sweepers enqueue it, it is one job. */
async function enqueueTicks(
  tasks: Tasks,
  { clock, observer }: TaskCore,
  everyMs: number,
): Promise<number> {
  const nowMs = clock.now();
  const horizonMs = Math.max(2 * everyMs, 60_000);
  let ticks = 0;
  for (const type of tasks.types()) {
    if (type.cron === undefined) continue;
    try {
      for (const atMs of ticksOf(type.cron, {
        fromMs: nowMs - 2 * everyMs,
        toMs: nowMs + horizonMs,
      })) {
        const { isDuplicate } = await tasks.enqueue({
          type: type.name,
          payload: type.cron.payload,
          tenant: type.cron.tenant,
          key: `cron:${new Date(atMs).toISOString()}`,
          dedupeWindowMs: 0,
          runAt: new Date(atMs),
        });
        if (!isDuplicate) ticks += 1;
      }
    } catch (err) {
      if (hasCode(err, 'TASK_TYPE_DRAINING')) continue;
      observer.log?.error({ type: type.name, err }, 'cron ticks could not be enqueued');
    }
  }
  return ticks;
}

function* ticksOf(
  cron: NonNullable<TaskType['cron']>,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Generator<number> {
  const schedule = parseCron(cron.expression, cron.timeZone);
  for (let at = schedule.next(fromMs); at !== undefined && at <= toMs; at = schedule.next(at))
    yield at;
}

async function removeOld(
  tasks: Tasks,
  { engine, clock }: TaskCore,
  memory: SweepMemory,
): Promise<number> {
  let removed = 0;
  const known = new Map(tasks.types().map((type) => [type.name, type.retentionMs]));
  // Counting reads every job, and types that are not configured here rarely appear.
  if (clock.now() - memory.typesAtMs >= countEveryMs) {
    memory.types = new Set((await engine.counts()).map(({ type }) => type));
    memory.typesAtMs = clock.now();
  }
  for (const type of new Set([...known.keys(), ...memory.types])) {
    const beforeMs = clock.now() - (known.get(type) ?? limits.retentionMsDefault);
    for (let page = 0; page < pagesMax; page += 1) {
      const old = await engine.endedBefore({ type, beforeMs, limit: limits.batchMax });
      if (old.length > 0) removed += await engine.remove(old);
      if (old.length < limits.batchMax) break;
    }
  }
  return removed;
}

/**
 * Sweeps at intervals, until it is disposed.
 *
 * @example
 * import { startTaskSweeper, type Tasks } from 'millrace/tasks';
 *
 * const lookAfter = (tasks: Tasks): AsyncDisposable => startTaskSweeper(tasks, { everyMs: 5_000 });
 */
export function startTaskSweeper(tasks: Tasks, options: TaskSweeperOptions = {}): AsyncDisposable {
  const { everyMs = 5_000 } = options;
  const { clock, observer } = tasks.core;
  const sweeper = createTaskSweep(tasks, options);
  return sweepLoop(() => sweeper.sweep(), {
    everyMs,
    clock,
    onFailure: (err) => observer.log?.warn({ err }, 'task sweep failed'),
    onRecovered: () => observer.log?.info({}, 'task sweeper resumed'),
  });
}
