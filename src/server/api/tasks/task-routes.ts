// Jobs over HTTP: enqueue, query, wait for results, follow signals, and monitor outcomes with a durable group.

import { consumerGroups } from '../../../contracts/subjects.ts';
import { Type } from '../../../contracts/type.ts';
import { hasCode, MillraceError } from '../../../foundation/error.ts';
import { taskLimits } from '../../../tasks/task-limits.ts';
import type { Enqueued } from '../../../tasks/tasks.ts';
import { followTasks, type FollowedSignal } from '../../../platform/follow-tasks.ts';
import {
  forgetMonitors,
  monitorTasks,
  taskGroups,
  type MonitoredEnd,
} from '../../../platform/monitor-tasks.ts';
import { serverSentEvents, type SentEvent } from '../../../platform/modules/server-sent-events.ts';
import { route, type ApiRequest, type Route } from '../../../platform/modules/route.ts';
import {
  audited,
  closed,
  globalList,
  pageOf,
  pageQuery,
  text,
  type AdminContext,
} from '../admin/admin-context.ts';
import { errorText, maskedBy, payloadText, payloadValue } from '../../http/masked-fields.ts';
import { tenantWithin, returns, routesOf, type ApiPlatform } from '../api-context.ts';
import {
  failureSchema,
  filterFields,
  findTask,
  idParams,
  newTaskOf,
  newTaskSchema,
  queryOf,
  stateSchema,
  taskSchema,
  timelineSchema,
} from './task-context.ts';

const tag = 'tasks';
const { get: read } = routesOf(tag, 'read');
const { post: append } = routesOf(tag, 'append');
const bulkMax = 1_000;
const waitMsMax = 30_000;
const limitDefault = 100;

const enqueued = closed({
  id: Type.String(),
  isDuplicate: Type.Boolean({ description: 'The id is that of the first job.' }),
});
const counts = Type.Record(Type.String(), Type.Integer());
const typeInfo = Type.Object(
  {
    name: Type.String(),
    mode: Type.Enum(['open', 'paused', 'draining']),
    workers: Type.Integer({ description: 'Concurrent jobs per process.' }),
    stepTimeoutMs: Type.Integer(),
    retries: Type.Integer(),
    priority: Type.Integer(),
    retentionMs: Type.Integer(),
    cron: Type.Optional(Type.Unknown()),
  },
  { title: 'TaskType' },
);
const outcome = Type.Object({
  id: Type.String(),
  state: stateSchema,
  result: Type.Optional(payloadValue()),
  error: Type.Optional(failureSchema),
});

const groupText = text(64, `The consumer group. Default: ${consumerGroups.monitors}.`);

const groupInfo = Type.Object(
  {
    name: Type.String(),
    subject: Type.String(),
    lag: Type.Integer({ description: 'Undelivered messages.' }),
    pending: Type.Integer({ description: 'Delivered but not acknowledged messages.' }),
    leaseMs: Type.Integer(),
    maxAckPending: Type.Integer(),
  },
  { title: 'TaskGroup' },
);

export function taskRoutes(context: AdminContext): readonly Route[] {
  return [...jobRoutes(context.platform), ...monitorRoutes(context)];
}

