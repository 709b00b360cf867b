// Streams over HTTP: append, read, and follow by server-sent events.

import { Type } from '../../contracts/type.ts';
import { createEnvelope } from '../../contracts/envelope.ts';
import { parseStreamName } from '../../contracts/stream-name.ts';
import { MillraceError } from '../../foundation/error.ts';
import { parsePosition } from '../../store/position.ts';
import { route, type Route } from '../../platform/modules/route.ts';
import { flowHeadersShown, flowOf } from '../../platform/modules/flow-of.ts';
import { serverSentEvents } from '../../platform/modules/server-sent-events.ts';
import { checkStreamAccess, type ApiPlatform } from './api-context.ts';
import { acceptPayload } from './accept-payload.ts';
import { eventSchema } from './event-schema.ts';
import { filterFor, followEvents, followStream } from './follow.ts';

const tag = 'streams';
const readMax = 1_000;
const appendMax = 1_000;

const newEvent = Type.Object(
  {
    type: Type.String({ description: '<agg>.<action>.v<version>' }),
    payload: Type.Unknown(),
    eventId: Type.Optional(Type.String({ description: 'The same id again: no second event.' })),
    causationId: Type.Optional(Type.String()),
    headers: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  },
  { additionalProperties: false },
);

const appendBody = Type.Object(
  {
    events: Type.Array(newEvent, { minItems: 1, maxItems: appendMax }),
    expected: Type.Optional(
      Type.Union([
        Type.Integer({ minimum: 0 }),
        Type.Literal('any'),
        Type.Literal('none'),
        Type.Literal('exists'),
      ]),
    ),
  },
  { additionalProperties: false },
);

const appended = Type.Object({
  stream: Type.String(),
  revision: Type.Integer(),
  position: Type.String(),
  repeated: Type.Boolean(),
});

const streamParams = Type.Object({ stream: Type.String({ maxLength: 400 }) });
const page = Type.Object({ events: Type.Array(eventSchema), next: Type.Optional(Type.String()) });
const direction = Type.Optional(Type.Union([Type.Literal('forwards'), Type.Literal('backwards')]));
const limit = Type.Optional(Type.Integer({ minimum: 1, maximum: readMax }));

const filterQuery = {
  types: Type.Optional(Type.Array(Type.String(), { description: 'Event types.' })),
  typePrefix: Type.Optional(Type.String()),
  category: Type.Optional(Type.String({ description: '<bc>.<agg>.v<version>' })),
  tenant: Type.Optional(Type.String()),
};

const lastEventId = { 'Last-Event-ID': 'Of the last one that came: goes before `after`.' };

