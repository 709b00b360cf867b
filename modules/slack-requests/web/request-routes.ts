// Routes of requests: create, get, list by status, change, queue again.

import { Type } from 'millrace/contracts';
import { route, type Route, type WebContext } from 'millrace/platform';
import { boundedContext, slackRequestLimits } from '../fields.ts';
import { createRequest, queueRequest, updateRequest } from '../message-request-events.ts';
import { requestProjection, requestSchema } from '../message-request-projection.ts';
import { requestStatuses } from '../message-request.ts';
import {
  flowHeader,
  headersShown,
  idText,
  newRequestId,
  notFound,
  pageQuery,
  root,
  send,
  settled,
  tenantOf,
} from './slack-endpoint.ts';

const tag = 'slack: requests';
const params = Type.Object({ id: idText });
const data = Type.Record(Type.String(), Type.Any(), {
  description: 'Data of the template; without a template, `text` and optionally `blocks`.',
});
const slackId = Type.String({
  pattern: '^[CGDUW][A-Z0-9]{1,20}$',
  description: 'A channel id or user id of Slack.',
});
const thread = Type.String({ pattern: '^[0-9]{1,12}\\.[0-9]{1,9}$' });
const queueing = {
  priority: Type.Optional(Type.Integer({ minimum: 1, maximum: slackRequestLimits.priorityMax })),
  delayMs: Type.Optional(Type.Integer({ minimum: 0, maximum: slackRequestLimits.delayMsMax })),
};
const accepted = Type.Object({ id: Type.String(), status: Type.String() });

export function requestRoutes(context: WebContext): readonly Route[] {
  const documents = context.documents({ bc: boundedContext, aggregate: 'message-request' });
  const accept = (outcome: Awaited<ReturnType<typeof send>>, id: string) => ({
    status: 202,
    headers: flowHeader(outcome),
    body: { id, status: (outcome.state as { readonly status: string }).status },
  });

  return [
    route({
      method: 'POST',
      path: `${root}/requests`,
      summary: 'Request a message',
      tag,
      access: 'append',
      headersShown: {
        ...headersShown,
        'Idempotency-Key': 'A repeated request with the same key creates nothing.',
      },
      body: Type.Object(
        {
          workspaceCode: idText,
          templateCode: Type.Optional(idText),
          channelCode: Type.Optional(idText),
          recipient: Type.Optional(slackId),
          threadTs: Type.Optional(thread),
          data,
          ...queueing,
        },
        { additionalProperties: false },
      ),
      responses: { 202: { description: 'Queued', schema: accepted } },
      async handle(request) {
        const { id, key } = newRequestId(request);
        const command = createRequest(request.body as Parameters<typeof createRequest>[0]);
        return accept(await send(context, request, { id, command, key }), id);
      },
    }),
    route({
      method: 'GET',
      path: `${root}/requests`,
      summary: 'List requests, last changed first; with a status, newest first',
      tag,
      access: 'read',
      query: Type.Object({ status: Type.Optional(Type.Enum([...requestStatuses])), ...pageQuery }),
      responses: {
        200: {
          description: 'A page',
          schema: Type.Object({
            items: Type.Array(requestSchema),
            cursor: Type.Optional(Type.String()),
          }),
        },
      },
      async handle(request) {
        const { status, limit = 50, cursor } = request.query;
        const tenant = tenantOf(request);
        const page = await request.memory.page({ limit, cursor }, (part) => {
          const options = { ...part, direction: 'descending' } as const;
          return status === undefined
            ? documents.byRange(tenant, 'updated', options)
            : documents.byRange(tenant, 'status', { ...options, group: status });
        });
        const items = page.items.map(({ document }) => document);
        return { body: { items, cursor: page.cursor } };
      },
    }),
    route({
      method: 'GET',
      path: `${root}/requests/{id}`,
      summary: 'Get a request and its outcome',
      tag,
      access: 'read',
      params,
      responses: { 200: { description: 'The request', schema: requestSchema } },
      async handle(request) {
        const found = await documents.get(tenantOf(request), request.params.id);
        if (found === undefined) throw notFound('request');
        return { body: found.document };
      },
    }),
    route({
      method: 'PATCH',
      path: `${root}/requests/{id}`,
      summary: 'Change a request that was not sent; a failed one is queued again',
      tag,
      access: 'append',
      headersShown,
      params,
      body: Type.Object(
        {
          templateCode: Type.Optional(Type.Union([idText, Type.Null()])),
          channelCode: Type.Optional(Type.Union([idText, Type.Null()])),
          recipient: Type.Optional(Type.Union([slackId, Type.Null()])),
          threadTs: Type.Optional(Type.Union([thread, Type.Null()])),
          data: Type.Optional(data),
        },
        { additionalProperties: false },
      ),
      responses: { 202: { description: 'Changed', schema: accepted } },
      async handle(request) {
        const { id } = request.params;
        const command = updateRequest(request.body as Parameters<typeof updateRequest>[0]);
        const outcome = await send(context, request, { id, command });
        await settled(context, requestProjection, outcome);
        return accept(outcome, id);
      },
    }),
    route({
      method: 'POST',
      path: `${root}/requests/{id}/queue`,
      summary: 'Queue a failed request again',
      tag,
      access: 'append',
      headersShown,
      params,
      body: Type.Object(queueing, { additionalProperties: false }),
      responses: { 202: { description: 'Queued', schema: accepted } },
      async handle(request) {
        const { id } = request.params;
        const outcome = await send(context, request, { id, command: queueRequest(request.body) });
        return accept(outcome, id);
      },
    }),
  ];
}
