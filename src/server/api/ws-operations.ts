// The operations of WebSocket messages: commands and queries call the HTTP routes, so both have the same rules.

import { Type } from '../../contracts/type.ts';
import { MillraceError } from '../../foundation/error.ts';
import { checked } from '../http/read-inputs.ts';
import { checkRouteAccess } from '../../platform/modules/principal.ts';
import {
  route,
  type RouteResponse,
  type ApiRequest,
  type Route,
} from '../../platform/modules/route.ts';
import type { WsContext, WsOperations } from '../http/ws-connection.ts';
import { wsMessages, type WsMessage } from '../http/ws-message.ts';
import type { ModuleSocket } from '../../platform/modules/module-web.ts';
import type { ApiPlatform } from './api-context.ts';
import { followEvents, followStream } from './follow.ts';

const documentsPath = '/api/v1/documents/{bc}/{aggregate}';

export function wsOperations(platform: ApiPlatform, routes: readonly Route[]): WsOperations {
  const byPath = new Map(routes.map((each) => [`${each.method} ${each.path}`, each]));
  const call = async (
    name: string,
    context: WsContext,
    parts: { readonly params?: object; readonly query?: object; readonly body?: object },
    headers: Readonly<Record<string, string | undefined>>,
  ): Promise<unknown> => {
    const found = byPath.get(name);
    if (found === undefined) throw new MillraceError('NOT_FOUND', `unknown operation '${name}'`);
    const inputs = { params: {}, query: {}, body: undefined, ...parts };
    const response = await callRoute(found, { ...context, ...inputs, headers });
    return 'body' in response ? response.body : undefined;
  };

  const command = (message: WsMessage['command'], context: WsContext): Promise<unknown> => {
    const { aggregate, aggregateId, payload, expected, idempotencyKey } = message;
    const { correlationId, tenant } = message;
    return call(
      `POST /api/v1/commands/${message.command}`,
      context,
      { body: { aggregate, id: aggregateId, payload, expected } },
      {
        'x-tenant-id': tenant,
        'idempotency-key': idempotencyKey,
        'x-correlation-id': correlationId,
      },
    );
  };

  const query = (message: WsMessage['query'], context: WsContext): Promise<unknown> => {
    const { bc, aggregate, documentId, query: given = {}, tenant } = message;
    const headers = { 'x-tenant-id': tenant };
    if (documentId === undefined) {
      const parts = { params: { bc, aggregate }, query: given };
      return call(`GET ${documentsPath}`, context, parts, headers);
    }
    const parts = { params: { bc, aggregate, id: documentId }, query: given };
    return call(`GET ${documentsPath}/{id}`, context, parts, headers);
  };

  return {
    async follow({ stream, type: _type, id: _id, ...wanted }, context) {
      const caller = { ...context, headers: {} };
      if (stream === undefined) return followEvents(platform, caller, wanted);
      return followStream(platform, caller, { stream, after: wanted.after });
    },
    execute: (message, context) =>
      message.type === 'command' ? command(message, context) : query(message, context),
  };
}

/** Documents the messages in the reference, and responds to requests without an upgrade. */
export const wsRoute = (sockets: readonly ModuleSocket[]): Route =>
  route({
    method: 'GET',
    path: '/ws',
    summary: 'Subscriptions, commands and queries over one WebSocket',
    description:
      'Subprotocol millrace.v1. Send credentials in the Authorization header, in a first message of type auth, or as `token`. See docs/websocket.md.',
    tag: 'websocket',
    access: 'anonymous',
    query: Type.Object({
      token: Type.Optional(Type.String({ description: 'Not recommended: proxies log URLs.' })),
    }),
    responses: {
      101: { description: 'Switches to JSON messages', schema: wsMessages(sockets) },
      426: { description: 'The request is not a WebSocket upgrade' },
    },
    handle: async () => ({
      status: 426,
      headers: { upgrade: 'websocket', connection: 'upgrade' },
      body: { detail: 'connect with a WebSocket client' },
    }),
  });

/** Calls a route without an HTTP request, with the same access checks and validation. */
async function callRoute(called: Route, request: ApiRequest): Promise<RouteResponse> {
  checkRouteAccess(called, request.principal);
  const { params, query, body } = called;
  return called.handle({
    ...request,
    params: params === undefined ? {} : checked('path', params, request.params),
    query: query === undefined ? {} : checked('query', query, request.query),
    body: body === undefined ? undefined : checked('body', body, request.body),
  });
}
