// Broadcasts over HTTP: tell everybody, list, follow.

import { Type } from '../contracts/type.ts';
import { flowOf } from '../platform/modules/flow-of.ts';
import { route, type ApiRequest, type Route } from '../platform/modules/route.ts';
import { serverSentEvents, type SentEvent } from '../platform/modules/server-sent-events.ts';
import { followHeadersShown, repeatHeadersShown } from './headers-shown.ts';
import { broadcastFields } from './broadcast-events.ts';
import { mayNotify, type Asker, type NotifyDeed } from './customer-access.ts';
import type { BroadcastNews, Notifier } from './customer-notifier.ts';
import { pageQuery, repeatOf, tenantHeader } from './customer-routes.ts';
import { fields } from './customer-schemas.ts';

const tag = 'notifications';
const path = '/api/v1/notify/broadcasts';
const text = Type.String();

const broadcastDocument = Type.Object({
  broadcastId: text,
  category: text,
  title: text,
  body: Type.Union([text, Type.Null()]),
  at: text,
  status: fields.oneOf(['spreading', 'completed']),
  reached: Type.Integer(),
});

export function broadcastRoutes(notifier: Notifier): readonly Route[] {
  const asking = (request: ApiRequest, deed: NotifyDeed): Asker =>
    mayNotify(request.principal, { deed, tenant: request.headers[tenantHeader] });

  return [
    route({
      method: 'POST',
      path,
      summary: 'Tells all customers of the tenant something',
      description:
        'Each of them as that one wants to be told of the category. With `Idempotency-Key` a repeat is the same broadcast.',
      tag,
      access: 'append',
      body: Type.Object(broadcastFields, fields.closed),
      headersShown: repeatHeadersShown,
      answers: {
        201: {
          description: 'It is stored, and will be told',
          schema: Type.Object({ broadcastId: text }),
        },
      },
      async handle(request) {
        const { tenant, name } = asking(request, 'publish');
        const key = request.headers['idempotency-key'];
        const { id, idempotencyKey } = repeatOf(tenant, 'broadcast', key);
        const { broadcastId } = await notifier.broadcast({
          ...request.body,
          ...flowOf(request),
          tenant,
          user: { id: name },
          signal: request.signal,
          ...(id === undefined ? {} : { broadcastId: id }),
          ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
        });
        return { status: 201, body: { broadcastId } };
      },
    }),
    route({
      method: 'GET',
      path,
      summary: 'What all customers were told, newest first',
      tag,
      access: 'known',
      query: Type.Object(pageQuery),
      answers: {
        200: {
          description: '`cursor` is that of the next page',
          schema: Type.Object({
            broadcasts: Type.Array(broadcastDocument),
            cursor: Type.Optional(text),
          }),
        },
      },
      async handle(request) {
        const { tenant } = asking(request, 'read');
        const { items, cursor } = await notifier.broadcasts({ tenant, ...request.query });
        const broadcasts = items.map(({ document }) => document);
        return { body: { broadcasts, ...(cursor === undefined ? {} : { cursor }) } };
      },
    }),
    route({
      method: 'GET',
      path: `${path}/follow`,
      summary: 'Broadcasts as they are published (server-sent events)',
      description: 'From now on, or behind a position (`after`, `Last-Event-ID`; `start`).',
      tag,
      access: 'known',
      isLong: true,
      query: Type.Object({ after: Type.Optional(Type.String({ maxLength: 40 })) }),
      headersShown: followHeadersShown,
      answers: { 200: { description: 'As they come', contentType: 'text/event-stream' } },
      async handle(request) {
        const { tenant } = asking(request, 'read');
        const after = request.headers['last-event-id'] ?? request.query.after;
        const { signal } = request;
        return serverSentEvents(
          sentBroadcasts(notifier.followBroadcasts({ tenant, after, signal })),
          request,
        );
      },
    }),
  ];
}

async function* sentBroadcasts(news: AsyncIterable<BroadcastNews>): AsyncGenerator<SentEvent> {
  for await (const { position, ...data } of news) yield { event: 'broadcast', id: position, data };
}
