// The calls of a worker about a job that it claimed. The record of a claimed job is cached, because only its worker
// changes the record: a step costs one write and no read.

import { hasCode } from '../foundation/error.ts';
import { causeLimits, failureCause, type ErrorFacts } from '../foundation/failure-cause.ts';
import { subjectHeader } from '../store/erasure.ts';
import { checkName, encodeValue, invalid, refOf, stale, checkInteger } from './rules/check-task.ts';
import {
  decideCancelled,
  decideCompensated,
  decideComplete,
  decideFailure,
} from './rules/decide-end.ts';
import { decideRelease } from './rules/decide-queued.ts';
import {
  decideProgress,
  decideStepFailure,
  decideStepFinish,
  decideStepStart,
  decideWait,
} from './rules/decide-step.ts';
import {
  applyDecision,
  withRoom,
  type DecideContext,
  type Decision,
} from './rules/task-decision.ts';
import {
  fieldBytes,
  isTerminal,
  neverMs,
  subjectOfJob,
  taskTypeOf,
  type StoredTask,
} from './task-job.ts';
import { taskLimits as limits } from './task-limits.ts';
import { firstEvent, stepOf, type TaskFailure } from './task-record.ts';
import { endedChildren, type TaskChanges, type TaskChangesContext } from './task-changes.ts';
import type { Enqueued, NewTask, ClaimedJobCalls, TaskToken } from './tasks.ts';

/** The cached records of the jobs that workers of this process claimed. */
export interface ClaimedJobs {
  /** Undefined: not cached under this fence. */
  get(token: TaskToken): StoredTask | undefined;
  remember(task: StoredTask): void;
  /** `fence`: removes the record only if it has this fence. */
  evict(id: string, fence?: number): void;
}

export function createClaimedJobs(): ClaimedJobs {
  const tasks = new Map<string, { readonly task: StoredTask; readonly bytes: number }>();
  let bytes = 0;

  function remove(id: string): void {
    bytes -= tasks.get(id)?.bytes ?? 0;
    tasks.delete(id);
  }

  return {
    get({ id, fence }) {
      const task = tasks.get(id)?.task;
      return task?.head.fence === fence ? task : undefined;
    },
    remember(task) {
      const { id } = task.head;
      remove(id);
      const size = fieldBytes(task.fields);
      tasks.set(id, { task, bytes: size });
      bytes += size;
      // The oldest records are evicted; the next call of their worker reads them again.
      for (const [oldest] of tasks) {
        const isOver = tasks.size > limits.claimedJobsMax || bytes > limits.claimedJobsBytesMax;
        if (!isOver || oldest === id) return;
        remove(oldest);
      }
    },
    evict(id, fence) {
      if (fence === undefined || tasks.get(id)?.task.head.fence === fence) remove(id);
    },
  };
}

export interface ClaimedJobContext
  extends
    Pick<TaskChanges, 'afterEnd' | 'wakeParent'>,
    Pick<TaskChangesContext, 'changeBatcher' | 'decideContext' | 'engine'> {
  readonly claimedJobs: ClaimedJobs;
  readonly enqueueMany: (tasks: readonly NewTask[]) => Promise<readonly Enqueued[]>;
}