function jobRoutes(platform: ApiPlatform): readonly Route[] {
  return [
    route({
      ...append,
      path: '/api/v1/jobs',
      summary: 'Enqueues a job',
      description:
        'The job is durable when the response arrives. After an error, repeat the request with the same key.',
      body: newTaskSchema,
      responses: {
        201: returns('Stored', enqueued),
        200: returns('Duplicate: a job with this key exists', enqueued),
        404: { description: 'Unknown task type' },
        409: { description: 'The task type is draining' },
      },
      async handle(request) {
        const tasks = await platform.tasks();
        const job = await tasks.enqueue(newTaskOf(request.body, request));
        return { status: job.isDuplicate ? 200 : 201, body: job };
      },
    }),
    route({
      ...append,
      path: '/api/v1/jobs/bulk',
      summary: 'Enqueues many jobs',
      description:
        'All jobs are validated before any is stored. After an error, repeat the request: jobs with a key are not stored twice.',
      body: closed({ tasks: Type.Array(newTaskSchema, { minItems: 1, maxItems: bulkMax }) }),
      responses: {
        200: returns('In the order of the request', closed({ items: Type.Array(enqueued) })),
      },
      async handle(request) {
        const tasks = await platform.tasks();
        const added = request.body.tasks.map((each) => newTaskOf(each, request));
        const items: readonly Enqueued[] = await tasks.enqueueMany(added);
        return { body: { items } };
      },
    }),
    route({
      ...read,
      path: '/api/v1/jobs',
      summary: 'Jobs, newest first',
      query: closed({ ...filterFields, ...pageQuery }),
      responses: { 200: returns('A page', pageOf(taskSchema)) },
      async handle(request) {
        const { limit = limitDefault, cursor, ...filter } = request.query;
        const tasks = await platform.tasks();
        const wanted = queryOf(filter, request);
        const bound = { limit: Math.min(limit, taskLimits.pageMax), cursor };
        const body = await request.memory.page(bound, async (part) => {
          const found = await tasks.list(wanted, part);
          return { items: found.tasks, cursor: found.cursor };
        });
        return { body };
      },
    }),
    globalList({
      ...read,
      path: '/api/v1/jobs/counts',
      summary: 'The number of jobs by type and state, for all tenants',
      responses: {
        200: returns('By type', pageOf(closed({ type: Type.String(), states: counts }))),
      },
      list: async () => (await platform.tasks()).counts(),
    }),
    route({
      ...read,
      path: '/api/v1/jobs/types',
      summary: 'The configured task types and their modes',
      responses: { 200: returns('All task types', pageOf(typeInfo)) },
      async handle() {
        const tasks = await platform.tasks();
        const modes = await tasks.modes();
        const items = tasks.types().map((type) => ({ ...type, mode: modes[type.name] ?? 'open' }));
        return { body: { items } };
      },
    }),
    globalList({
      ...read,
      path: '/api/v1/jobs/workers',
      summary: 'Workers, for all tenants',
      responses: {
        200: {
          description: 'Active and recently stopped workers',
          schema: pageOf(
            Type.Object({
              worker: Type.String(),
              aliveUntil: Type.String(),
              isAlive: Type.Boolean(),
              about: Type.Optional(Type.Unknown()),
            }),
          ),
        },
      },
      list: async () => (await platform.tasks()).workers(),
    }),
    route({
      ...read,
      path: '/api/v1/jobs/tail',
      summary: 'Follows the progress and the outcomes of jobs (server-sent events)',
      description:
        'Starts with the next signal. Events are `progress` and `terminal`. Signals can be lost; the state of the job is authoritative.',
      isLong: true,
      query: closed({
        type: Type.Optional(text(64)),
        id: Type.Optional(text(120, 'Follow this job only, until it has ended.')),
        tenant: Type.Optional(text(60)),
      }),
      responses: { 200: { description: 'A stream of signals', contentType: 'text/event-stream' } },
      async handle(request) {
        const { id } = request.query;
        if (id !== undefined) await findTask(platform, request, id);
        const [tasks, bus] = await Promise.all([platform.tasks(), platform.taskBus()]);
        const signals = await followTasks(
          { tasks, bus },
          {
            ...request.query,
            tenant: tenantWithin(request, request.query.tenant),
            signal: request.signal,
          },
        );
        return serverSentEvents(signalEvents(signals, request.principal), request);
      },
    }),
    route({
      ...read,
      path: '/api/v1/jobs/{id}',
      summary: 'A job with its steps, result or error, and timeline',
      params: idParams,
      responses: {
        200: returns('The job', Type.Object({ task: taskSchema, timeline: timelineSchema })),
        404: { description: 'Unknown job, or its retention has ended' },
      },
      async handle(request) {
        const task = await findTask(platform, request, request.params.id);
        const tasks = await platform.tasks();
        const timeline = await request.memory.load(() => tasks.timeline(task.id));
        return { body: { task, timeline } };
      },
    }),
    route({
      ...read,
      path: '/api/v1/jobs/{id}/result',
      summary: 'The outcome of a job, optionally waiting until it is terminal',
      isLong: true,
      params: idParams,
      query: closed({
        waitMs: Type.Optional(
          Type.Integer({ minimum: 0, maximum: waitMsMax, description: 'Default: 0.' }),
        ),
      }),
      responses: {
        200: returns('The job has ended', outcome),
        202: returns('The job has not ended', outcome),
      },
      async handle(request) {
        const { id } = request.params;
        const tasks = await platform.tasks();
        await findTask(platform, request, id);
        try {
          const timeoutMs = request.query.waitMs ?? 0;
          const wait = { timeoutMs, signal: request.signal, aroundLoad: request.memory.load };
          const task = await tasks.whenEnded(id, wait);
          const { state, result, error } = task;
          return { body: { id, state, result, error } };
        } catch (error) {
          if (!hasCode(error, 'TASK_TIMEOUT')) throw error;
          return { status: 202, body: { id, state: error.details['state'] } };
        }
      },
    }),
    route({
      ...append,
      path: '/api/v1/jobs/{id}/events',
      summary: 'Sends an event to a job that waits for it now or will wait for it',
      params: idParams,
      body: closed({
        name: text(taskLimits.stepNameCharsMax, 'For example approved.'),
        payload: Type.Optional(Type.Unknown()),
        eventId: Type.Optional(text(100, 'Sending the same id again has no effect.')),
      }),
      responses: {
        202: returns('Stored with the job', closed({ id: Type.String() })),
        409: { description: 'The job has ended' },
      },
      async handle(request) {
        const { id } = request.params;
        await findTask(platform, request, id);
        const tasks = await platform.tasks();
        const isSent = await request.memory.load(() => tasks.sendEvent(id, request.body));
        if (isSent) return { status: 202, body: { id } };
        throw new MillraceError('TASK_STALE', `job '${id}' has already ended`, { details: { id } });
      },
    }),
  ];
}

