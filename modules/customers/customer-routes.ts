// The HTTP routes: notifications, preferences and contact of a customer, and broadcasts.

import type { TObject, TSchema } from 'typebox';
import { buildIdempotencyKey, Type } from 'millrace/contracts';
import { idFromKey, MillraceError } from 'millrace/foundation';
import {
  flowHeadersShown,
  flowOf,
  route,
  serverSentEvents,
  type ApiRequest,
  type Route,
  type SentEvent,
} from 'millrace/platform';
import type { Page } from 'millrace/projections';
import { broadcastFields } from './broadcast.ts';
import { authorize, type NotifyAction } from './customer-access.ts';
import type { CustomerAddress, Notifier } from './customer-notifier.ts';
import {
  contactSchema,
  idSchema,
  messageFields,
  object,
  oneOf,
  preferencesSchema,
} from './customer-schemas.ts';

const tag = 'notifications';
const tenantHeader = 'x-tenant-id';
const customerPath = '/api/v1/notify/customers/{customerId}';
const broadcastPath = '/api/v1/notify/broadcasts';
const customerParams = Type.Object({ customerId: idSchema });
const followQuery = Type.Object({ after: Type.Optional(Type.String({ maxLength: 40 })) });
const text = Type.String();
const textOrNull = Type.Union([text, Type.Null()]);

const limitDefault = 100;
const pageQuery = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 200, description: `Default: ${limitDefault}.` }),
  ),
  cursor: Type.Optional(Type.String({ maxLength: 1_000 })),
};

const idempotencyHeaders = {
  'Idempotency-Key':
    'A repeated request with the same key has no further effect and gets the first response.',
  ...flowHeadersShown,
};
const followHeaders = {
  'Last-Event-ID': 'The id of the last received event; takes precedence over `after`.',
};
const eventStream = {
  200: { description: 'The events as they occur', contentType: 'text/event-stream' },
};

const notificationDocument = Type.Object({
  notificationId: text,
  customerId: text,
  category: text,
  title: text,
  body: textOrNull,
  key: textOrNull,
  count: Type.Integer(),
  status: oneOf(['collecting', 'held', 'delivered', 'acknowledged', 'suppressed']),
  at: text,
  heldUntil: textOrNull,
  deliveredAt: textOrNull,
  reminders: Type.Integer(),
  acknowledgedAt: textOrNull,
  acknowledgedBy: textOrNull,
  digest: Type.Unknown(),
  origin: Type.Unknown(),
  copy: Type.Unknown(),
});

const broadcastDocument = Type.Object({
  broadcastId: text,
  category: text,
  title: text,
  body: textOrNull,
  at: text,
  status: oneOf(['spreading', 'completed']),
  reached: Type.Integer(),
});

export function notifyRoutes(notifier: Notifier): readonly Route[] {
  return [...customerRoutes(notifier), ...broadcastRoutes(notifier)];
}

