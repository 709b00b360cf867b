// Streams over HTTP: append, read, and follow with server-sent events.

import { Type } from '../../contracts/type.ts';
import type { TSchema } from 'typebox';
import { createEnvelope, envelopeJsonSchema } from '../../contracts/envelope.ts';
import { parseStreamName } from '../../contracts/stream-name.ts';
import { MillraceError } from '../../foundation/error.ts';
import { jsonText } from '../../foundation/parse-json.ts';
import { parsePosition } from '../../store/position.ts';
import type { EventReader } from '../../store/event-store.ts';
import type { RecordedEvent } from '../../store/recorded-event.ts';
import { withTenantSubject } from '../../store/erasure.ts';
import { createAppendRules } from '../../platform/modules/append-rules.ts';
import { createSecretHider, hiderFor } from '../../platform/modules/hide-secrets.ts';
import { route, type Route, type TextResponse } from '../../platform/modules/route.ts';
import { flowHeadersShown, flowOf } from '../../platform/modules/flow-of.ts';
import { serverSentEvents } from '../../platform/modules/server-sent-events.ts';
import {
  checkStreamAccess,
  positionOfCursor,
  returns,
  routesOf,
  type ApiPlatform,
} from './api-context.ts';
import { textBytes } from '../http/list-page.ts';
import { filterFor, followEvents, followStream } from './follow.ts';

const { get: read } = routesOf('streams', 'read');
const { post: append } = routesOf('streams', 'append');
const readMax = 1_000;
/** In memory; the text has at most half as many characters. */
const readBytesMax = 2_097_152;
const appendMax = 1_000;

const newEvent = Type.Object(
  {
    type: Type.String({ description: '<agg>.<action>.v<version>' }),
    payload: Type.Unknown(),
    eventId: Type.Optional(
      Type.String({ description: 'Appending the same id again has no effect.' }),
    ),
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
  isDuplicate: Type.Boolean(),
});

const streamParams = Type.Object({ stream: Type.String({ maxLength: 400 }) });
const { properties = {}, required = [] } = envelopeJsonSchema as {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
};

export const recordedEvent: TSchema = Type.Unsafe({
  type: 'object',
  title: 'RecordedEvent',
  properties: {
    ...properties,
    stream: { type: 'string' },
    revision: { type: 'integer' },
    position: { type: 'string', description: 'Opaque; totally ordered.' },
    recordedAt: { type: 'string' },
  },
  required: [...required, 'stream', 'revision', 'position', 'recordedAt'],
});
const page = Type.Object({
  items: Type.Array(recordedEvent),
  cursor: Type.Optional(Type.String()),
});
const direction = Type.Optional(Type.Union([Type.Literal('forwards'), Type.Literal('backwards')]));
const limit = Type.Optional(Type.Integer({ minimum: 1, maximum: readMax }));
const cursorDescription = 'The cursor of the previous page.';

export const filterQuery = {
  types: Type.Optional(Type.Array(Type.String(), { description: 'Event types.' })),
  typePrefix: Type.Optional(Type.String()),
  category: Type.Optional(Type.String({ description: '<bc>.<agg>.v<version>' })),
  tenant: Type.Optional(Type.String()),
};

const lastEventId = {
  'Last-Event-ID': 'The id of the last received event; takes precedence over `after`.',
};

