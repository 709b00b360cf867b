// Tasks over HTTP: jobs in, what became of them, and what is told while they run.

import { Type } from '../../../contracts/type.ts';
import { hasCode, MillraceError } from '../../../foundation/error.ts';
import { taskLimits } from '../../../tasks/task-limits.ts';
import type { Enqueued } from '../../../tasks/tasks.ts';
import { followTasks, type FollowedSignal } from '../../../platform/follow-tasks.ts';
import { serverSentEvents, type SentEvent } from '../../../platform/modules/server-sent-events.ts';
import { route, type Route } from '../../../platform/modules/route.ts';
import { checkGlobal, closed, pageOf, pageQuery, tenantWithin, text } from '../admin/admin-context.ts';
import type { ApiPlatform } from '../api-context.ts';
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
const bulkMax = 1_000;
const waitMsMax = 30_000;
const limitDefault = 100;

const enqueued = closed({
  id: Type.String(),
  isDuplicate: Type.Boolean({ description: 'It was there: the id is of the first one.' }),
});
const counts = Type.Record(Type.String(), Type.Integer());
const typeInfo = Type.Object(
  {
    name: Type.String(),
    mode: Type.Enum(['open', 'paused', 'draining']),
    workers: Type.Integer({ description: 'Jobs at once in one process.' }),
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
  result: Type.Optional(Type.Unknown()),
  error: Type.Optional(failureSchema),
});

