// Admin actions on jobs and task types, all of them audited: cancel, retry, pause, resume, drain.

import type { Static } from 'typebox';
import { Type } from '../../../contracts/type.ts';
import { MillraceError } from '../../../foundation/error.ts';
import { filterText } from '../../../platform/audit-log.ts';
import { bulkType } from '../../../platform/failures/bulk-action.ts';
import { taskTypeOf } from '../../../tasks/task-job.ts';
import { taskLimits } from '../../../tasks/task-limits.ts';
import type {
  BulkOptions,
  BulkOutcome,
  BulkProgress,
  TaskQuery,
  Tasks,
} from '../../../tasks/tasks.ts';
import { serverSentEvents, type SentEvent } from '../../../platform/modules/server-sent-events.ts';
import {
  route,
  type RouteResponse,
  type ApiRequest,
  type Route,
} from '../../../platform/modules/route.ts';
import { audited, bulkFilter, closed, text, type AdminContext } from '../admin/admin-context.ts';
import { returns, routesOf } from '../api-context.ts';
import { filterFields, findTask, idParams, queryOf, taskSchema } from './task-context.ts';

const { post } = routesOf('admin: tasks', 'operate');
const reason = Type.Optional(text(500));

const changed = closed({
  changed: Type.Boolean({ description: 'False: no change was necessary.' }),
  task: taskSchema,
});
const bulk = closed({
  changed: Type.Integer(),
  skipped: Type.Integer({ description: 'No change was necessary, or another process was faster.' }),
});
const progressDescription =
  'With `Accept: text/event-stream` the response has `progress` after each page, then `done` or `failed`. Disconnecting stops the action; repeating the request continues it.';
const bulkFields = { ...filterFields, all: Type.Optional(Type.Boolean()) };
const bulkBody = closed(bulkFields);

type AdminAction = 'cancel' | 'retry';

