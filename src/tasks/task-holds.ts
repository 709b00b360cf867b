// What workers say of the jobs that they hold. The record of each is remembered while it is held: only its
// holder changes it, so that a step costs one write and no read.

import { hasCode } from '../foundation/error.ts';
import { checkName, encodeValue, invalid, refOf, stale, wholeNumber } from './check-task.ts';
import { decideCompensated, decideComplete, decideEnding, decideFailure } from './decide-end.ts';
import { decideRelease } from './decide-queued.ts';
import {
  decideProgress,
  decideStepFailure,
  decideStepFinish,
  decideStepStart,
  decideWait,
} from './decide-step.ts';
import { applyDecision, type DecideContext, type Decision } from './task-decision.ts';
import type { TaskEngine } from './task-engine.ts';
import type { TaskExchange } from './task-exchange.ts';
import { isTerminal, neverMs, type StoredTask } from './task-job.ts';
import { taskLimits as limits } from './task-limits.ts';
import { firstEvent, runOf, stepOf, type TaskFailure } from './task-record.ts';
import type { ChildOutcome, Enqueued, NewTask, TaskHolding, TaskToken } from './tasks.ts';

export interface HoldsContext {
  readonly engine: TaskEngine;
  readonly exchange: TaskExchange;
  readonly decideContext: (type: string) => DecideContext;
  readonly enqueueMany: (tasks: readonly NewTask[]) => Promise<readonly Enqueued[]>;
  /** It has ended: whoever waits for it is told. */
  readonly afterEnd: (task: StoredTask) => Promise<void>;
  /** Wakes a parent whose children have all ended. */
  readonly wakeParent: (id: string) => Promise<boolean>;
}

export interface TaskHolds extends TaskHolding {
  remember(task: StoredTask): void;
  /** `fence`: only while it is held under this one. */
  forget(id: string, fence?: number): void;
}

