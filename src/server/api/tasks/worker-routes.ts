// Workers in any language: claim, say that one is alive, and tell what became of each step. What a worker
// holds is plain data, an id and a fence; whoever comes with an old fence is told 409 and changes nothing.

import type { Static, TObject, TProperties } from 'typebox';
import { Type } from '../../../contracts/type.ts';
import { taskLimits } from '../../../tasks/task-limits.ts';
import type { Tasks, TaskToken } from '../../../tasks/tasks.ts';
import { route, type ApiRequest, type Route } from '../../../platform/modules/route.ts';
import { checkGlobal, closed, text, time, timeOf } from '../admin/admin-context.ts';
import type { ApiPlatform } from '../api-context.ts';
import { failureSchema, idParams, newTaskOf, newTaskSchema, taskSchema } from './task-context.ts';

const tag = 'tasks: workers';
const access = 'work';
const waitMsMax = 30_000;
const childrenMax = 1_000;

const worker = text(taskLimits.workerCharsMax, 'Unique for each start of a process.');
const leaseMs = Type.Optional(
  Type.Integer({
    minimum: taskLimits.leaseMsMin,
    maximum: 3_600_000,
    description: 'Alive for so long without another word. Default: 15,000.',
  }),
);
const fence = Type.Integer({ minimum: 0, description: 'As the claim gave it.' });
const token = closed({ id: text(120), fence });
const stepName = text(taskLimits.stepNameCharsMax, 'Unique within the job.');
const kind = Type.Optional(Type.Enum(['step', 'sleep', 'event', 'children', 'compensation']));
const millis = Type.Optional(Type.Integer({ minimum: 0, maximum: taskLimits.durationMsMax }));
const failure = closed({
  message: Type.String({ maxLength: 100_000 }),
  code: Type.Optional(Type.String({ maxLength: 200 })),
  isTerminal: Type.Optional(Type.Boolean({ description: 'No retry can help.' })),
});

const held = Type.Object({
  id: Type.String(),
  state: Type.Enum(['held', 'lost'], {
    description: 'lost: stop, nothing of it is taken any more.',
  }),
  cancelAt: Type.Optional(Type.String({ description: 'Stop by then, and say cancelled.' })),
});