function customerRoutes(notifier: Notifier): readonly Route[] {
  const addressOf = (
    request: ApiRequest<{ customerId: string }>,
    action: NotifyAction,
  ): CustomerAddress & { readonly user: { readonly id: string } } => {
    const { customerId } = request.params;
    const { principal, headers, signal } = request;
    const wanted = { action, tenant: headers[tenantHeader], customerId };
    const { tenant, name } = authorize(principal, wanted);
    return { tenant, customerId, signal, user: { id: name }, ...flowOf(request) };
  };
  const customerRoute = <Params extends TObject, Query extends TObject, Body extends TSchema>(
    definition: Omit<Parameters<typeof route<Params, Query, Body>>[0], 'access' | 'tag'>,
  ): Route => route<Params, Query, Body>({ ...definition, access: 'use', tag });

  return [
    customerRoute({
      method: 'POST',
      path: `${customerPath}/notifications`,
      summary: 'Notifies a customer',
      description:
        'Delivers at once, holds until the end of the quiet hours, adds to a digest, merges with a similar notification, or suppresses it, according to the preferences of the customer; `outcome` says which. A repeat with the same `Idempotency-Key` is the same notification.',
      params: customerParams,
      body: object({ category: oneOf(['alert', 'info']), ...messageFields }),
      headersShown: idempotencyHeaders,
      responses: {
        201: {
          description: 'The notification is stored',
          schema: Type.Object({
            notificationId: text,
            outcome: oneOf(['delivered', 'held', 'merged', 'digested', 'suppressed', 'known']),
            partOf: Type.Optional(
              Type.String({
                description: 'The notification it was merged into, or the digest that contains it.',
              }),
            ),
          }),
        },
        422: { description: 'The inbox is full, or the escalation comes after the last reminder' },
      },
      async handle(request) {
        const address = addressOf(request, 'publish');
        const { tenant, customerId } = address;
        const { 'idempotency-key': key } = request.headers;
        // Two customers may be notified with the same key.
        const naturalKey = key ? `${customerId}|${key}` : key;
        const { id, idempotencyKey } = deduplicationOf(tenant, 'notify', naturalKey);
        const { position: _position, ...body } = await notifier.notify({
          ...address,
          message: { ...request.body, notificationId: id },
          idempotencyKey,
        });
        return { status: 201, body };
      },
    }),
    customerRoute({
      method: 'GET',
      path: `${customerPath}/notifications`,
      summary: 'Lists the notifications of a customer, newest first',
      params: customerParams,
      query: Type.Object({
        ...pageQuery,
        open: Type.Optional(
          Type.Boolean({ description: 'Only notifications that are not acknowledged.' }),
        ),
      }),
      responses: pageResponse(notificationDocument),
      async handle(request) {
        const { tenant, customerId } = addressOf(request, 'read');
        const { open, limit = limitDefault, cursor } = request.query;
        const page = await request.memory.page({ limit, cursor }, (part) =>
          notifier.list({ ...part, tenant, customerId, open }),
        );
        return { body: toList(page) };
      },
    }),
    customerRoute({
      method: 'POST',
      path: `${customerPath}/notifications/{notificationId}/acknowledge`,
      summary: 'Acknowledges a notification, which ends its reminders',
      params: Type.Object({ customerId: idSchema, notificationId: idSchema }),
      headersShown: flowHeadersShown,
      responses: {
        204: { description: 'The notification is acknowledged, by this request or an earlier one' },
        422: { description: 'The notification does not exist, or is part of a digest' },
      },
      async handle(request) {
        const address = addressOf(request, 'own');
        const { notificationId } = request.params;
        await notifier.acknowledge({ ...address, notificationId, by: address.user.id });
        return { status: 204 };
      },
    }),
    customerRoute({
      method: 'GET',
      path: `${customerPath}/follow`,
      summary: 'Follows the notifications of a customer (server-sent events)',
      description:
        'Starts at the current end, or after a position (`after`, `Last-Event-ID`; `start`: from the first one). The id of each event is its position. A client that continues from the last id misses none and gets none twice.',
      isLong: true,
      params: customerParams,
      query: followQuery,
      headersShown: followHeaders,
      responses: eventStream,
      async handle(request) {
        const address = addressOf(request, 'read');
        const { headers, query, signal } = request;
        const after = headers['last-event-id'] ?? query.after;
        const news = notifier.follow({ ...address, after, signal });
        return serverSentEvents(toSentEvents(news), request);
      },
    }),
    customerRoute({
      method: 'GET',
      path: `${customerPath}/preferences`,
      summary: 'Returns the notification preferences of a customer',
      params: customerParams,
      responses: { 200: { description: 'The preferences', schema: preferencesSchema } },
      async handle(request) {
        return { body: await notifier.preferences(addressOf(request, 'read')) };
      },
    }),
    customerRoute({
      method: 'PUT',
      path: `${customerPath}/preferences`,
      summary: 'Replaces the notification preferences of a customer',
      description:
        'Per category: whether it is enabled, its channels, whether it ignores quiet hours, and whether it goes into digests. Quiet hours follow the wall clock of the time zone.',
      params: customerParams,
      body: preferencesSchema,
      headersShown: flowHeadersShown,
      responses: {
        200: { description: 'The new preferences', schema: preferencesSchema },
        422: { description: 'The time zone is unknown, or the quiet hours cover the whole week' },
      },
      async handle(request) {
        await notifier.configure({ ...addressOf(request, 'own'), preferences: request.body });
        return { body: request.body };
      },
    }),
    customerRoute({
      method: 'GET',
      path: `${customerPath}/contact`,
      summary: 'Returns the contact addresses of a customer',
      params: customerParams,
      responses: { 200: { description: 'The addresses', schema: contactSchema } },
      async handle(request) {
        return { body: await notifier.contact(addressOf(request, 'read')) };
      },
    }),
    customerRoute({
      method: 'PUT',
      path: `${customerPath}/contact`,
      summary: 'Replaces the contact addresses of a customer',
      description:
        'Personal data: encrypted with a key of the customer. Deleting the key erases the addresses.',
      params: customerParams,
      body: contactSchema,
      headersShown: flowHeadersShown,
      responses: { 200: { description: 'The new addresses', schema: contactSchema } },
      async handle(request) {
        await notifier.changeContact({ ...addressOf(request, 'own'), contact: request.body });
        return { body: request.body };
      },
    }),
  ];
}

