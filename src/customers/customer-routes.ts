// Customers over HTTP: tell, follow, list, acknowledge, and how they want it.

import type { TObject, TSchema } from 'typebox';
import { Type } from '../contracts/type.ts';
import { buildIdempotencyKey } from '../contracts/idempotency-key.ts';
import { MillraceError } from '../foundation/error.ts';
import { idFromKey } from '../foundation/ids.ts';
import { flowHeadersShown, flowOf } from '../platform/modules/flow-of.ts';
import { route, type ApiRequest, type Route } from '../platform/modules/route.ts';
import { serverSentEvents, type SentEvent } from '../platform/modules/server-sent-events.ts';
import { followHeadersShown, repeatHeadersShown } from './headers-shown.ts';
import { mayNotify, type Asker, type NotifyDeed } from './customer-access.ts';
import type { CustomerNews } from './customer-news.ts';
import type { CustomerAddress, Notifier } from './customer-notifier.ts';
import {
  customerIdSchema,
  fields,
  messageFields,
  notificationIdSchema,
  preferencesSchema,
} from './customer-schemas.ts';

const tag = 'notifications';
const { closed, oneOf } = fields;
const customerParams = Type.Object({ customerId: customerIdSchema });
const text = Type.String();
const textOrNull = Type.Union([text, Type.Null()]);

export const pageQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200 })),
  cursor: Type.Optional(Type.String({ maxLength: 1_000 })),
};
export const tenantHeader = 'x-tenant-id';

const contactBody = Type.Object(
  {
    email: Type.Optional(Type.String({ maxLength: 254 })),
    webhookUrl: Type.Optional(Type.String({ maxLength: 2_048 })),
    topic: Type.Optional(Type.String({ maxLength: 64 })),
  },
  closed,
);

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

/** A repeat under one key is the same notification, and has one effect. */
export function repeatOf(
  tenant: string,
  operation: string,
  given: string | undefined,
): { readonly id?: string; readonly idempotencyKey?: string } {
  if (given === undefined) return {};
  if (given === '') {
    throw new MillraceError('REQUEST_INVALID', 'the idempotency key is empty', {
      details: { field: 'idempotency-key' },
    });
  }
  const key = buildIdempotencyKey({ tenant, service: 'notify', operation, naturalKey: given });
  return { id: idFromKey(key), idempotencyKey: key };
}

