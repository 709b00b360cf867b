// The routes and messages of the test bank: a vault over HTTP and a bell over WebSocket.

import { Type } from '../../../contracts/type.ts';
import { MillraceError } from '../../../foundation/error.ts';
import {
  createTopics,
  defineSocket,
  route,
  type ErrorShape,
  type ModuleWeb,
  type WebContext,
} from '../../../platform/index.ts';

const errors: ErrorShape = {
  schema: Type.Object({ error: Type.Object({ code: Type.String(), message: Type.String() }) }),
  toResponse: ({ code, detail, status }) => ({
    status: status === 422 ? 409 : status,
    headers: { 'x-bank': 'closed' },
    body: { error: { code, message: detail } },
  }),
};

export function bankWeb({ handle, documents }: WebContext): ModuleWeb {
  const bell = createTopics<string>();
  const params = Type.Object({ id: Type.String({ maxLength: 100 }) });
  const own = (principal: { readonly tenant?: string } | undefined): string => {
    if (principal?.tenant !== undefined) return principal.tenant;
    throw new MillraceError('NOT_ALLOWED', 'a vault belongs to one tenant');
  };
  return {
    routes: [
      route({
        method: 'GET',
        path: '/vault/{id}',
        summary: 'The balance of a vault',
        tag: 'vault',
        access: 'use',
        params,
        responses: { 200: { description: 'The balance' } },
        errors,
        async handle({ principal, params: { id } }) {
          const found = await documents({ bc: 'banking', aggregate: 'account' }).get(
            own(principal),
            id,
          );
          if (found === undefined) throw new MillraceError('NOT_FOUND', 'unknown vault');
          return { body: found.document };
        },
      }),
      route({
        method: 'POST',
        path: '/vault/{id}',
        summary: 'Deposits an amount in a vault',
        tag: 'vault',
        access: 'append',
        params,
        body: Type.Object({ amount: Type.Integer({ minimum: 1, maximum: 2_000 }) }),
        responses: { 201: { description: 'The deposit is stored' } },
        errors,
        async handle({ principal, params: { id }, body }) {
          const tenant = own(principal);
          const command = { type: 'account.deposit', payload: body } as const;
          const { revision } = await handle({ tenant, id, command });
          bell.publish(tenant, JSON.stringify({ type: 'bell.rung', id, ...body }));
          return { status: 201, body: { revision } };
        },
      }),
    ],
    socket: defineSocket({
      messages: {
        'bell.hear': Type.Object({ times: Type.Integer({ minimum: 1, maximum: 3 }) }),
        'bell.break': Type.Object({}),
      },
      sends: { 'bell.rung': Type.Object({ id: Type.String(), amount: Type.Integer() }) },
      error: ({ code, detail }) => ({ type: 'error', code, message: detail }),
      connect(client) {
        const leaving: (() => void)[] = [];
        client.send({ type: 'bell.hello', name: client.principal.name });
        return {
          on: {
            'bell.hear': ({ times }) => {
              const topic = own(client.principal);
              for (let at = 0; at < times; at += 1) leaving.push(bell.join(topic, client.send));
              client.send({ type: 'bell.heard', times });
            },
            'bell.break': () => {
              throw new MillraceError('NOT_ALLOWED', 'the bell cannot be broken');
            },
          },
          [Symbol.dispose]() {
            for (const leave of leaving) leave();
          },
        };
      },
    }),
  };
}
