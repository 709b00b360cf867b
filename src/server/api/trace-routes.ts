// One flow as a tree: what came of a request, by its correlation id.

import { Type } from '../../contracts/type.ts';
import { MillraceError } from '../../foundation/error.ts';
import { route, type Route } from '../../platform/modules/route.ts';
import type { ApiPlatform } from './api-context.ts';

const text = Type.String();
const textOrNull = Type.Union([Type.String(), Type.Null()]);
const numberOrNull = Type.Union([Type.Number(), Type.Null()]);

const place = {
  id: text,
  parent: Type.Union([Type.String(), Type.Null()], { description: 'Its id; null at the top.' }),
  depth: Type.Integer(),
  offsetMs: Type.Union([Type.Number(), Type.Null()], {
    description: 'Since the first time of the flow; null where no time is known.',
  }),
};

const node = Type.Union([
  Type.Object({
    ...place,
    kind: Type.Literal('command'),
    command: text,
    causationId: textOrNull,
    idempotencyKey: textOrNull,
    tenant: text,
    stream: text,
    at: Type.String({ description: 'When it was decided.' }),
    durationMs: Type.Number({ description: 'Until its last event was recorded.' }),
  }),
  Type.Object({
    ...place,
    kind: Type.Literal('event'),
    type: text,
    eventId: text,
    causationId: Type.Union([Type.String(), Type.Null()], {
      description: 'Only where the flow has no such event.',
    }),
    tenant: text,
    stream: text,
    revision: Type.Integer(),
    position: text,
    occurredAt: text,
    recordedAt: text,
  }),
  Type.Object({
    ...place,
    kind: Type.Literal('handler'),
    subscription: text,
    state: Type.Union(
      ['passed', 'pending', 'waiting', 'dead', 'discarded', 'replayed'].map((each) =>
        Type.Literal(each),
      ),
      { description: 'passed: its checkpoint is at the event or beyond.' },
    ),
    failures: numberOrNull,
    error: textOrNull,
    deadLetter: textOrNull,
    at: textOrNull,
  }),
  Type.Object({
    ...place,
    kind: Type.Literal('delivery'),
    message: text,
    destination: text,
    type: text,
    status: text,
    attempts: Type.Integer({ description: 'Those that failed.' }),
    attemptsMax: Type.Integer(),
    enqueuedAt: text,
    dueAt: text,
    sentAt: textOrNull,
    durationMs: numberOrNull,
    error: textOrNull,
  }),
  Type.Object({
    ...place,
    kind: Type.Literal('job'),
    job: Type.String({ description: 'Its id in the queue.' }),
    queue: text,
    attempt: Type.Integer({ description: 'The first is 1.' }),
    outcome: Type.Union(
      ['sent', 'failed', 'dead', 'running', 'lost'].map((each) => Type.Literal(each)),
      { description: 'lost: its worker ended before it could say what became of it.' },
    ),
    enqueuedAt: text,
    startedAt: text,
    finishedAt: textOrNull,
    waitedMs: Type.Number({ description: 'Until a worker began it.' }),
    durationMs: numberOrNull,
  }),
]);

const trace = Type.Object({
  correlationId: text,
  complete: Type.Boolean({ description: 'False: what was appended last may be missing.' }),
  truncated: Type.Boolean({ description: 'There is more of it than this.' }),
  missing: Type.Integer({ description: 'Events that were removed since.' }),
  startedAt: textOrNull,
  endedAt: textOrNull,
  durationMs: Type.Number(),
  nodes: Type.Array(node, { description: 'In the order of a tree: each behind its parent.' }),
});

export function traceRoutes(platform: ApiPlatform): readonly Route[] {
  return [
    route({
      method: 'GET',
      path: '/admin/traces/{correlationId}',
      summary: 'Commands, events, handlers, deliveries and jobs of one flow',
      description:
        'A flow that has just happened is waited for until it is indexed, for `waitMs` at most.',
      tag: 'traces',
      access: 'admin',
      params: Type.Object({ correlationId: Type.String({ minLength: 1, maxLength: 1_000 }) }),
      query: Type.Object({
        waitMs: Type.Optional(
          Type.Integer({ minimum: 0, maximum: 30_000, description: 'Default: 2000.' }),
        ),
      }),
      answers: {
        200: { description: 'The flow, as far as it is known', schema: trace },
        404: { description: 'There is no such flow' },
      },
      async handle({ params: { correlationId }, query: { waitMs }, principal, signal }) {
        const tenant = principal?.tenant;
        const found = await platform.traces.get(correlationId, { tenant, waitMs, signal });
        if (found.nodes.length === 0 && found.missing === 0 && found.complete) {
          throw new MillraceError('TRACE_UNKNOWN', 'nothing is known of this flow', {
            details: { correlationId },
          });
        }
        return { body: found };
      },
    }),
  ];
}