export function createClaimedJobCalls(context: ClaimedJobContext): ClaimedJobCalls {
  const { engine, changeBatcher, claimedJobs, decideContext } = context;

  async function load({ id, fence }: TaskToken): Promise<StoredTask> {
    const [task] = await engine.get([refOf(id)]);
    if (task?.head.state !== 'running' || task.head.fence !== fence) throw stale(id);
    // A concurrent load may have cached a newer record than the one read here.
    const before = claimedJobs.get({ id, fence });
    if (before !== undefined && before.head.revision >= task.head.revision) return before;
    claimedJobs.remember(task);
    return task;
  }

  async function taskOf(token: TaskToken): Promise<StoredTask> {
    refOf(token.id);
    const task = claimedJobs.get(token);
    if (task !== undefined) return task;
    const loaded = await load(token);
    // A call that ran during the load may have changed the cached record.
    return claimedJobs.get(token) ?? loaded;
  }

  async function write<D extends Decision>(
    token: TaskToken,
    decide: (task: StoredTask, context: DecideContext) => D,
    known?: StoredTask,
  ): Promise<D> {
    // No await if the record is cached: the second of two concurrent calls builds on the first.
    let task = known ?? claimedJobs.get(token);
    if (task === undefined) {
      const loaded = await taskOf(token);
      task = claimedJobs.get(token) ?? loaded;
    }
    const { id, type } = task.head;
    const now = decideContext(type);
    const decided = decide(task, now);
    const after = applyDecision(task, decided, now.nowMs);
    // Cached before it is stored: the next call of the worker builds on this change, and is stored after it.
    if (after.head.state === 'running') claimedJobs.remember(after);
    else claimedJobs.evict(id);
    try {
      const { head, fields, signals } = decided;
      const guard = { fence: token.fence, revision: known?.head.revision };
      const subject = subjectOfJob(task.head);
      const change = { id, type, guard, head, fields, signals, subject };
      const outcome = await changeBatcher.change(change);
      if (outcome.kind === 'stale') throw stale(id);
    } catch (error) {
      // The stored state is unknown, so the next call reads it. A record under a newer fence stays.
      claimedJobs.evict(id, token.fence);
      throw error;
    }
    if (isTerminal(after.head.state)) await context.afterEnd(after);
    return decided;
  }

  /** Decides on exactly the stored record: a concurrent event or cancellation must not be missed. */
  async function writeExactly(
    token: TaskToken,
    decide: (task: StoredTask, context: DecideContext) => Decision,
  ): Promise<void> {
    for (;;) {
      claimedJobs.evict(token.id);
      const task = await load(token);
      try {
        await write(token, decide, task);
        return;
      } catch (error) {
        // The record has changed: decide again. If this worker has lost the job, the load rejects.
        if (!hasCode(error, 'TASK_STALE')) throw error;
      }
    }
  }

  return {
    async startStep(token, { name, kind = 'step', timeoutMs }) {
      checkName('name', name);
      await write(token, (task, decide) => {
        const ms = timeoutMs ?? decide.type.stepTimeoutMs;
        checkInteger('timeoutMs', ms, { min: 1, max: limits.durationMsMax });
        return withRoom(task, decideStepStart(task, { name, kind, timeoutMs: ms }, decide));
      });
    },
    async finishStep(token, { name, kind = 'step', result, isCompensable }) {
      checkName('name', name);
      encodeValue(`result of ${name}`, result);
      await write(token, (task, decide) =>
        withRoom(task, decideStepFinish(task, { name, kind, result, isCompensable }, decide)),
      );
    },
    async failStep(token, { name, kind = 'step', failure, retries = 0, retryAfterMs }) {
      checkName('name', name);
      checkInteger('retries', retries, { min: 0, max: limits.retriesMax });
      const step = { name, kind, failure: toFailure(failure, token), retries, retryAfterMs };
      const { isRetried } = await write(token, (task, decide) =>
        withRoom(task, decideStepFailure(task, step, decide)),
      );
      return { isRetried };
    },
    async progress(token, { percent, message }) {
      const fits = typeof percent === 'number' && percent >= 0 && percent <= 100;
      if (!fits) throw invalid('percent', 'must be a number from 0 to 100');
      const progress = { percent, message: message?.slice(0, limits.errorCharsMax) };
      await write(token, (task, decide) => decideProgress(task, progress, decide));
    },

    async sleep(token, { name, until }) {
      checkName('name', name);
      if (!(until instanceof Date) || Number.isNaN(until.getTime())) {
        throw invalid('until', 'must be a valid Date');
      }
      const task = await taskOf(token);
      // A run from the start repeats the call: the first wake-up time stays.
      const before = stepOf(task, name)?.untilMs;
      const untilMs = before ?? until.getTime();
      if (before !== undefined && before <= decideContext(task.head.type).nowMs) {
        return { kind: 'over' };
      }
      const wait = { kind: 'sleep', step: name, untilMs } as const;
      await write(token, (each, decide) => decideWait(each, wait, decide));
      return { kind: 'released' };
    },
    async waitForEvent(token, { name, event, timeoutMs }) {
      checkName('name', name);
      checkName('event', event);
      const bounds = { min: 0, max: limits.durationMsMax };
      if (timeoutMs !== undefined) checkInteger('timeoutMs', timeoutMs, bounds);
      let outcome: Awaited<ReturnType<ClaimedJobCalls['waitForEvent']>> = { kind: 'released' };
      await writeExactly(token, (task, decide) => {
        const found = firstEvent(task, event);
        const before = stepOf(task, name);
        const untilMs =
          before?.untilMs ?? (timeoutMs === undefined ? neverMs : decide.nowMs + timeoutMs);
        if (found !== undefined || untilMs <= decide.nowMs) {
          const { payload } = found?.record ?? { payload: undefined };
          outcome = found === undefined ? { kind: 'timeout' } : { kind: 'event', payload };
          const step = { name, kind: 'event', result: outcome, dropField: found?.field } as const;
          return withRoom(task, decideStepFinish(task, step, decide));
        }
        outcome = { kind: 'released' };
        const wait = { kind: 'event', step: name, event, untilMs } as const;
        return withRoom(task, decideWait(task, wait, decide));
      });
      return outcome;
    },
    async runChildren(token, { name, tasks }) {
      checkName('name', name);
      checkInteger('tasks', tasks.length, { min: 0, max: limits.childrenMax });
      const parent = await taskOf(token);
      const { id: parentId, tenant } = parent.head;
      const subject = subjectOfJob(parent.head);
      const enqueued = await context.enqueueMany(
        tasks.map((task, at) => ({
          ...task,
          // A child always belongs to the tenant of its parent.
          tenant: tenant === '' ? undefined : tenant,
          labels:
            subject === undefined ? task.labels : { [subjectHeader]: subject, ...task.labels },
          key: `${parentId}/${name}/${at}`,
          dedupeWindowMs: 0,
          parentId,
        })),
      );
      const ids = enqueued.map(({ id }) => id);
      const ended = await endedChildren(engine, ids, subject);
      if (ended !== undefined) {
        const step = { name, kind: 'children', result: ended } as const;
        await write(token, (task, decide) => withRoom(task, decideStepFinish(task, step, decide)));
        return { kind: 'ended', children: ended };
      }
      await write(token, (task, decide) =>
        decideWait(task, { kind: 'children', step: name, ids }, decide),
      );
      // The last child may have ended before the wait was stored.
      await context.wakeParent(parentId);
      return { kind: 'released' };
    },

    async complete(token, result) {
      encodeValue('result', result);
      await write(token, (task, decide) => decideComplete(task, result, decide));
    },
    async fail(token, failure, { retryAfterMs } = {}) {
      const stored = toFailure(failure, token);
      await write(token, (task, decide) =>
        decideFailure(task, stored, { ...decide, retryAfterMs }),
      );
    },
    async cancelled(token) {
      // The cached record lacks the reason, which another process stored.
      await writeExactly(token, decideCancelled);
    },
    async compensated(token) {
      await write(token, decideCompensated);
    },
    async release(token) {
      await write(token, decideRelease);
    },
  };
}

function toFailure(failure: TaskFailure, { id }: { readonly id: string }): TaskFailure {
  const message = failure.message.slice(0, limits.errorCharsMax);
  const facts: ErrorFacts = {
    name: failure.name?.slice(0, causeLimits.nameCharsMax),
    code: failure.code?.slice(0, limits.labelCharsMax),
    stack: failure.stack?.slice(0, causeLimits.stackCharsMax),
  };
  const cause = failureCause({ source: 'job', where: taskTypeOf(id), error: message }, facts);
  return { message, ...cause, isTerminal: failure.isTerminal || undefined };
}