function broadcastRoutes(notifier: Notifier): readonly Route[] {
  const authorized = ({ principal, headers }: ApiRequest, action: NotifyAction) =>
    authorize(principal, { action, tenant: headers[tenantHeader] });

  return [
    route({
      method: 'POST',
      path: broadcastPath,
      summary: 'Notifies all customers of the tenant',
      description:
        'Each customer gets the broadcast according to the preferences for its category. A repeat with the same `Idempotency-Key` is the same broadcast.',
      tag,
      access: 'append',
      body: object(broadcastFields),
      headersShown: idempotencyHeaders,
      responses: {
        201: {
          description: 'The broadcast is stored',
          schema: Type.Object({ broadcastId: text }),
        },
      },
      async handle(request) {
        const { tenant, name } = authorized(request, 'publish');
        const key = request.headers['idempotency-key'];
        const { id, idempotencyKey } = deduplicationOf(tenant, 'broadcast', key);
        const { broadcastId } = await notifier.broadcast({
          ...request.body,
          ...flowOf(request),
          tenant,
          user: { id: name },
          signal: request.signal,
          broadcastId: id,
          idempotencyKey,
        });
        return { status: 201, body: { broadcastId } };
      },
    }),
    route({
      method: 'GET',
      path: broadcastPath,
      summary: 'Lists the broadcasts of the tenant, newest first',
      tag,
      access: 'use',
      query: Type.Object(pageQuery),
      responses: pageResponse(broadcastDocument),
      async handle(request) {
        const { tenant } = authorized(request, 'read');
        const { limit = limitDefault, cursor } = request.query;
        const page = await request.memory.page({ limit, cursor }, (part) =>
          notifier.broadcasts({ ...part, tenant }),
        );
        return { body: toList(page) };
      },
    }),
    route({
      method: 'GET',
      path: `${broadcastPath}/follow`,
      summary: 'Follows the broadcasts of the tenant (server-sent events)',
      description:
        'Starts at the current end, or after a position (`after`, `Last-Event-ID`; `start`: from the first one).',
      tag,
      access: 'use',
      isLong: true,
      query: followQuery,
      headersShown: followHeaders,
      responses: eventStream,
      async handle(request) {
        const { tenant } = authorized(request, 'read');
        const { headers, query, signal } = request;
        const after = headers['last-event-id'] ?? query.after;
        const news = notifier.followBroadcasts({ tenant, after, signal });
        return serverSentEvents(toSentEvents(news), request);
      },
    }),
  ];
}

function pageResponse(document: TSchema) {
  const schema = Type.Object({ items: Type.Array(document), cursor: Type.Optional(text) });
  return { 200: { description: '`cursor` selects the next page', schema } };
}

function toList({ items, cursor }: Page<object>): object {
  return { items: items.map(({ document }) => document), cursor };
}

/** A repeated request with the same key gets the same id, and its command runs once. */
function deduplicationOf(
  tenant: string,
  operation: string,
  naturalKey: string | undefined,
): { readonly id?: string; readonly idempotencyKey?: string } {
  if (naturalKey === undefined) return {};
  if (naturalKey === '') {
    throw new MillraceError('REQUEST_INVALID', 'the idempotency key is empty', {
      details: { field: 'idempotency-key' },
    });
  }
  const key = buildIdempotencyKey({ tenant, service: 'notify', operation, naturalKey });
  return { id: idFromKey(key), idempotencyKey: key };
}

async function* toSentEvents(
  updates: AsyncIterable<{ readonly kind?: string; readonly position: string }>,
): AsyncGenerator<SentEvent> {
  for await (const { kind = 'broadcast', position, ...data } of updates) {
    yield { event: kind, id: position, data };
  }
}