export function workerRoutes(platform: ApiPlatform): readonly Route[] {
  /** What is said of a job that one holds. 409: it is another's by now, or has ended. */
  const holding = <Fields extends TProperties>(
    deed: string,
    summary: string,
    fields: Fields,
    {
      work,
      answer = closed({ id: Type.String() }),
    }: {
      readonly work: (
        tasks: Tasks,
        token: TaskToken,
        said: Static<TObject<Fields>>,
        request: ApiRequest,
      ) => Promise<object | void>;
      readonly answer?: ReturnType<typeof closed>;
    },
  ): Route =>
    route({
      method: 'POST',
      path: `/api/v1/worker/jobs/{id}/${deed}`,
      summary,
      tag,
      access,
      params: idParams,
      body: closed({ fence, ...fields }),
      answers: {
        200: { description: 'Durable', schema: answer },
        409: { description: 'The job is held under another fence, or has ended: stop' },
      },
      async handle(request) {
        checkGlobal(request);
        const { id } = request.params;
        const { fence: own, ...said } = request.body as { readonly fence: number };
        const told = await work(
          await platform.tasks(),
          { id, fence: own },
          // Checked by the schema above, which is made of these fields and the fence.
          said as Static<TObject<Fields>>,
          request,
        );
        return { body: told ?? { id } };
      },
    });

  return [
    route({
      method: 'POST',
      path: '/api/v1/worker/claim',
      summary: 'Takes jobs that are due, waiting for the first one',
      description:
        'Each comes with its payload, its finished steps and their results, and a token. Needs credentials of all tenants.',
      tag,
      access,
      isLong: true,
      body: closed({
        worker,
        types: Type.Record(
          Type.String(),
          Type.Integer({ minimum: 0, maximum: taskLimits.workersMax }),
          { description: 'How many of each type at most.' },
        ),
        limit: Type.Optional(
          Type.Integer({
            minimum: 0,
            maximum: taskLimits.batchMax,
            description: 'Of all together.',
          }),
        ),
        waitMs: Type.Optional(
          Type.Integer({
            minimum: 0,
            maximum: waitMsMax,
            description: 'Default: 0, what is due now.',
          }),
        ),
        leaseMs,
      }),
      answers: {
        200: {
          description: 'None, if none came due in time',
          schema: closed({ items: Type.Array(closed({ token, task: taskSchema })) }),
        },
      },
      async handle(request) {
        checkGlobal(request);
        const tasks = await platform.tasks();
        const items = await tasks.claim({ waitMs: 0, ...request.body, signal: request.signal });
        // Nobody is there any more to hear of them.
        if (request.signal.aborted) {
          await Promise.allSettled(items.map((each) => tasks.release(each.token)));
        }
        return { body: { items } };
      },
    }),
    route({
      method: 'POST',
      path: '/api/v1/worker/heartbeat',
      summary: 'Says that a worker is alive; tells what has become of what it holds',
      description: 'A third of the lease is a good interval.',
      tag,
      access,
      body: closed({
        worker,
        leaseMs,
        tokens: Type.Optional(Type.Array(token, { maxItems: taskLimits.workersMax })),
        about: Type.Optional(Type.Unknown({ description: 'Shown to whoever asks who works.' })),
      }),
      answers: {
        200: { description: 'One for each token', schema: closed({ items: Type.Array(held) }) },
      },
      async handle(request) {
        checkGlobal(request);
        const tasks = await platform.tasks();
        return { body: { items: await tasks.heartbeat(request.body) } };
      },
    }),
    route({
      method: 'POST',
      path: '/api/v1/worker/leave',
      summary: 'The worker ends: what it still holds goes to others at once',
      tag,
      access,
      body: closed({ worker }),
      answers: { 200: { description: 'Forgotten', schema: closed({ worker: Type.String() }) } },
      async handle(request) {
        checkGlobal(request);
        const tasks = await platform.tasks();
        await tasks.leave(request.body.worker);
        return { body: { worker: request.body.worker } };
      },
    }),
    holding(
      'steps/start',
      'A step begins; its time limit counts from now',
      { name: stepName, kind, timeoutMs: millis },
      { work: (tasks, own, said) => tasks.startStep(own, said) },
    ),
    holding(
      'steps/finish',
      'A step is done: it never runs again',
      {
        name: stepName,
        kind,
        result: Type.Optional(Type.Unknown()),
        isCompensable: Type.Optional(
          Type.Boolean({ description: 'It is to be undone if the job does not complete.' }),
        ),
      },
      { work: (tasks, own, said) => tasks.finishStep(own, said) },
    ),
    holding(
      'steps/fail',
      'A step failed: again after a while, as often as it says, or the attempt is over',
      {
        name: stepName,
        kind,
        failure,
        retries: Type.Optional(Type.Integer({ minimum: 0, maximum: taskLimits.retriesMax })),
        retryAfterMs: millis,
      },
      {
        answer: closed({
          isRetried: Type.Boolean({ description: 'True: the job waits, the worker is free.' }),
        }),
        work: (tasks, own, said) => tasks.failStep(own, said),
      },
    ),
    holding(
      'progress',
      'How far it is; counts as a sign of life of the step',
      {
        percent: Type.Number({ minimum: 0, maximum: 100 }),
        message: Type.Optional(Type.String({ maxLength: taskLimits.errorCharsMax })),
      },
      { work: (tasks, own, said) => tasks.progress(own, said) },
    ),
    holding(
      'sleep',
      'Lets go of the job until a time: a claim brings it back then',
      { name: stepName, until: time },
      {
        answer: closed({
          kind: Type.Enum(['over', 'released'], {
            description: 'over: it has slept already, go on. released: the worker is free.',
          }),
        }),
        work: (tasks, own, { name, until }) =>
          tasks.sleep(own, {
            name,
            until: timeOf('until', until),
          }),
      },
    ),
    holding(
      'wait-for-event',
      'Takes an event that came, or lets go of the job until it comes',
      { name: stepName, event: stepName, timeoutMs: millis },
      {
        answer: closed({
          kind: Type.Enum(['event', 'timeout', 'released'], {
            description: 'released: the job waits, the worker is free.',
          }),
          payload: Type.Optional(Type.Unknown()),
        }),
        work: (tasks, own, said) => tasks.waitForEvent(own, said),
      },
    ),
    holding(
      'children',
      'Enqueues jobs below this one, each once, and lets go of it until all have ended',
      { name: stepName, tasks: Type.Array(newTaskSchema, { maxItems: childrenMax }) },
      {
        answer: closed({
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
    holding(
      'complete',
      'The job is done',
      { result: Type.Optional(Type.Unknown()) },
      { work: (tasks, own, { result }) => tasks.complete(own, result) },
    ),
    holding(
      'fail',
      'The attempt failed: again after a while, or the end, by the rules of the type',
      { failure, retryAfterMs: millis },
      {
        work: (tasks, own, { failure: what, retryAfterMs }) =>
          tasks.fail(own, what, {
            retryAfterMs,
          }),
      },
    ),
    holding(
      'cancelled',
      'It stopped because it was to be cancelled',
      {},
      { work: (tasks, own) => tasks.cancelled(own) },
    ),
    holding(
      'compensated',
      'Everything that was to be undone is undone',
      {},
      { work: (tasks, own) => tasks.compensated(own) },
    ),
    holding(
      'release',
      'Gives the job back untouched',
      {},
      { work: (tasks, own) => tasks.release(own) },
    ),
  ];
}
