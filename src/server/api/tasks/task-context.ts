// Shared by the job routes: schemas of jobs, filters, and tenant access.

import type { Static } from 'typebox';
import { Type } from '../../../contracts/type.ts';
import { MillraceError } from '../../../foundation/error.ts';
import { subjectHeader, tenantSubject } from '../../../store/erasure.ts';
import { taskStates } from '../../../tasks/task-job.ts';
import { taskLimits } from '../../../tasks/task-limits.ts';
import type { Task } from '../../../tasks/task-record.ts';
import type { NewTask, TaskQuery } from '../../../tasks/tasks.ts';
import { flowOf } from '../../../platform/modules/flow-of.ts';
import type { ApiRequest } from '../../../platform/modules/route.ts';
import { errorText, payloadText, payloadValue } from '../../http/masked-fields.ts';
import { closed, text, time, timeOf } from '../admin/admin-context.ts';
import { isWithin, tenantWithin, type ApiPlatform } from '../api-context.ts';

const optional = Type.Optional(Type.String());
const tenantCharsMax = 60;

export const idParams = closed({ id: text(120, 'For example email-send.01995b2e-….') });
export const stateSchema = Type.Enum([...taskStates]);
export const failureSchema = Type.Object({
  message: errorText(),
  name: optional,
  code: optional,
  stack: optional,
  fingerprint: Type.Optional(Type.String({ description: 'Equal for failures of one cause.' })),
  isTerminal: Type.Optional(Type.Boolean({ description: 'Not retried.' })),
});
const progressSchema = Type.Object({
  percent: Type.Number(),
  message: Type.Optional(payloadText()),
});

const step = Type.Object({
  name: Type.String(),
  kind: Type.Enum(['step', 'sleep', 'event', 'children', 'compensation']),
  state: Type.Enum(['running', 'completed', 'failed']),
  attempts: Type.Integer(),
  startedAt: Type.String(),
  endedAt: optional,
  result: Type.Optional(payloadValue()),
  error: Type.Optional(failureSchema),
});

export const taskSchema = Type.Object(
  {
    id: Type.String(),
    type: Type.String(),
    tenant: optional,
    state: stateSchema,
    priority: Type.Integer({ description: '0 to 9; higher runs first.' }),
    payload: payloadValue(),
    labels: Type.Record(Type.String(), Type.String()),
    key: optional,
    concurrencyKey: optional,
    parentId: Type.Optional(Type.String({ description: 'The job that waits for this one.' })),
    attempt: Type.Integer({ description: 'The current or next attempt; the first is 1.' }),
    failures: Type.Integer(),
    fence: Type.Integer({ description: 'The fence token of the last claim.' }),
    revision: Type.Integer(),
    worker: optional,
    progress: Type.Optional(progressSchema),
    result: Type.Optional(payloadValue()),
    error: Type.Optional(failureSchema),
    waitsFor: Type.Optional(Type.Unknown()),
    endsAs: Type.Optional(
      Type.Enum(['failed', 'cancelled'], {
        description: 'The state after the running compensations.',
      }),
    ),
    cancelAt: Type.Optional(
      Type.String({
        description: 'Cancellation was requested; the job is terminated at this time.',
      }),
    ),
    steps: Type.Array(step),
    history: Type.Array(Type.Object({ text: Type.Optional(errorText()) })),
    correlationId: optional,
    causationId: optional,
    enqueuedAt: Type.String(),
    dueAt: optional,
    claimedAt: optional,
    updatedAt: Type.String(),
    endedAt: optional,
  },
  { title: 'Task' },
);

export const timelineSchema = Type.Array(
  Type.Object({
    at: Type.String(),
    what: Type.String({ description: 'For example enqueued, claimed, step completed.' }),
    step: optional,
    worker: optional,
    text: Type.Optional(errorText()),
  }),
);

const millis = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum: taskLimits.durationMsMax, description }));