export function taskRoutes(platform: ApiPlatform): readonly Route[] {
  return [
    route({
      method: 'POST',
      path: '/api/v1/jobs',
      summary: 'Enqueues a job',
      description: 'Durable when it is answered. After an error repeat it with the same key.',
      tag,
      access: 'append',
      body: newTaskSchema,
      answers: {
        201: { description: 'Stored', schema: enqueued },
        200: { description: 'One with this key was there', schema: enqueued },
        404: { description: 'No such type is configured' },
        409: { description: 'The type is drained' },
      },
      async handle(request) {
        const tasks = await platform.tasks();
        const made = await tasks.enqueue(newTaskOf(request.body, request));
        return { status: made.isDuplicate ? 200 : 201, body: made };
      },
    }),
    route({
      method: 'POST',
      path: '/api/v1/jobs/bulk',
      summary: 'Enqueues many jobs',
      description:
        'All are checked before any is stored. After an error repeat it: those with a key are not stored twice.',
      tag,
      access: 'append',
      body: closed({ tasks: Type.Array(newTaskSchema, { minItems: 1, maxItems: bulkMax }) }),
      answers: {
        200: {
          description: 'In the order asked for',
          schema: closed({ items: Type.Array(enqueued) }),
        },
      },
      async handle(request) {
        const tasks = await platform.tasks();
        const wanted = request.body.tasks.map((each) => newTaskOf(each, request));
        const items: readonly Enqueued[] = await tasks.enqueueMany(wanted);
        return { body: { items } };
      },
    }),
    route({
      method: 'GET',
      path: '/api/v1/jobs',
      summary: 'Jobs, newest first',
      tag,
      access: 'read',
      query: closed({ ...filterFields, ...pageQuery }),
      answers: { 200: { description: 'A page', schema: pageOf(taskSchema) } },
      async handle(request) {
        const { limit = limitDefault, cursor, ...asked } = request.query;
        const tasks = await platform.tasks();
        const page = await tasks.list(queryOf(asked, request), {
          limit: Math.min(limit, taskLimits.pageMax),
          cursor,
        });
        const { cursor: next } = page;
        return { body: { items: page.tasks, ...(next === undefined ? {} : { cursor: next }) } };
      },
    }),
    route({
      method: 'GET',
      path: '/api/v1/jobs/counts',
      summary: 'How many jobs of each type are in each state, of all tenants',
      tag,
      access: 'read',
      answers: {
        200: {
          description: 'By type',
          schema: pageOf(closed({ type: Type.String(), states: counts })),
        },
      },
      async handle(request) {
        checkGlobal(request);
        const tasks = await platform.tasks();
        return { body: { items: await tasks.counts() } };
      },
    }),
    route({
      method: 'GET',
      path: '/api/v1/jobs/types',
      summary: 'The configured types, and whether they are open',
      tag,
      access: 'read',
      answers: { 200: { description: 'All of them', schema: pageOf(typeInfo) } },
      async handle() {
        const tasks = await platform.tasks();
        const modes = await tasks.modes();
        const items = tasks.types().map((type) => ({ ...type, mode: modes[type.name] ?? 'open' }));
        return { body: { items } };
      },
    }),
    route({
      method: 'GET',
      path: '/api/v1/jobs/workers',
      summary: 'Who works, of all tenants',
      tag,
      access: 'read',
      answers: {
        200: {
          description: 'Those that were heard of lately',
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
      async handle(request) {
        checkGlobal(request);
        const tasks = await platform.tasks();
        return { body: { items: await tasks.workers() } };
      },
    }),
    route({
      method: 'GET',
      path: '/api/v1/jobs/tail',
      summary: 'Follows what is told of jobs while they run and when they end (server-sent events)',
      description:
        'From now on. Events are `progress` and `terminal`; the streams are signals: what counts is the job.',
      tag,
      access: 'read',
      isLong: true,
      query: closed({
        type: Type.Optional(text(64)),
        id: Type.Optional(text(120, 'Of one job; ends when it has ended.')),
        tenant: Type.Optional(text(60)),
      }),
      answers: { 200: { description: 'Signals as they come', contentType: 'text/event-stream' } },
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
        return serverSentEvents(toEvents(signals), request);
      },
    }),
    route({
      method: 'GET',
      path: '/api/v1/jobs/{id}',
      summary: 'A job: its steps, its result or error, and what happened to it',
      tag,
      access: 'read',
      params: idParams,
      answers: {
        200: {
          description: 'The job',
          schema: Type.Object({ task: taskSchema, timeline: timelineSchema }),
        },
        404: { description: 'There is none, or its retention is over' },
      },
      async handle(request) {
        const task = await findTask(platform, request, request.params.id);
        const tasks = await platform.tasks();
        return { body: { task, timeline: await tasks.timeline(task.id) } };
      },
    }),
    route({
      method: 'GET',
      path: '/api/v1/jobs/{id}/result',
      summary: 'What came of a job, waiting for its end if asked to',
      tag,
      access: 'read',
      isLong: true,
      params: idParams,
      query: closed({
        waitMs: Type.Optional(
          Type.Integer({ minimum: 0, maximum: waitMsMax, description: 'Default: 0.' }),
        ),
      }),
      answers: {
        200: { description: 'It has ended', schema: outcome },
        202: { description: 'It has not', schema: outcome },
      },
      async handle(request) {
        const { id } = request.params;
        const tasks = await platform.tasks();
        await findTask(platform, request, id);
        try {
          const timeoutMs = request.query.waitMs ?? 0;
          const task = await tasks.whenEnded(id, { timeoutMs, signal: request.signal });
          const { state, result, error } = task;
          return { body: { id, state, result, error } };
        } catch (error) {
          if (!hasCode(error, 'TASK_TIMEOUT')) throw error;
          return { status: 202, body: { id, state: error.details['state'] } };
        }
      },
    }),
    route({
      method: 'POST',
      path: '/api/v1/jobs/{id}/events',
      summary: 'Sends an event to a job that waits for it, now or later',
      tag,
      access: 'append',
      params: idParams,
      body: closed({
        name: text(taskLimits.stepNameCharsMax, 'As in approved.'),
        payload: Type.Optional(Type.Unknown()),
        eventId: Type.Optional(text(100, 'The same one again: no second event.')),
      }),
      answers: {
        202: { description: 'The job has it', schema: closed({ id: Type.String() }) },
        409: { description: 'The job has ended' },
      },
      async handle(request) {
        const { id } = request.params;
        await findTask(platform, request, id);
        const tasks = await platform.tasks();
        if (await tasks.sendEvent(id, request.body)) return { status: 202, body: { id } };
        throw new MillraceError('TASK_STALE', `job ${id} has ended`, { details: { id } });
      },
    }),
  ];
}

async function* toEvents(signals: AsyncIterable<FollowedSignal>): AsyncGenerator<SentEvent> {
  for await (const { kind, id, at, signal } of signals) {
    yield { event: kind, id, data: { at, ...signal } };
  }
}
