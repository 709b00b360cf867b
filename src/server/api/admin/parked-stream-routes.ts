// Streams that a dead letter has parked, and the events that wait for it. The routes of dead letters replay and discard it.

import { Type } from '../../../contracts/type.ts';
import { route, type Route } from '../../../platform/modules/route.ts';
import type { DeadLetter } from '../../../subscriptions/dead-letter.ts';
import type { WaitingEvent } from '../../../subscriptions/subscription-storage.ts';
import { positionOfCursor, returns, routesOf, tenantWithin } from '../api-context.ts';
import { errorText } from '../../http/masked-fields.ts';
import {
  closed,
  failureCauseSchema,
  pageBy,
  pageOf,
  pageQuery,
  text,
  uuid,
  type AdminContext,
} from './admin-context.ts';
import { checkLetterCursor, findLetter } from './dead-letter-routes.ts';

const { get } = routesOf('admin: dead letters', 'read');
const optional = Type.Optional(Type.String());

const parkedStream = Type.Object(
  {
    id: Type.String({ description: 'The dead letter that parks the stream.' }),
    subscription: Type.String(),
    stream: Type.String(),
    tenant: Type.String(),
    since: Type.String(),
    eventId: Type.String(),
    eventType: Type.String(),
    revision: Type.Integer(),
    correlationId: Type.String(),
    error: errorText(),
    cause: Type.Union([failureCauseSchema, Type.Null()]),
    attempts: Type.Integer(),
    replayRequestedAt: Type.Union([Type.String(), Type.Null()]),
    waiting: Type.Integer({ description: 'How many later events wait for this one.' }),
  },
  { title: 'ParkedStream' },
);

const waitingEvent = closed({
  eventId: Type.String(),
  position: Type.String(),
  type: Type.Optional(Type.String({ description: 'Absent: the store no longer has the event.' })),
  revision: Type.Optional(Type.Integer()),
  recordedAt: optional,
  correlationId: optional,
});

export function parkedStreamRoutes({ platform }: AdminContext): readonly Route[] {
  const { store, subscriptions } = platform.engines;
  const { deadLetters, waiting } = subscriptions;

  const shown = async (letter: DeadLetter) => {
    const { id, handler, shard, stream, tenant, createdAt, eventId, eventType } = letter;
    const { revision, correlationId, error, cause, attempts, replayRequestedAt } = letter;
    const events = await waiting.countOf({ subscription: handler, shard }, stream);
    return {
      id,
      subscription: handler,
      stream,
      tenant,
      since: createdAt,
      eventId,
      eventType,
      revision,
      correlationId,
      error,
      cause,
      attempts,
      replayRequestedAt,
      // The event of the dead letter waits as well, for its replay.
      waiting: Math.max(0, events - 1),
    };
  };

  const described = async (stream: string, { eventId, position }: WaitingEvent) => {
    const event = await store.findEvent(stream, eventId);
    if (event === undefined) return { eventId, position };
    const { type, revision, recordedAt, correlationId } = event;
    return { eventId, position, type, revision, recordedAt, correlationId };
  };

  return [
    route({
      ...get,
      path: '/admin/parked-streams',
      summary: 'Streams that a dead letter has parked, the longest parked first',
      query: closed({
        subscription: Type.Optional(text(400)),
        tenant: Type.Optional(text(100)),
        stream: Type.Optional(text(400)),
        ...pageQuery,
        cursor: Type.Optional(uuid),
      }),
      responses: { 200: returns('A page', pageOf(parkedStream)) },
      async handle(request) {
        const { subscription: handler, tenant, stream, limit, cursor } = request.query;
        if (cursor !== undefined) await checkLetterCursor(deadLetters, request, cursor);
        const filter = {
          handler,
          stream,
          tenant: tenantWithin(request, tenant),
          status: 'pending',
          parked: true,
        } as const;
        return pageBy(
          request.memory,
          { limit, cursor },
          async (part) => Promise.all((await deadLetters.list(filter, part)).map(shown)),
          ({ id }) => id,
        );
      },
    }),
    route({
      ...get,
      path: '/admin/parked-streams/{letter}/events',
      summary: 'The events that wait for the replay or discard of a dead letter, in order',
      params: closed({ letter: uuid }),
      query: closed(pageQuery),
      responses: {
        200: returns('A page; empty if the dead letter parks no stream', pageOf(waitingEvent)),
        404: { description: 'Unknown dead letter' },
      },
      async handle(request) {
        const { limit, cursor } = request.query;
        const letter = await findLetter(deadLetters, request, request.params.letter);
        const { handler, shard, stream, position } = letter;
        if (letter.status !== 'pending' || !letter.parked) return { body: { items: [] } };
        const key = { subscription: handler, shard };
        return pageBy(
          request.memory,
          { limit, cursor },
          async (part) => {
            const after = part.after === undefined ? position : positionOfCursor(part.after);
            const found = await waiting.next(key, stream, part.limit, after);
            return Promise.all(found.map((each) => described(stream, each)));
          },
          (event) => event.position,
        );
      },
    }),
  ];
}