export function streamRoutes(platform: ApiPlatform): readonly Route[] {
  const { store } = platform.engines;
  const accept = createAppendRules(platform.modules);
  const hider = createSecretHider(platform.modules);

  return [
    route({
      ...append,
      path: '/api/v1/streams/{stream}/events',
      summary: 'Appends events to a stream',
      description:
        'Atomic. Events whose ids are already stored are not appended again. `expected` is the revision that the caller has seen. Streams of aggregates of modules need the scope `admin`; their events must be of their types and match their schemas.',
      params: streamParams,
      headersShown: flowHeadersShown,
      body: appendBody,
      responses: {
        201: returns('Durable', appended),
        200: returns('Appended before', appended),
        409: { description: 'Version conflict; `details` has the actual revision' },
      },
      async handle(request) {
        const { stream } = request.params;
        await checkStreamAccess(platform, stream, request);
        const tenant = await platform.ownerOf(stream);
        const { bc, agg, id } = parseStreamName(stream, { has: (name) => name === tenant });
        const isAdmin = request.principal?.scopes.includes('admin') === true;
        const context = {
          tenant,
          aggregate: { bc, type: agg, id },
          ...flowOf(request),
        };
        const events = request.body.events.map(({ type, payload, headers, ...rest }) =>
          withTenantSubject(
            createEnvelope(
              { type, payload: accept({ stream, type, payload }, isAdmin) },
              {
                ...context,
                ...rest,
                ...(headers === undefined ? {} : { headers: { ...context.headers, ...headers } }),
              },
            ),
            request.principal?.tenant,
          ),
        );
        const { expected = 'any' } = request.body;
        const result = await store.append(stream, events, { expected, signal: request.signal });
        return { status: result.isDuplicate ? 200 : 201, body: result };
      },
    }),
    route({
      ...read,
      path: '/api/v1/streams/{stream}',
      summary: 'The last revision and metadata of a stream',
      params: streamParams,
      responses: { 200: { description: 'The stream' } },
      async handle(request) {
        const { stream } = request.params;
        await checkStreamAccess(platform, stream, request);
        const info = await request.memory.load(() => store.streamInfo(stream));
        if (info === undefined) {
          throw new MillraceError('NOT_FOUND', `unknown stream '${stream}'`, {
            details: { stream },
          });
        }
        return { body: info };
      },
    }),
    route({
      ...read,
      path: '/api/v1/streams/{stream}/events',
      summary: 'Reads a stream',
      params: streamParams,
      query: Type.Object({
        from: Type.Optional(
          Type.Integer({ minimum: 0, description: 'The first revision, inclusive.' }),
        ),
        direction,
        limit,
        cursor: Type.Optional(Type.Integer({ minimum: 0, description: cursorDescription })),
      }),
      responses: { 200: returns('A page of events', page) },
      async handle(request) {
        const { stream } = request.params;
        await checkStreamAccess(platform, stream, request);
        const { limit: count = 100, direction: way = 'forwards', cursor } = request.query;
        const from = cursor ?? request.query.from;
        const { signal, memory } = request;
        const options = { direction: way, limit: count, signal, from };
        return memory.load(() =>
          readPage(store.readStream(stream, options), {
            itemsMax: count,
            hide: hiderFor(request.principal, hider).event,
            cursorAfter({ revision }) {
              const next = way === 'forwards' ? revision + 1 : revision - 1;
              return next < 0 ? undefined : String(next);
            },
          }),
        );
      },
    }),
    route({
      ...read,
      path: '/api/v1/events',
      summary: 'Reads the events of all streams',
      query: Type.Object({
        ...filterQuery,
        after: Type.Optional(Type.String({ description: 'A position, exclusive.' })),
        direction,
        limit,
        cursor: Type.Optional(Type.String({ description: cursorDescription })),
      }),
      responses: { 200: returns('A page of events', page) },
      async handle(request) {
        const { limit: count = 100, direction: way = 'forwards', cursor } = request.query;
        const { after } = request.query;
        const options = {
          filter: filterFor(request),
          direction: way,
          limit: count,
          signal: request.signal,
          after:
            cursor !== undefined
              ? positionOfCursor(cursor)
              : after === undefined
                ? undefined
                : parsePosition(after),
        };
        return request.memory.load(() =>
          readPage(store.readAll(options), {
            itemsMax: count,
            hide: hiderFor(request.principal, hider).event,
            cursorAfter: ({ position }) => position,
          }),
        );
      },
    }),
    route({
      ...read,
      path: '/api/v1/events/subscribe',
      summary: 'Follows the events of all streams (server-sent events)',
      description:
        'Sends stored events, then new ones. The id of each event is its position: `Last-Event-ID` resumes after it.',
      isLong: true,
      query: Type.Object({
        ...filterQuery,
        after: Type.Optional(Type.String({ description: "A position, or 'end'." })),
      }),
      headersShown: lastEventId,
      responses: { 200: { description: 'A stream of events', contentType: 'text/event-stream' } },
      async handle(request) {
        const after = request.headers['last-event-id'] ?? request.query.after;
        return serverSentEvents(
          followEvents(platform, request, { ...request.query, after }),
          request,
        );
      },
    }),
    route({
      ...read,
      path: '/api/v1/streams/{stream}/subscribe',
      summary: 'Follows a stream (server-sent events)',
      description:
        'Sends stored events, then new ones. The id of each event is its revision: `Last-Event-ID` resumes after it.',
      isLong: true,
      params: streamParams,
      query: Type.Object({
        after: Type.Optional(Type.String({ description: "A revision, exclusive, or 'end'." })),
      }),
      headersShown: lastEventId,
      responses: { 200: { description: 'A stream of events', contentType: 'text/event-stream' } },
      async handle(request) {
        const after = request.headers['last-event-id'] ?? request.query.after;
        return serverSentEvents(
          await followStream(platform, request, { ...request.params, after }),
          request,
        );
      },
    }),
  ];
}

/** A page has fewer events than the limit if they are large; its cursor continues. */
async function readPage(
  reader: EventReader,
  options: {
    readonly itemsMax: number;
    readonly hide: (event: RecordedEvent) => RecordedEvent;
    readonly cursorAfter: (event: RecordedEvent) => string | undefined;
  },
): Promise<TextResponse> {
  const { itemsMax, hide, cursorAfter } = options;
  const items: string[] = [];
  let bytes = 0;
  let cursor: string | undefined;
  for await (const event of reader) {
    const json = jsonText(hide(event));
    items.push(json);
    bytes += textBytes(json);
    if (items.length < itemsMax && bytes < readBytesMax) continue;
    cursor = cursorAfter(event);
    break;
  }
  const rest = cursor === undefined ? '' : `,"cursor":${JSON.stringify(cursor)}`;
  return { json: `{"items":[${items.join(',')}]${rest}}` };
}
