// Tasks for administrators: what ends jobs, runs them again, and holds types back. All of it on record.

import type { Static } from 'typebox';
import { Type } from '../../../contracts/type.ts';
import { filterText } from '../../../platform/audit-log.ts';
import { taskLimits } from '../../../tasks/task-limits.ts';
import type {
  BulkOptions,
  BulkOutcome,
  BulkProgress,
  TaskQuery,
  Tasks,
} from '../../../tasks/tasks.ts';
import { serverSentEvents } from '../../../platform/modules/server-sent-events.ts';
import { route, type Answer, type ApiRequest, type Route } from '../../../platform/modules/route.ts';
import {
  audited,
  checkChosen,
  checkGlobal,
  closed,
  text,
  type AdminContext,
} from '../admin/admin-context.ts';
import { filterFields, findTask, idParams, queryOf, taskSchema } from './task-context.ts';
import { createProgressNews, toldProgress, wantsProgress } from '../told-progress.ts';

const tag = 'admin: tasks';
const access = 'admin';
const reason = Type.Optional(text(500));

const changed = closed({
  changed: Type.Boolean({ description: 'False: there was nothing to do.' }),
  task: taskSchema,
});
const bulk = closed({
  changed: Type.Integer(),
  skipped: Type.Integer({ description: 'Nothing to do, or somebody else was quicker.' }),
});
const followed =
  'With `Accept: text/event-stream` it tells how far it is: `progress` after each page, then `done`, or `failed`. Whoever goes away ends it; what was done stays done, and the same call again does the rest.';
const bulkFields = { ...filterFields, all: Type.Optional(Type.Boolean()) };
const bulkBody = closed(bulkFields);

type AdminAction = 'cancel' | 'retry';

export function taskAdminRoutes(context: AdminContext): readonly Route[] {
  const { platform } = context;

  const one = async (
    request: Pick<ApiRequest, 'address' | 'principal' | 'requestId'>,
    deed: { readonly action: AdminAction; readonly id: string },
    work: (tasks: Tasks) => Promise<boolean>,
  ) => {
    const { action, id } = deed;
    return audited(context, request, { action: `task.${action}`, target: id }, async () => {
      await findTask(platform, request, id);
      const isChanged = await work(await platform.tasks());
      return { body: { changed: isChanged, task: await findTask(platform, request, id) } };
    });
  };

  const many = async (
    request: Pick<ApiRequest, 'address' | 'principal' | 'requestId' | 'headers' | 'signal'>,
    deed: { readonly action: AdminAction; readonly asked: Static<typeof bulkBody> },
    work: (tasks: Tasks, query: TaskQuery, how: BulkOptions) => Promise<BulkOutcome>,
  ): Promise<Answer> => {
    const { all, ...asked } = deed.asked;
    checkChosen({ all: all === true }, Object.keys(asked).length > 0, 'a filter');
    const { signal } = request;
    const isTold = wantsProgress(request);
    const news = createProgressNews<BulkProgress>();
    const began = Promise.withResolvers<void>();
    const what = { action: `task.${deed.action}`, target: filterText(asked) };
    const ended = audited(context, request, what, async () => {
      const query = queryOf(asked, request);
      const tasks = await platform.tasks();
      began.resolve();
      return work(tasks, query, { signal, onProgress: isTold ? news.tell : undefined });
    });
    if (!isTold) return { body: await ended };
    // Before it has begun, what is wrong is the answer.
    await Promise.race([began.promise, ended]);
    return serverSentEvents(toldProgress(ended, news), request);
  };

  const modeRoute = (verb: 'pause' | 'resume' | 'drain', summary: string): Route =>
    route({
      method: 'POST',
      path: `/admin/jobs/types/{type}/${verb}`,
      summary,
      tag,
      access,
      params: closed({ type: text(64, 'As in email-send.') }),
      answers: {
        200: {
          description: 'As it is now',
          schema: closed({ type: Type.String(), mode: Type.Enum(['open', 'paused', 'draining']) }),
        },
      },
      handle: (request) => {
        const { type } = request.params;
        return audited(context, request, { action: `task.${verb}`, target: type }, async () => {
          checkGlobal(request);
          const tasks = await platform.tasks();
          await tasks[verb](type);
          return { body: { type, mode: (await tasks.modes())[type] ?? 'open' } };
        });
      },
    });

  return [
    route({
      method: 'POST',
      path: '/admin/jobs/{id}/cancel',
      summary: 'Cancels a job; one that runs is told, and ended by force after the deadline',
      tag,
      access,
      params: idParams,
      body: closed({
        reason,
        deadlineMs: Type.Optional(Type.Integer({ minimum: 0, maximum: taskLimits.durationMsMax })),
      }),
      answers: { 200: { description: 'The job', schema: changed } },
      handle: (request) => {
        const { id } = request.params;
        return one(request, { action: 'cancel', id }, (tasks) => tasks.cancel(id, request.body));
      },
    }),
    route({
      method: 'POST',
      path: '/admin/jobs/{id}/retry',
      summary: 'Runs a job that has ended again; finished steps stay finished',
      tag,
      access,
      params: idParams,
      body: closed({
        fromStep: Type.Optional(
          text(taskLimits.stepNameCharsMax, 'This one and those behind it run again.'),
        ),
      }),
      answers: { 200: { description: 'The job', schema: changed } },
      handle: (request) => {
        const { id } = request.params;
        return one(request, { action: 'retry', id }, (tasks) => tasks.retry(id, request.body));
      },
    }),
    route({
      method: 'POST',
      path: '/admin/jobs/cancel',
      summary: 'Cancels all jobs of a filter',
      description: followed,
      tag,
      access,
      isLong: true,
      body: closed({ ...bulkFields, reason }),
      answers: { 200: { description: 'How many', schema: bulk } },
      handle: (request) => {
        const { reason: why, ...asked } = request.body;
        return many(request, { action: 'cancel', asked }, (tasks, query, how) =>
          tasks.cancelMany(query, { ...how, reason: why }),
        );
      },
    }),
    route({
      method: 'POST',
      path: '/admin/jobs/retry',
      summary: 'Runs all jobs of a filter that have ended again',
      description: followed,
      tag,
      access,
      isLong: true,
      body: bulkBody,
      answers: { 200: { description: 'How many', schema: bulk } },
      handle: (request) =>
        many(request, { action: 'retry', asked: request.body }, (tasks, query, how) =>
          tasks.retryMany(query, how),
        ),
    }),
    modeRoute('pause', 'No worker gets a job of the type; new ones are taken'),
    modeRoute('resume', 'Undoes pause and drain'),
    modeRoute('drain', 'Takes no new jobs of the type; what is there is worked off'),
  ];
}