export const newTaskSchema = closed({
  type: text(64, 'A configured type, for example email-send.'),
  payload: Type.Unknown(),
  tenant: Type.Optional(text(tenantCharsMax, 'Default: the tenant of the caller.')),
  key: Type.Optional(
    text(
      taskLimits.keyCharsMax,
      'A second job with the same key is a duplicate and is not stored.',
    ),
  ),
  dedupeWindowMs: millis('How long the key is remembered. Default: the retention of the job.'),
  priority: Type.Optional(
    Type.Integer({ minimum: taskLimits.priorityMin, maximum: taskLimits.priorityMax }),
  ),
  delayMs: millis('Delay until the job is due.'),
  runAt: Type.Optional(time),
  labels: Type.Optional(Type.Record(Type.String(), Type.String())),
  concurrencyKey: Type.Optional(text(taskLimits.keyCharsMax)),
  correlationId: Type.Optional(text(200)),
  causationId: Type.Optional(text(200)),
});

type Caller = Pick<ApiRequest, 'headers' | 'principal'>;

/** The job of a request, for a tenant that the caller has access to. */
export function newTaskOf(fields: Static<typeof newTaskSchema>, request: Caller): NewTask {
  const { tenant, runAt, labels, ...rest } = fields;
  const { correlationId, headers: trace } = flowOf(request);
  const header = request.headers['x-tenant-id'];
  return {
    correlationId: correlationId?.slice(0, 200),
    enqueuedBy: request.principal?.name,
    trace: trace as NewTask['trace'],
    ...rest,
    labels: labelsWithin(labels, request.principal?.tenant),
    tenant: tenantWithin(request, tenant ?? (header === '' ? undefined : header)),
    runAt: timeOf('runAt', runAt),
  };
}

function labelsWithin(labels: NewTask['labels'], tenant: string | undefined): NewTask['labels'] {
  const subject = labels?.[subjectHeader];
  if (subject === undefined) return labels;
  return { ...labels, [subjectHeader]: tenantSubject(subject, tenant) };
}

export const filterFields = {
  type: Type.Optional(text(64)),
  state: Type.Optional(Type.Array(stateSchema, { description: 'Any of these states.' })),
  tenant: Type.Optional(text(tenantCharsMax)),
  label: Type.Optional(
    Type.Array(text(300), {
      maxItems: taskLimits.labelsMax,
      description: 'name=value; a job must have all labels.',
    }),
  ),
  parentId: Type.Optional(text(120)),
  enqueuedFrom: Type.Optional(time),
  enqueuedBefore: Type.Optional(time),
  updatedFrom: Type.Optional(time),
  updatedBefore: Type.Optional(time),
};

const filterSchema = closed(filterFields);

/** Callers that are bound to a tenant see only the jobs of that tenant. */
export function queryOf(
  filter: Static<typeof filterSchema>,
  request: Pick<ApiRequest, 'principal'>,
): TaskQuery {
  const at = (field: 'enqueuedFrom' | 'enqueuedBefore' | 'updatedFrom' | 'updatedBefore') =>
    timeOf(field, filter[field]);
  return {
    type: filter.type,
    state: filter.state,
    tenant: tenantWithin(request, filter.tenant),
    labels: filter.label === undefined ? undefined : labelsOf(filter.label),
    parentId: filter.parentId,
    enqueuedFrom: at('enqueuedFrom'),
    enqueuedBefore: at('enqueuedBefore'),
    updatedFrom: at('updatedFrom'),
    updatedBefore: at('updatedBefore'),
  };
}

function labelsOf(given: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    given.map((label) => {
      const at = label.indexOf('=');
      if (at > 0) return [label.slice(0, at), label.slice(at + 1)];
      throw new MillraceError('REQUEST_INVALID', `a label must be name=value, not '${label}'`, {
        details: { field: 'label' },
      });
    }),
  );
}

/** Finds a job; reports jobs of other tenants as unknown. */
export async function findTask(
  platform: Pick<ApiPlatform, 'tasks'>,
  { memory, ...request }: Pick<ApiRequest, 'memory' | 'principal'>,
  id: string,
): Promise<Task> {
  const tasks = await platform.tasks();
  const task = await memory.load(() => tasks.get(id));
  if (task !== undefined && isWithin(request, task.tenant)) return task;
  throw new MillraceError('TASK_UNKNOWN', `unknown job '${id}'`, { details: { id } });
}
