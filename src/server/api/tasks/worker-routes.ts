// The protocol of workers in any language: claim jobs, send heartbeats, report steps and outcomes. A claim is an id and
// a fence token; a request with an outdated fence token gets 409 and changes nothing.

import type { Static, TObject, TProperties } from 'typebox';
import { Type } from '../../../contracts/type.ts';
import { taskLimits } from '../../../tasks/task-limits.ts';
import type { ClaimedTask, Tasks, TaskToken } from '../../../tasks/tasks.ts';
import { route, type ApiRequest, type Route } from '../../../platform/modules/route.ts';
import { pageBytes, textBytes } from '../../http/list-page.ts';
import { closed, text, time, timeOf } from '../admin/admin-context.ts';
import { returns, routesOf, type ApiPlatform } from '../api-context.ts';
import { failureSchema, idParams, newTaskOf, newTaskSchema, taskSchema } from './task-context.ts';

/** Workers see the jobs of all tenants. */
const post = { ...routesOf('tasks: workers', 'work').post, isGlobal: true } as const;
const waitMsMax = 30_000;
const childrenMax = 1_000;

const worker = text(taskLimits.workerCharsMax, 'Unique per process start.');
const leaseMs = Type.Optional(
  Type.Integer({
    minimum: taskLimits.leaseMsMin,
    maximum: 3_600_000,
    description: 'How long the claims are valid without a heartbeat. Default: 15,000.',
  }),
);
const fence = Type.Integer({ minimum: 0, description: 'The fence token of the claim.' });
const token = closed({ id: text(120), fence });
const stepName = text(taskLimits.stepNameCharsMax, 'Unique in the job.');
const kind = Type.Optional(Type.Enum(['step', 'sleep', 'event', 'children', 'compensation']));
const millis = Type.Optional(Type.Integer({ minimum: 0, maximum: taskLimits.durationMsMax }));
const failure = closed({
  message: Type.String({ maxLength: 100_000 }),
  code: Type.Optional(Type.String({ maxLength: 200 })),
  isTerminal: Type.Optional(Type.Boolean({ description: 'Do not retry.' })),
});

const claimState = Type.Object({
  id: Type.String(),
  state: Type.Enum(['claimed', 'lost'], {
    description: 'lost: stop, the claim has ended.',
  }),
  cancelAt: Type.Optional(
    Type.String({
      description: 'Cancellation was requested: stop before this time and report `cancelled`.',
    }),
  ),
});

const claimBody = closed({
  worker,
  types: Type.Record(Type.String(), Type.Integer({ minimum: 0, maximum: taskLimits.workersMax }), {
    description: 'The maximum number of jobs by type.',
  }),
  limit: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: taskLimits.batchMax,
      description: 'The maximum number of jobs in total.',
    }),
  ),
  waitMs: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: waitMsMax,
      description: 'Default: 0, no wait.',
    }),
  ),
  leaseMs,
});

/** Jobs are read whole, so only a few at once, as their size is not known before. */
const claimedAtOnce = 4;

/**
 * Claims a few jobs at a time, until the response is large; only the first claim waits. The types come first in turns, so
 * that large jobs of one type do not keep the others out of the responses.
 */
async function claimSome(
  tasks: Tasks,
  { body, signal, memory }: ApiRequest<unknown, unknown, Static<typeof claimBody>>,
  turn: number,
): Promise<readonly ClaimedTask[]> {
  const { types, limit = taskLimits.batchMax, waitMs = 0, ...options } = body;
  const names = Object.keys(types);
  let order = [...names.slice(turn % names.length), ...names.slice(0, turn % names.length)];
  const left = new Map(Object.entries(types));
  const items: ClaimedTask[] = [];
  let bytes = 0;
  for (let isFirst = true; ; isFirst = false) {
    const size = Math.min(claimedAtOnce, limit - items.length);
    const claim = tasks.claim({
      ...options,
      types: Object.fromEntries(order.map((name) => [name, left.get(name) ?? 0])),
      limit: size,
      waitMs: isFirst ? waitMs : 0,
      signal,
      aroundClaim: memory.load,
    });
    const found = await (isFirst ? claim : claim.catch(() => []));
    items.push(...found);
    bytes += textBytes(JSON.stringify(found));
    if (found.length < size || items.length >= limit || bytes >= pageBytes) return items;
    const served = new Set(found.map(({ task: { type } }) => type));
    for (const { task } of found) left.set(task.type, (left.get(task.type) ?? 0) - 1);
    order = [...order.filter((name) => !served.has(name)), ...served];
  }
}

