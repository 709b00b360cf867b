// Validates new jobs and claim requests, and converts them to the form that an engine stores and claims by.

import { checkSubjectToken } from '../../contracts/subject-tokens.ts';
import { idFromKey, type IdSource } from '../../foundation/ids.ts';
import {
  checkWorker,
  encodeValue,
  invalid,
  refOf,
  shortString,
  toLabels,
  checkInteger,
} from './check-task.ts';
import { deadlineGraceMs } from './task-decision.ts';
import type { ClaimRequest, EnqueueEntry } from '../task-engine.ts';
import { neverMs, type TaskHead } from '../task-job.ts';
import { taskLimits as limits } from '../task-limits.ts';
import type { TaskInfo, TaskRun } from '../task-record.ts';
import type { SignalMaker } from '../task-signal.ts';
import { concurrencyKeyOf, type KnownTypes, type TaskType } from '../task-type.ts';
import type { ClaimOptions, NewTask } from '../tasks.ts';

/**
 * The id of the job with this key, for types without a dedupe window.
 *
 * @example
 * import { taskIdOf } from 'millrace/tasks';
 *
 * console.log(taskIdOf({ type: 'email-send', tenant: 'core', key: 'welcome-c-1' }));
 */
export function taskIdOf(task: {
  readonly type: string;
  readonly tenant?: string | undefined;
  readonly key: string;
}): string {
  const { type, tenant = '', key } = task;
  return `${type}.${idFromKey(`task|${tenant}|${type}|${key}`)}`;
}

export function prepareTask(
  task: NewTask,
  context: {
    readonly type: TaskType;
    readonly ids: IdSource;
    readonly nowMs: number;
    readonly signals: SignalMaker;
  },
): EnqueueEntry {
  const { type, ids, nowMs, signals } = context;
  checkSubjectToken('task type', task.type);
  const tenant = task.tenant === undefined ? '' : shortString('tenant', task.tenant, 60);
  const key = task.key === undefined ? undefined : shortString('key', task.key, limits.keyCharsMax);
  const windowMs = checkInteger('dedupeWindowMs', task.dedupeWindowMs ?? type.dedupeWindowMs ?? 0, {
    min: 0,
    max: limits.durationMsMax,
  });
  const isById = key !== undefined && windowMs === 0;
  const payload = encodeValue('payload', task.payload);
  const dueAtMs = dueOf(task, nowMs);
  const isDue = dueAtMs <= nowMs;
  const head: TaskHead = {
    id: isById ? taskIdOf({ type: task.type, tenant, key }) : `${task.type}.${ids.next()}`,
    type: task.type,
    tenant,
    state: isDue ? 'queued' : 'scheduled',
    revision: 1,
    fence: 0,
    priority: checkInteger('priority', task.priority ?? type.priority, {
      min: limits.priorityMin,
      max: limits.priorityMax,
    }),
    dueAtMs,
    concurrencyKey:
      task.concurrencyKey === undefined
        ? concurrencyKeyOf(type, { tenant, payload: task.payload })
        : `${tenant}|${shortString('concurrencyKey', task.concurrencyKey, limits.keyCharsMax)}`,
    failures: 0,
    worker: '',
    deadlineMs: neverMs,
    cancelAtMs: 0,
    parentId: task.parentId === undefined ? '' : refOf(task.parentId).id,
    labels: toLabels(task.labels),
    enqueuedAtMs: nowMs,
    claimedAtMs: 0,
    updatedAtMs: nowMs,
    endedAtMs: 0,
  };
  const info: TaskInfo = {
    key,
    correlationId: task.correlationId,
    causationId: task.causationId,
    trace: task.trace,
    enqueuedBy: task.enqueuedBy,
  };
  const run: TaskRun = { history: [{ atMs: nowMs, what: 'enqueued' }] };
  return {
    head,
    fields: { payload, info: JSON.stringify(info), run: JSON.stringify(run) },
    dedupe:
      key === undefined || windowMs === 0
        ? undefined
        : { key: `${tenant}|${key}`, untilMs: nowMs + windowMs },
    signals: isDue ? [signals.queued(head, info)] : [],
  };
}

function dueOf({ delayMs, runAt }: NewTask, nowMs: number): number {
  if (delayMs !== undefined && runAt !== undefined) {
    throw invalid('delayMs', 'and runAt cannot be combined: set one of them');
  }
  if (runAt !== undefined) {
    if (!(runAt instanceof Date) || Number.isNaN(runAt.getTime())) {
      throw invalid('runAt', 'must be a valid Date');
    }
    return Math.max(runAt.getTime(), nowMs);
  }
  if (delayMs === undefined) return nowMs;
  return nowMs + checkInteger('delayMs', delayMs, { min: 0, max: limits.durationMsMax });
}

export function claimRequest(
  options: ClaimOptions,
  { types, nowMs }: { readonly types: KnownTypes; readonly nowMs: number },
): ClaimRequest {
  const leaseMs = leaseOf(options.leaseMs);
  const rules = Object.entries(options.types).map(([name, limit]) => {
    const type = types.workable(name);
    return {
      type: name,
      limit: checkInteger(`types.${name}`, limit, { min: 0, max: limits.workersMax }),
      deadlineAfterMs: type.stepTimeoutMs + deadlineGraceMs,
      rate: type.rate,
      keyLimit: type.concurrencyLimit,
    };
  });
  const room = rules.reduce((sum, { limit }) => sum + limit, 0);
  const limit = checkInteger('limit', options.limit ?? Math.min(room, limits.batchMax), {
    min: 0,
    max: limits.batchMax,
  });
  return {
    worker: checkWorker(options.worker),
    aliveUntilMs: nowMs + leaseMs,
    rules: rules.filter((rule) => rule.limit > 0),
    limit,
    nowMs,
  };
}

export function leaseOf(leaseMs: number = limits.leaseMsDefault): number {
  return checkInteger('leaseMs', leaseMs, { min: limits.leaseMsMin, max: limits.durationMsMax });
}