function monitorRoutes(context: AdminContext): readonly Route[] {
  const { platform } = context;
  return [
    globalList({
      ...read,
      path: '/api/v1/jobs/groups',
      summary: 'Consumer groups of the job streams and their lag, for all tenants',
      responses: { 200: returns('All groups', pageOf(groupInfo)) },
      list: async () => taskGroups(await platform.taskBus()),
    }),
    route({
      method: 'GET',
      path: '/api/v1/jobs/ends',
      summary: 'Follows the outcomes of all jobs with a durable group (server-sent events)',
      description:
        'Resumes at the position of the group. Each outcome goes to one reader of the group and is acknowledged when the next one is sent; after a disconnect the last ones are sent again. Delete unused groups, because they keep the streams from being trimmed.',
      tag,
      access: 'admin',
      isGlobal: true,
      isLong: true,
      query: closed({ group: Type.Optional(groupText) }),
      responses: { 200: { description: 'A stream of outcomes', contentType: 'text/event-stream' } },
      async handle(request) {
        const { group } = request.query;
        const bus = await platform.taskBus();
        const ends = await monitorTasks(bus, { group, signal: request.signal });
        return serverSentEvents(outcomeEvents(ends), request);
      },
    }),
    route({
      method: 'POST',
      path: '/admin/jobs/ends/{group}/forget',
      summary: 'Deletes a consumer group of job outcomes',
      tag: 'admin: tasks',
      access: 'admin',
      isGlobal: true,
      params: closed({ group: groupText }),
      responses: {
        200: returns('False: no such group', closed({ deleted: Type.Boolean() })),
      },
      handle: (request) => {
        const { group } = request.params;
        const what = { action: 'task.forget-monitors', target: group };
        return audited(context, request, what, async () => {
          return { body: { deleted: await forgetMonitors(await platform.taskBus(), group) } };
        });
      },
    }),
  ];
}

/** The fields of a signal that quote payloads. */
const signalFields = Type.Object({ error: errorText(), message: payloadText() });

async function* signalEvents(
  signals: AsyncIterable<FollowedSignal>,
  principal: ApiRequest['principal'],
): AsyncGenerator<SentEvent> {
  for await (const { kind, id, at, signal } of signals) {
    yield { event: kind, id, data: maskedBy(signalFields, { at, ...signal }, principal) };
  }
}

async function* outcomeEvents(ends: AsyncIterable<MonitoredEnd>): AsyncGenerator<SentEvent> {
  for await (const { id, at, tenant, deliveryCount, signal } of ends) {
    yield { event: 'terminal', id, data: { at, tenant, deliveryCount, ...signal } };
  }
}