export function taskAdminRoutes(context: AdminContext): readonly Route[] {
  const { platform } = context;

  const one = async (
    request: Pick<ApiRequest, 'address' | 'memory' | 'principal' | 'requestId'>,
    { action, id }: { readonly action: AdminAction; readonly id: string },
    work: (tasks: Tasks) => Promise<boolean>,
  ) => {
    return audited(context, request, { action: `task.${action}`, target: id }, async () => {
      await findTask(platform, request, id);
      const tasks = await platform.tasks();
      const isChanged = await request.memory.load(() => work(tasks));
      return { body: { changed: isChanged, task: await findTask(platform, request, id) } };
    });
  };

  const many = async (
    request: Pick<ApiRequest, 'address' | 'principal' | 'requestId' | 'headers' | 'signal'>,
    { action, body }: { readonly action: AdminAction; readonly body: Static<typeof bulkBody> },
    work: (tasks: Tasks, query: TaskQuery, how: BulkOptions) => Promise<BulkOutcome>,
  ): Promise<RouteResponse> => {
    const filter = bulkFilter(body, 'a filter');
    const { signal } = request;
    const wantsProgress = (request.headers['accept'] ?? '').includes('text/event-stream');
    const progress = createLatest<BulkProgress>();
    const started = Promise.withResolvers<void>();
    const what = { action: `task.${action}`, target: filterText(filter) };
    const ended = audited(context, request, what, async () => {
      const query = queryOf(filter, request);
      const tasks = await platform.tasks();
      started.resolve();
      return work(tasks, query, { signal, onProgress: wantsProgress ? progress.set : undefined });
    });
    if (!wantsProgress) return { body: await ended };
    // Errors before the start of the stream are an ordinary error response.
    await Promise.race([started.promise, ended]);
    return serverSentEvents(progressEvents(ended, progress), request);
  };

  const modeRoute = (verb: 'pause' | 'resume' | 'drain', summary: string): Route =>
    route({
      ...post,
      path: `/admin/jobs/types/{type}/${verb}`,
      summary,
      isGlobal: true,
      params: closed({ type: text(64, 'For example email-send.') }),
      responses: {
        200: returns(
          'The new mode',
          closed({ type: Type.String(), mode: Type.Enum(['open', 'paused', 'draining']) }),
        ),
      },
      handle: (request) => {
        const { type } = request.params;
        return audited(context, request, { action: `task.${verb}`, target: type }, async () => {
          const tasks = await platform.tasks();
          await tasks[verb](type);
          return { body: { type, mode: (await tasks.modes())[type] ?? 'open' } };
        });
      },
    });

  return [
    route({
      ...post,
      path: '/admin/jobs/{id}/cancel',
      summary: 'Cancels a job; a running job is notified, and terminated after the deadline',
      params: idParams,
      body: closed({
        reason,
        deadlineMs: Type.Optional(Type.Integer({ minimum: 0, maximum: taskLimits.durationMsMax })),
      }),
      responses: { 200: returns('The job', changed) },
      handle: (request) => {
        const { id } = request.params;
        return one(request, { action: 'cancel', id }, (tasks) => tasks.cancel(id, request.body));
      },
    }),
    route({
      ...post,
      path: '/admin/jobs/{id}/retry',
      summary:
        'Retries a job that has ended; completed steps do not run again. A bulk action is refused',
      params: idParams,
      body: closed({
        fromStep: Type.Optional(
          text(taskLimits.stepNameCharsMax, 'This step and later ones run again.'),
        ),
      }),
      responses: { 200: returns('The job', changed) },
      handle: (request) => {
        const { id } = request.params;
        return one(request, { action: 'retry', id }, (tasks) => {
          if (taskTypeOf(id) !== bulkType.name) return tasks.retry(id, request.body);
          const message = `job '${id}' is a bulk action: start another one with POST /admin/bulk`;
          throw new MillraceError('REQUEST_INVALID', message, { details: { field: 'id' } });
        });
      },
    }),
    route({
      ...post,
      path: '/admin/jobs/cancel',
      summary: 'Cancels all jobs that match a filter',
      description: progressDescription,
      isLong: true,
      body: closed({ ...bulkFields, reason }),
      responses: { 200: returns('The number of changed jobs', bulk) },
      handle: (request) => {
        const { reason: why, ...body } = request.body;
        return many(request, { action: 'cancel', body }, (tasks, query, how) =>
          tasks.cancelMany(query, { ...how, reason: why }),
        );
      },
    }),
    route({
      ...post,
      path: '/admin/jobs/retry',
      summary: 'Retries all ended jobs that match a filter, except bulk actions',
      description: progressDescription,
      isLong: true,
      body: bulkBody,
      responses: { 200: returns('The number of changed jobs', bulk) },
      handle: (request) =>
        many(request, { action: 'retry', body: request.body }, (tasks, query, how) =>
          tasks.retryMany(query, { ...how, exceptType: bulkType.name }),
        ),
    }),
    modeRoute('pause', 'Pauses a task type: no job starts, new jobs are accepted'),
    modeRoute('resume', 'Resumes a paused or draining task type'),
    modeRoute('drain', 'Drains a task type: existing jobs run, new jobs are rejected'),
  ];
}

/** `progress` at the pace of the reader, always the latest; then `done` or `failed`. */
async function* progressEvents<Progress, Outcome>(
  done: Promise<Outcome>,
  progress: Latest<Progress>,
): AsyncGenerator<SentEvent> {
  const ended = done.then(
    (outcome): SentEvent => ({ event: 'done', data: outcome }),
    (error: unknown): SentEvent => ({ event: 'failed', data: failureOf(error) }),
  );
  for (;;) {
    const next = await Promise.race([ended, progress.next()]);
    if (!('value' in next)) {
      yield next;
      return;
    }
    yield { event: 'progress', data: next.value };
  }
}

/** Keeps the latest value until it is read. */
interface Latest<Value> {
  readonly set: (value: Value) => void;
  /** Resolves with the latest unread value. */
  readonly next: () => Promise<{ readonly value: Value }>;
}

function createLatest<Value>(): Latest<Value> {
  let written = Promise.withResolvers<void>();
  let latest: { readonly value: Value } | undefined;
  return {
    set(value) {
      latest = { value };
      written.resolve();
    },
    async next() {
      for (;;) {
        const unread = latest;
        latest = undefined;
        if (unread !== undefined) return unread;
        written = Promise.withResolvers();
        await written.promise;
      }
    },
  };
}

function failureOf(error: unknown): object {
  if (error instanceof MillraceError) return { code: error.code, detail: error.message };
  return { code: 'INTERNAL', detail: 'Internal error. Search the log.' };
}