export function createTaskHolds(context: HoldsContext): TaskHolds {
  const { engine, exchange, decideContext } = context;
  const held = new Map<string, StoredTask>();

  function remember(task: StoredTask): void {
    held.delete(task.head.id);
    held.set(task.head.id, task);
    // The oldest one goes; its holder costs a read more.
    if (held.size > limits.holdsMax) held.delete(held.keys().next().value ?? '');
  }

  function forget(id: string, fence?: number): void {
    if (fence === undefined || held.get(id)?.head.fence === fence) held.delete(id);
  }

  async function load({ id, fence }: TaskToken): Promise<StoredTask> {
    const [task] = await engine.get([refOf(id)]);
    if (task?.head.state !== 'running' || task.head.fence !== fence) throw stale(id);
    // Two that load at once: what the first has said since is newer than what the second has read.
    const before = heldNow({ id, fence });
    if (before !== undefined && before.head.revision >= task.head.revision) return before;
    remember(task);
    return task;
  }

  function heldNow({ id, fence }: TaskToken): StoredTask | undefined {
    const task = held.get(id);
    return task?.head.fence === fence ? task : undefined;
  }

  async function taskOf(token: TaskToken): Promise<StoredTask> {
    refOf(token.id);
    const task = heldNow(token);
    if (task !== undefined) return task;
    const loaded = await load(token);
    // What was said of it meanwhile was decided on this record, too.
    return heldNow(token) ?? loaded;
  }

  async function write<D extends Decision>(
    token: TaskToken,
    decide: (task: StoredTask, context: DecideContext) => D,
    known?: StoredTask,
  ): Promise<D> {
    // Not awaited where it is known: of two that speak at once, the second builds on the first.
    let task = known ?? heldNow(token);
    if (task === undefined) {
      const loaded = await taskOf(token);
      task = heldNow(token) ?? loaded;
    }
    const { id, type } = task.head;
    const now = decideContext(type);
    const decided = decide(task, now);
    const after = applyDecision(task, decided, now.nowMs);
    // Before it is stored: what the holder says next builds on it, and goes behind it.
    if (after.head.state === 'running') remember(after);
    else held.delete(id);
    try {
      const { head, fields, signals } = decided;
      const guard = known === undefined ? { fence: token.fence } : bothOf(token, known);
      const stays = { before: task.head, after };
      const change = { id, type, guard, head, fields, signals, held: stays };
      const outcome = await exchange.change(change);
      if (outcome.kind === 'stale') throw stale(id);
    } catch (error) {
      // Unknown what is stored: the next call reads it. Under a newer fence it is another's word.
      forget(id, token.fence);
      throw error;
    }
    if (isTerminal(after.head.state)) await context.afterEnd(after);
    return decided;
  }

  /** Decided on exactly this record: what somebody sent meanwhile must not be missed. */
  async function writeExactly(
    token: TaskToken,
    decide: (task: StoredTask, context: DecideContext) => Decision,
  ): Promise<void> {
    for (;;) {
      held.delete(token.id);
      const task = await load(token);
      try {
        await write(token, decide, task);
        return;
      } catch (error) {
        // Somebody sent something: look again. Whoever has lost it is told by the load.
        if (!hasCode(error, 'TASK_STALE')) throw error;
      }
    }
  }

  return {
    remember,
    forget,

    async startStep(token, { name, kind = 'step', timeoutMs }) {
      checkName('name', name);
      await write(token, (task, decide) => {
        checkSteps(task);
        const ms = timeoutMs ?? decide.type.stepTimeoutMs;
        wholeNumber('timeoutMs', ms, { min: 1, max: limits.durationMsMax });
        return decideStepStart(task, { name, kind, timeoutMs: ms }, decide);
      });
    },
    async finishStep(token, { name, kind = 'step', result, isCompensable }) {
      checkName('name', name);
      encodeValue(`result of ${name}`, result);
      await write(token, (task, decide) => {
        checkSteps(task);
        return decideStepFinish(task, { name, kind, result, isCompensable }, decide);
      });
    },
    async failStep(token, { name, kind = 'step', failure, retries = 0, retryAfterMs }) {
      checkName('name', name);
      wholeNumber('retries', retries, { min: 0, max: limits.retriesMax });
      const step = { name, kind, failure: toFailure(failure), retries, retryAfterMs };
      const { isRetried } = await write(token, (task, decide) =>
        decideStepFailure(task, step, decide),
      );
      return { isRetried };
    },
    async progress(token, { percent, message }) {
      const fits = typeof percent === 'number' && percent >= 0 && percent <= 100;
      if (!fits) throw invalid('percent', 'must be a number from 0 to 100');
      const text = message?.slice(0, limits.errorCharsMax);
      const progress = { percent, ...(text === undefined ? {} : { message: text }) };
      await write(token, (task, decide) => decideProgress(task, progress, decide));
    },

    async sleep(token, { name, until }) {
      checkName('name', name);
      if (!(until instanceof Date) || Number.isNaN(until.getTime())) {
        throw invalid('until', 'must be a valid Date');
      }
      const task = await taskOf(token);
      // Whoever runs from the start says it again: it sleeps on, and not anew; or it has slept.
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
      if (timeoutMs !== undefined) wholeNumber('timeoutMs', timeoutMs, bounds);
      let answer: Awaited<ReturnType<TaskHolding['waitForEvent']>> = { kind: 'released' };
      await writeExactly(token, (task, decide) => {
        checkSteps(task);
        const found = firstEvent(task, event);
        const before = stepOf(task, name);
        const untilMs =
          before?.untilMs ?? (timeoutMs === undefined ? neverMs : decide.nowMs + timeoutMs);
        if (found !== undefined || untilMs <= decide.nowMs) {
          const { payload } = found?.record ?? { payload: undefined };
          answer = found === undefined ? { kind: 'timeout' } : { kind: 'event', payload };
          return decideStepFinish(
            task,
            { name, kind: 'event', result: answer, dropField: found?.field },
            decide,
          );
        }
        answer = { kind: 'released' };
        return decideWait(task, { kind: 'event', step: name, event, untilMs }, decide);
      });
      return answer;
    },
    async runChildren(token, { name, tasks }) {
      checkName('name', name);
      wholeNumber('tasks', tasks.length, { min: 0, max: limits.childrenMax });
      const parent = await taskOf(token);
      const { id: parentId, tenant } = parent.head;
      const enqueued = await context.enqueueMany(
        tasks.map((task, at) => ({
          ...task,
          // Tenants never mix: a child is of its parent's.
          tenant: tenant === '' ? undefined : tenant,
          key: `${parentId}/${name}/${at}`,
          dedupeWindowMs: 0,
          parentId,
        })),
      );
      const ids = enqueued.map(({ id }) => id);
      const ended = await endedChildren(engine, ids);
      if (ended !== undefined) {
        const step = { name, kind: 'children', result: ended } as const;
        await write(token, (task, decide) => decideStepFinish(task, step, decide));
        return { kind: 'ended', children: ended };
      }
      await write(token, (task, decide) =>
        decideWait(task, { kind: 'children', step: name, ids }, decide),
      );
      // The last one may have ended before it was known that somebody waits.
      await context.wakeParent(parentId);
      return { kind: 'released' };
    },

    async complete(token, result) {
      encodeValue('result', result);
      await write(token, (task, decide) => decideComplete(task, result, decide));
    },
    async fail(token, failure, { retryAfterMs } = {}) {
      const given = toFailure(failure);
      await write(token, (task, decide) => decideFailure(task, given, { ...decide, retryAfterMs }));
    },
    async cancelled(token) {
      const error = { message: 'cancelled', code: 'TASK_CANCELLED' };
      await write(token, (task, decide) =>
        decideEnding(task, { state: 'cancelled', error }, decide),
      );
    },
    async compensated(token) {
      await write(token, decideCompensated);
    },
    async release(token) {
      await write(token, decideRelease);
    },
  };
}

function bothOf({ fence }: TaskToken, { head }: StoredTask) {
  return { fence, revision: head.revision };
}

function checkSteps(task: StoredTask): void {
  const count = Object.keys(task.fields).length;
  if (count < limits.stepsMax) return;
  throw invalid('name', `is one step too many: a job has at most ${limits.stepsMax}`);
}

/** Undefined: not all of them have. One that is gone has ended long ago. */
export async function endedChildren(
  engine: TaskEngine,
  ids: readonly string[],
): Promise<readonly ChildOutcome[] | undefined> {
  const refs = ids.map(refOf);
  const heads = await engine.heads(refs);
  if (heads.some((head) => head !== undefined && !isTerminal(head.state))) return undefined;
  const tasks = await engine.get(refs);
  return tasks.map((task, at): ChildOutcome => {
    const id = ids[at] ?? '';
    const state = task?.head.state;
    if (task === undefined || state === undefined || !isTerminal(state)) {
      return { id, state: 'failed', error: { message: 'its record is gone' } };
    }
    const { result, error } = runOf(task);
    return {
      id,
      state,
      ...(result === undefined ? {} : { result }),
      ...(error === undefined || state === 'completed' ? {} : { error }),
    };
  });
}

function toFailure({ message, code, isTerminal: isLast }: TaskFailure): TaskFailure {
  return {
    message: message.slice(0, limits.errorCharsMax),
    ...(code === undefined ? {} : { code: code.slice(0, limits.labelCharsMax) }),
    ...(isLast === true ? { isTerminal: true } : {}),
  };
}
