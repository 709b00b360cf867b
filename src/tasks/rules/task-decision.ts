// The parts of every decision about a job: what to write, and which signals to publish. Decisions are applied with a
// guard, so that a decision about an outdated record changes nothing.

import { backoffMs } from '../../foundation/backoff.ts';
import { invalid } from './check-task.ts';
import type { HeadChange, TaskChange } from '../task-engine.ts';
import { fieldBytes, neverMs, type StoredTask } from '../task-job.ts';
import { taskLimits as limits } from '../task-limits.ts';
import {
  infoOf,
  runOf,
  unrecordedClaim,
  withHistory,
  type HistoryEntry,
  type TaskRun,
} from '../task-record.ts';
import type { SignalMaker, TaskSignal } from '../task-signal.ts';
import type { TaskBackoff, TaskType } from '../task-type.ts';

export type Decision = Pick<TaskChange, 'fields' | 'head' | 'signals'>;

export interface DecideContext {
  readonly nowMs: number;
  readonly type: TaskType;
  readonly signals: SignalMaker;
  /** In [0, 1), for jitter. */
  readonly random?: number | undefined;
}

/** The job after the decision; every engine computes the same. */
export function applyDecision(
  task: StoredTask,
  { head, fields }: Pick<Decision, 'head' | 'fields'>,
  nowMs: number,
): StoredTask {
  const next: Record<string, string> = { ...task.fields };
  for (const [name, text] of Object.entries(fields)) {
    if (text === null) delete next[name];
    else next[name] = text;
  }
  const { revision } = task.head;
  return {
    head: { ...task.head, ...head, revision: revision + 1, updatedAtMs: nowMs },
    fields: next,
  };
}

/** The decision, unless it adds to a job that has no room for it. */
export function withRoom<D extends Decision>(task: StoredTask, decision: D): D {
  const { fields } = applyDecision(task, decision, 0);
  const count = Object.keys(fields).length;
  if (count > limits.stepsMax && count > Object.keys(task.fields).length) {
    throw invalid('name', `exceeds the limit of ${limits.stepsMax} steps and events per job`);
  }
  const bytes = fieldBytes(fields);
  if (bytes > limits.jobBytesMax && bytes > fieldBytes(task.fields)) {
    throw invalid('job', `has more than ${limits.jobBytesMax} bytes of results and events`);
  }
  return decision;
}

/** The sweeper takes a job this much after the time limit of its step, so that the worker can end the job first. */
export const deadlineGraceMs = 5_000;

export const released = { worker: '', deadlineMs: neverMs } as const;

/** Adds an entry to the history, after that of the claim. */
export function addHistory(
  task: StoredTask,
  nowMs: number,
  entry: Omit<HistoryEntry, 'atMs'>,
  run: TaskRun = runOf(task),
): TaskRun {
  return withHistory(run, ...unrecordedClaim(task, run), { atMs: nowMs, ...entry });
}

export function progressSignal(
  task: StoredTask,
  signals: SignalMaker,
  what: { readonly kind: string } & Readonly<Record<string, unknown>>,
): TaskSignal {
  return signals.progressed(task.head, infoOf(task), what);
}

/** The job with this head may be claimed: the change publishes its queue signal. */
export function toQueue(
  task: StoredTask,
  head: HeadChange,
  { signals }: Pick<DecideContext, 'signals'>,
  fields: Decision['fields'] = {},
): Decision {
  const next = { ...head, state: 'queued' } as const;
  return {
    head: next,
    fields,
    signals: [signals.queued({ ...task.head, ...next }, infoOf(task))],
  };
}

export function waitAfter(backoff: TaskBackoff, failures: number, random?: number): number {
  return backoffMs({ ...backoff, attemptsMax: Infinity }, failures, random ?? Math.random());
}