export function streamRoutes(platform: ApiPlatform): readonly Route[] {
  const { store } = platform.engines;
  const { tenants } = platform.tokens;

  return [
    route({
      method: 'POST',
      path: '/api/v1/streams/{stream}/events',
      summary: 'Appends events to a stream',
      description:
        'All or none. An event id that is there already is not written again. `expected` is the revision that the caller has seen. Where a module has the aggregate, events have to be its own and fit their schemas.',
      tag,
      access: 'append',
      params: streamParams,
      headersShown: flowHeadersShown,
      body: appendBody,
      answers: {
        201: { description: 'Durable', schema: appended },
        200: { description: 'It had been appended before', schema: appended },
        409: { description: 'Somebody else was faster; details tell the actual revision' },
      },
      async handle(request) {
        const { stream } = request.params;
        checkStreamAccess(platform, stream, request);
        const place = parseStreamName(stream, tenants);
        const { tenant, bc, agg, id } = place;
        const context = {
          tenant,
          aggregate: { bc, type: agg, id },
          ...flowOf(request),
        };
        const events = request.body.events.map(({ type, payload, headers, ...rest }) =>
          createEnvelope(
            { type, payload: acceptPayload(platform, place, { type, payload }) },
            {
              ...context,
              ...rest,
              ...(headers === undefined ? {} : { headers: { ...context.headers, ...headers } }),
            },
          ),
        );
        const { expected = 'any' } = request.body;
        const result = await store.append(stream, events, { expected, signal: request.signal });
        return { status: result.repeated ? 200 : 201, body: result };
      },
    }),
    route({
      method: 'GET',
      path: '/api/v1/streams/{stream}',
      summary: 'What is known of a stream',
      tag,
      access: 'read',
      params: streamParams,
      answers: { 200: { description: 'Its last revision and its metadata' } },
      async handle(request) {
        const { stream } = request.params;
        checkStreamAccess(platform, stream, request);
        const info = await store.streamInfo(stream);
        if (info === undefined) throw notThere(stream);
        return { body: info };
      },
    }),
    route({
      method: 'GET',
      path: '/api/v1/streams/{stream}/events',
      summary: 'Reads a stream',
      tag,
      access: 'read',
      params: streamParams,
      query: Type.Object({
        from: Type.Optional(Type.Integer({ minimum: 0, description: 'Inclusive.' })),
        direction,
        limit,
      }),
      answers: { 200: { description: '`next` is the `from` of the next page', schema: page } },
      async handle(request) {
        const { stream } = request.params;
        checkStreamAccess(platform, stream, request);
        const { limit: count = 100, direction: way = 'forwards', ...rest } = request.query;
        const { signal } = request;
        const events = await store
          .readStream(stream, { ...rest, direction: way, limit: count, signal })
          .toArray();
        const last = events.at(-1);
        const next = way === 'forwards' ? (last?.revision ?? 0) + 1 : (last?.revision ?? 0) - 1;
        const hasMore = events.length === count && next >= 0;
        return { body: { events, ...(hasMore ? { next: String(next) } : {}) } };
      },
    }),
    route({
      method: 'GET',
      path: '/api/v1/events',
      summary: 'Reads the events of all streams',
      tag,
      access: 'read',
      query: Type.Object({
        ...filterQuery,
        after: Type.Optional(Type.String({ description: 'A position; exclusive.' })),
        direction,
        limit,
      }),
      answers: { 200: { description: '`next` is the `after` of the next page', schema: page } },
      async handle(request) {
        const { limit: count = 100, direction: way = 'forwards', after } = request.query;
        const events = await store
          .readAll({
            filter: filterFor(request),
            direction: way,
            limit: count,
            signal: request.signal,
            ...(after === undefined ? {} : { after: parsePosition(after) }),
          })
          .toArray();
        const last = events.at(-1);
        const hasMore = last !== undefined && events.length === count;
        return { body: { events, ...(hasMore ? { next: last.position } : {}) } };
      },
    }),
    route({
      method: 'GET',
      path: '/api/v1/events/subscribe',
      summary: 'Follows the events of all streams (server-sent events)',
      description:
        'Catches up, then stays. The id of each is its position: `Last-Event-ID` goes on behind it.',
      tag,
      access: 'read',
      isLong: true,
      query: Type.Object({
        ...filterQuery,
        after: Type.Optional(Type.String({ description: "A position, or 'end'." })),
      }),
      headersShown: lastEventId,
      answers: { 200: { description: 'Events as they come', contentType: 'text/event-stream' } },
      async handle(request) {
        const after = request.headers['last-event-id'] ?? request.query.after;
        return serverSentEvents(
          followEvents(platform, request, { ...request.query, after }),
          request,
        );
      },
    }),
    route({
      method: 'GET',
      path: '/api/v1/streams/{stream}/subscribe',
      summary: 'Follows a stream (server-sent events)',
      description: 'The id of each is its revision: `Last-Event-ID` goes on behind it.',
      tag,
      access: 'read',
      isLong: true,
      params: streamParams,
      query: Type.Object({
        after: Type.Optional(Type.String({ description: "A revision, exclusive, or 'end'." })),
      }),
      headersShown: lastEventId,
      answers: { 200: { description: 'Events as they come', contentType: 'text/event-stream' } },
      async handle(request) {
        const after = request.headers['last-event-id'] ?? request.query.after;
        return serverSentEvents(
          followStream(platform, request, { ...request.params, after }),
          request,
        );
      },
    }),
  ];
}

function notThere(stream: string): MillraceError {
  return new MillraceError('NOT_FOUND', `there is no stream '${stream}'`, { details: { stream } });
}