export function workerRoutes(platform: ApiPlatform): readonly Route[] {
  let turn = 0;

  /** A report of the worker that has claimed the job. 409: another worker has claimed it, or it has ended. */
  const report = <Fields extends TProperties>(
    name: string,
    summary: string,
    fields: Fields,
    {
      work,
      response = closed({ id: Type.String() }),
    }: {
      readonly work: (
        tasks: Tasks,
        token: TaskToken,
        fields: Static<TObject<Fields>>,
        request: ApiRequest,
      ) => Promise<object | void>;
      readonly response?: ReturnType<typeof closed> | undefined;
    },
  ): Route =>
    route({
      ...post,
      path: `/api/v1/worker/jobs/{id}/${name}`,
      summary,
      params: idParams,
      body: closed({ fence, ...fields }),
      responses: {
        200: returns('Durable', response),
        409: { description: 'The fence token is outdated or the job has ended: stop' },
      },
      async handle(request) {
        const { id } = request.params;
        const { fence: own, ...reported } = request.body as { readonly fence: number };
        const result = await work(
          await platform.tasks(),
          { id, fence: own },
          // Validated by the schema above: the fence token and these fields.
          reported as Static<TObject<Fields>>,
          request,
        );
        return { body: result ?? { id } };
      },
    });

  return [
    route({
      ...post,
      path: '/api/v1/worker/claim',
      summary: 'Claims due jobs, waiting for the first one',
      description:
        'Each job has its payload, its completed steps with results, and a token. The response ends early with the job that makes it large: claim again. Needs credentials for all tenants.',
      isLong: true,
      body: claimBody,
      responses: {
        200: returns(
          'The claimed jobs; none if no job was due in time',
          closed({ items: Type.Array(closed({ token, task: taskSchema })) }),
        ),
      },
      async handle(request) {
        const tasks = await platform.tasks();
        turn += 1;
        const items = await claimSome(tasks, request, turn);
        // The client has disconnected, so other workers can have the jobs immediately.
        if (request.signal.aborted) {
          await Promise.allSettled(items.map((each) => tasks.release(each.token)));
        }
        return { body: { items } };
      },
    }),
    route({
      ...post,
      path: '/api/v1/worker/heartbeat',
      summary: 'Renews the claims of a worker and returns their states',
      description: 'Recommended interval: a third of the lease.',
      body: closed({
        worker,
        leaseMs,
        tokens: Type.Optional(Type.Array(token, { maxItems: taskLimits.workersMax })),
        about: Type.Optional(Type.Unknown({ description: 'Shown in the list of workers.' })),
      }),
      responses: {
        200: returns('One state per token', closed({ items: Type.Array(claimState) })),
      },
      async handle(request) {
        const tasks = await platform.tasks();
        return { body: { items: await tasks.heartbeat(request.body) } };
      },
    }),
    route({
      ...post,
      path: '/api/v1/worker/leave',
      summary: 'Deregisters a worker and releases its jobs',
      body: closed({ worker }),
      responses: { 200: returns('Deregistered', closed({ worker: Type.String() })) },
      async handle(request) {
        const tasks = await platform.tasks();
        await tasks.leave(request.body.worker);
        return { body: { worker: request.body.worker } };
      },
    }),
    report(
      'steps/start',
      'Starts a step and its time limit',
      { name: stepName, kind, timeoutMs: millis },
      { work: (tasks, own, fields) => tasks.startStep(own, fields) },
    ),
    report(
      'steps/finish',
      'Completes a step; it does not run again',
      {
        name: stepName,
        kind,
        result: Type.Optional(Type.Unknown()),
        isCompensable: Type.Optional(
          Type.Boolean({
            description: 'The step is compensated if the job fails or is cancelled.',
          }),
        ),
      },
      { work: (tasks, own, fields) => tasks.finishStep(own, fields) },
    ),
    report(
      'steps/fail',
      'Fails a step: it is retried as often as `retries` allows, then the attempt fails',
      {
        name: stepName,
        kind,
        failure,
        retries: Type.Optional(Type.Integer({ minimum: 0, maximum: taskLimits.retriesMax })),
        retryAfterMs: millis,
      },
      {
        response: closed({
          isRetried: Type.Boolean({ description: 'True: the job is released until the retry.' }),
        }),
        work: (tasks, own, fields) => tasks.failStep(own, fields),
      },
    ),
    report(
      'progress',
      'Reports progress and restarts the time limit of the step',
      {
        percent: Type.Number({ minimum: 0, maximum: 100 }),
        message: Type.Optional(Type.String({ maxLength: taskLimits.errorCharsMax })),
      },
      { work: (tasks, own, fields) => tasks.progress(own, fields) },
    ),
    report(
      'sleep',
      'Releases the job until a time',
      { name: stepName, until: time },
      {
        response: closed({
          kind: Type.Enum(['over', 'released'], {
            description: 'over: the time has passed, continue. released: the worker is free.',
          }),
        }),
        work: (tasks, own, { name, until }) =>
          tasks.sleep(own, { name, until: timeOf('until', until) }),
      },
    ),
    report(
      'wait-for-event',
      'Returns an event, or releases the job until it arrives',
      { name: stepName, event: stepName, timeoutMs: millis },
      {
        response: closed({
          kind: Type.Enum(['event', 'timeout', 'released'], {
            description: 'released: the job waits and the worker is free.',
          }),
          payload: Type.Optional(Type.Unknown()),
        }),
        work: (tasks, own, fields) => tasks.waitForEvent(own, fields),
      },
    ),
    report(
      'children',
      'Enqueues child jobs once, and releases the job until all of them have ended',
      { name: stepName, tasks: Type.Array(newTaskSchema, { maxItems: childrenMax }) },
      {
        response: closed({
          kind: Type.Enum(['ended', 'released']),
          children: Type.Optional(
            Type.Array(
              Type.Object({
                id: Type.String(),
                state: Type.Enum(['completed', 'failed', 'cancelled']),
                result: Type.Optional(Type.Unknown()),
                error: Type.Optional(failureSchema),
              }),
            ),
          ),
        }),
        work: (tasks, own, { name, tasks: wanted }, request) =>
          tasks.runChildren(own, {
            name,
            tasks: wanted.map((each) => newTaskOf(each, request)),
          }),
      },
    ),
    report(
      'complete',
      'Completes the job',
      { result: Type.Optional(Type.Unknown()) },
      { work: (tasks, own, { result }) => tasks.complete(own, result) },
    ),
    report(
      'fail',
      'Fails the attempt: it is retried or the job fails, by the settings of its type',
      { failure, retryAfterMs: millis },
      {
        work: (tasks, own, { failure: what, retryAfterMs }) =>
          tasks.fail(own, what, { retryAfterMs }),
      },
    ),
    report(
      'cancelled',
      'Confirms the cancellation of the job',
      {},
      { work: (tasks, own) => tasks.cancelled(own) },
    ),
    report(
      'compensated',
      'Confirms that all compensations are complete',
      {},
      { work: (tasks, own) => tasks.compensated(own) },
    ),
    report(
      'release',
      'Releases the job unchanged',
      {},
      { work: (tasks, own) => tasks.release(own) },
    ),
  ];
}
