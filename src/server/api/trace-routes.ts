// One flow as a tree: everything that a request caused, by its correlation id.

import { Type } from '../../contracts/type.ts';
import { MillraceError } from '../../foundation/error.ts';
import { route, type Route } from '../../platform/modules/route.ts';
import { errorText } from '../http/masked-fields.ts';
import type { ApiPlatform } from './api-context.ts';

const text = Type.String();
const textOrNull = Type.Union([Type.String(), Type.Null()]);
const errorOrNull = Type.Union([errorText(), Type.Null()]);
const numberOrNull = Type.Union([Type.Number(), Type.Null()]);

const treeFields = {
  id: text,
  parent: Type.Union([Type.String(), Type.Null()], {
    description: 'The id of the parent node; null at the root.',
  }),
  depth: Type.Integer(),
  offsetMs: Type.Union([Type.Number(), Type.Null()], {
    description: 'Milliseconds since the start of the flow; null if the time is unknown.',
  }),
};

const node = Type.Union([
  Type.Object({
    ...treeFields,
    kind: Type.Literal('command'),
    command: text,
    causationId: textOrNull,
    idempotencyKey: textOrNull,
    tenant: text,
    stream: text,
    at: Type.String({ description: 'When the command was decided.' }),
    durationMs: Type.Number({ description: 'Until the last event was recorded.' }),
  }),
  Type.Object({
    ...treeFields,
    kind: Type.Literal('event'),
    type: text,
    eventId: text,
    causationId: Type.Union([Type.String(), Type.Null()], {
      description: 'Set only if the causing event is not part of the flow.',
    }),
    tenant: text,
    stream: text,
    revision: Type.Integer(),
    position: text,
    occurredAt: text,
    recordedAt: text,
  }),
  Type.Object({
    ...treeFields,
    kind: Type.Literal('handler'),
    subscription: text,
    state: Type.Union(
      ['passed', 'pending', 'waiting', 'dead', 'discarded', 'replayed'].map((each) =>
        Type.Literal(each),
      ),
      { description: 'passed: the checkpoint has reached the event.' },
    ),
    failures: numberOrNull,
    error: errorOrNull,
    deadLetter: textOrNull,
    at: textOrNull,
  }),
  Type.Object({
    ...treeFields,
    kind: Type.Literal('delivery'),
    message: text,
    destination: text,
    type: text,
    status: text,
    attempts: Type.Integer({ description: 'Failed attempts.' }),
    attemptsMax: Type.Integer(),
    enqueuedAt: text,
    dueAt: text,
    sentAt: textOrNull,
    durationMs: numberOrNull,
    error: errorOrNull,
  }),
  Type.Object({
    ...treeFields,
    kind: Type.Literal('job'),
    job: Type.String({ description: 'The id of the job in the queue.' }),
    queue: text,
    attempt: Type.Integer({ description: 'The first is 1.' }),
    outcome: Type.Union(
      ['sent', 'failed', 'dead', 'running', 'lost'].map((each) => Type.Literal(each)),
      { description: 'lost: the worker ended before it reported an outcome.' },
    ),
    enqueuedAt: text,
    startedAt: text,
    finishedAt: textOrNull,
    waitedMs: Type.Number({ description: 'Until a worker started the job.' }),
    durationMs: numberOrNull,
  }),
  Type.Object({
    ...treeFields,
    kind: Type.Literal('task'),
    task: Type.String({ description: 'The id of a job of a task type.' }),
    type: text,
    state: text,
    attempt: Type.Integer({ description: 'The first is 1.' }),
    causationId: textOrNull,
    enqueuedAt: text,
    startedAt: textOrNull,
    endedAt: textOrNull,
    dueAt: textOrNull,
    waitsFor: Type.Union([Type.String(), Type.Null()], {
      description: '`sleep`, `retry`, `children` or `event <name>`.',
    }),
    durationMs: numberOrNull,
    error: errorOrNull,
  }),
  Type.Object({
    ...treeFields,
    kind: Type.Literal('message'),
    message: Type.String({ description: 'The id of the message of a topic.' }),
    topic: text,
    causationId: textOrNull,
    storedAt: text,
  }),
  Type.Object({
    ...treeFields,
    kind: Type.Literal('saga'),
    saga: text,
    key: text,
    stream: text,
    status: text,
    reason: errorOrNull,
    timers: Type.Array(Type.Object({ timer: text, dueAt: text })),
  }),
]);

const trace = Type.Object({
  correlationId: text,
  complete: Type.Boolean({ description: 'False: the latest events may be missing.' }),
  truncated: Type.Boolean({ description: 'The flow has more nodes than the response.' }),
  missing: Type.Integer({ description: 'Events that have been removed.' }),
  startedAt: textOrNull,
  endedAt: textOrNull,
  durationMs: Type.Number(),
  nodes: Type.Array(node, { description: 'In tree order: each node follows its parent.' }),
});

export function traceRoutes(platform: ApiPlatform): readonly Route[] {
  return [
    route({
      method: 'GET',
      path: '/admin/traces/{correlationId}',
      summary:
        'Commands, events, handlers, deliveries, jobs, messages of topics and sagas of one flow',
      description: 'Waits until the latest events are indexed, for at most `waitMs`.',
      tag: 'traces',
      access: 'read',
      params: Type.Object({ correlationId: Type.String({ minLength: 1, maxLength: 1_000 }) }),
      query: Type.Object({
        waitMs: Type.Optional(
          Type.Integer({ minimum: 0, maximum: 30_000, description: 'Default: 2000.' }),
        ),
      }),
      responses: {
        200: { description: 'The flow', schema: trace },
        404: { description: 'Unknown flow' },
      },
      async handle({ params: { correlationId }, query: { waitMs }, principal, signal, memory }) {
        const tenant = principal?.tenant;
        const options = { tenant, waitMs, signal, aroundLoad: memory.load };
        const found = await platform.traces.get(correlationId, options);
        if (found.nodes.length === 0 && found.missing === 0 && found.complete) {
          throw new MillraceError('TRACE_UNKNOWN', `unknown flow '${correlationId}'`, {
            details: { correlationId },
          });
        }
        return { body: found };
      },
    }),
  ];
}