export function customerRoutes(notifier: Notifier): readonly Route[] {
  /** The request of somebody who may, as the notifier takes it. */
  const asking = (
    request: ApiRequest<{ customerId: string }>,
    deed: NotifyDeed,
  ): { readonly who: Asker; readonly address: CustomerAddress } => {
    const { customerId } = request.params;
    const { [tenantHeader]: tenant } = request.headers;
    const who = mayNotify(request.principal, { deed, tenant, customerId });
    const { signal } = request;
    const user = { id: who.name };
    return { who, address: { tenant: who.tenant, customerId, signal, user, ...flowOf(request) } };
  };
  const base = '/api/v1/notify/customers/{customerId}';
  const of = <Params extends TObject, Query extends TObject, Body extends TSchema>(
    definition: Omit<Parameters<typeof route<Params, Query, Body>>[0], 'access' | 'tag'>,
  ): Route => route<Params, Query, Body>({ ...definition, access: 'known', tag });

  return [
    of({
      method: 'POST',
      path: `${base}/notifications`,
      summary: 'Tells a customer something',
      description:
        'At once, at the end of the quiet hours, in a digest, as one with what is alike, or not at all: as the customer wants it; `outcome` says which. With `Idempotency-Key` a repeat is the same notification.',
      params: customerParams,
      body: Type.Object({ category: oneOf(['alert', 'info']), ...messageFields }, closed),
      headersShown: repeatHeadersShown,
      answers: {
        201: {
          description: 'It is stored, and will be told',
          schema: Type.Object({
            notificationId: text,
            outcome: oneOf(['delivered', 'held', 'merged', 'digested', 'suppressed', 'known']),
            partOf: Type.Optional(
              Type.String({ description: 'What it was merged into, or the digest that it is in.' }),
            ),
          }),
        },
        422: { description: 'The inbox is full, or an escalation would never come' },
      },
      async handle(request) {
        const { address } = asking(request, 'publish');
        const { id, idempotencyKey } = repeatOf(
          address.tenant,
          'notify',
          keyOf(request, address.customerId),
        );
        const { position: _position, ...body } = await notifier.notify({
          ...address,
          message: { ...request.body, ...(id === undefined ? {} : { notificationId: id }) },
          ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
        });
        return { status: 201, body };
      },
    }),
    of({
      method: 'GET',
      path: `${base}/notifications`,
      summary: 'What a customer was told, newest first',
      params: customerParams,
      query: Type.Object({
        ...pageQuery,
        open: Type.Optional(Type.Boolean({ description: 'Only what nobody has acknowledged.' })),
      }),
      answers: {
        200: {
          description: '`cursor` is that of the next page',
          schema: Type.Object({
            notifications: Type.Array(notificationDocument),
            cursor: Type.Optional(text),
          }),
        },
      },
      async handle(request) {
        const { address } = asking(request, 'read');
        const { tenant, customerId } = address;
        const { items, cursor } = await notifier.list({ tenant, customerId, ...request.query });
        const list = items.map(({ document }) => document);
        return { body: { notifications: list, ...(cursor === undefined ? {} : { cursor }) } };
      },
    }),
    of({
      method: 'POST',
      path: `${base}/notifications/{notificationId}/acknowledge`,
      summary: 'Acknowledges a notification: nobody is reminded of it any more',
      params: Type.Object({ customerId: customerIdSchema, notificationId: notificationIdSchema }),
      headersShown: flowHeadersShown,
      answers: {
        204: { description: 'Done, now or before' },
        422: { description: 'There is no such notification, or it is part of a digest' },
      },
      async handle(request) {
        const { who, address } = asking(request, 'own');
        const { notificationId } = request.params;
        await notifier.acknowledge({ ...address, notificationId, by: who.name });
        return { status: 204 };
      },
    }),
    of({
      method: 'GET',
      path: `${base}/follow`,
      summary: 'What a customer is told, as it happens (server-sent events)',
      description:
        'From now on, or behind a position (`after`, `Last-Event-ID`; `start`: from the first one). The id of each is its position: nothing is missed, nothing comes twice.',
      isLong: true,
      params: customerParams,
      query: Type.Object({ after: Type.Optional(Type.String({ maxLength: 40 })) }),
      headersShown: followHeadersShown,
      answers: { 200: { description: 'As they come', contentType: 'text/event-stream' } },
      async handle(request) {
        const { address } = asking(request, 'read');
        const after = request.headers['last-event-id'] ?? request.query.after;
        const { signal } = request;
        return serverSentEvents(sentNews(notifier.follow({ ...address, after, signal })), request);
      },
    }),
    of({
      method: 'GET',
      path: `${base}/preferences`,
      summary: 'How a customer wants to be told',
      params: customerParams,
      answers: { 200: { description: 'The preferences', schema: preferencesSchema } },
      async handle(request) {
        const { address } = asking(request, 'read');
        return { body: await notifier.preferences(address) };
      },
    }),
    of({
      method: 'PUT',
      path: `${base}/preferences`,
      summary: 'Says how a customer wants to be told',
      description:
        'Per category: whether, by which channels, whether also in quiet hours, whether in digests. Quiet hours are by the clock on the wall of the time zone.',
      params: customerParams,
      body: preferencesSchema,
      headersShown: flowHeadersShown,
      answers: {
        200: { description: 'As they are now', schema: preferencesSchema },
        422: { description: 'There is no such time zone, or the quiet hours never end' },
      },
      async handle(request) {
        const { address } = asking(request, 'own');
        await notifier.configure({ ...address, preferences: request.body });
        return { body: request.body };
      },
    }),
    of({
      method: 'GET',
      path: `${base}/contact`,
      summary: 'Where a customer can be reached',
      params: customerParams,
      answers: { 200: { description: 'Addresses', schema: contactBody } },
      async handle(request) {
        const { address } = asking(request, 'read');
        return { body: await notifier.contact(address) };
      },
    }),
    of({
      method: 'PUT',
      path: `${base}/contact`,
      summary: 'Says where a customer can be reached',
      description: 'Personal data: sealed with a key of the customer, and gone with it.',
      params: customerParams,
      body: contactBody,
      headersShown: flowHeadersShown,
      answers: { 200: { description: 'As it is now', schema: contactBody } },
      async handle(request) {
        const { address } = asking(request, 'own');
        await notifier.changeContact({ ...address, contact: request.body });
        return { body: request.body };
      },
    }),
  ];
}

/** Two customers may be told under one key of the sender's. */
function keyOf({ headers }: Pick<ApiRequest, 'headers'>, customerId: string): string | undefined {
  const given = headers['idempotency-key'];
  return given === undefined || given === '' ? given : `${customerId}|${given}`;
}

async function* sentNews(news: AsyncIterable<CustomerNews>): AsyncGenerator<SentEvent> {
  for await (const each of news) {
    const { kind, position, ...data } = each;
    yield { event: kind, id: position, data };
  }
}
