// Sagas over HTTP: list, details, and resume of parked sagas.

import { Type } from '../../../contracts/type.ts';
import { MillraceError } from '../../../foundation/error.ts';
import { sagaAt } from '../../../reactors/saga-admin.ts';
import { sagaStatuses } from '../../../reactors/saga-index.ts';
import { isWithin, tenantWithin, returns, routesOf } from '../api-context.ts';
import { route, type ApiRequest, type Route } from '../../../platform/modules/route.ts';
import { errorText, payloadValue } from '../../http/masked-fields.ts';
import {
  actorName,
  audited,
  closed,
  pageBy,
  pageOf,
  pageQuery,
  text,
  type AdminContext,
} from './admin-context.ts';

const { get, post } = routesOf('admin: sagas', { get: 'read', post: 'operate' });

const status = Type.Enum([...sagaStatuses]);
const optional = Type.Optional(Type.String());
const params = closed({ stream: text(400, 'For example shop.fulfilment.v1-core-o1.') });

const entry = Type.Object(
  {
    stream: Type.String(),
    saga: Type.String(),
    tenant: Type.String(),
    key: Type.String(),
    status,
    revision: Type.Integer(),
    updatedAtMs: Type.Integer(),
    dueAtMs: Type.Optional(Type.Integer()),
    shard: Type.Integer(),
    reason: Type.Optional(errorText()),
  },
  { title: 'SagaEntry' },
);
const info = Type.Object(
  {
    stream: Type.String(),
    tenant: Type.String(),
    key: Type.String(),
    status,
    revision: Type.Integer(),
    data: payloadValue(),
    startedAt: optional,
    updatedAt: optional,
    correlationId: optional,
    steps: Type.Array(
      Type.Object({
        step: Type.String(),
        status: Type.String(),
        command: optional,
        reason: Type.Optional(errorText()),
      }),
    ),
    timers: Type.Array(Type.Object({ timer: Type.String(), dueAt: Type.String() })),
    queuedEvents: Type.Integer({ description: 'The number of queued events.' }),
    reason: Type.Optional(errorText()),
    parked: Type.Optional(
      Type.Object({
        at: Type.String(),
        reason: errorText(),
        message: Type.Optional(errorText()),
      }),
    ),
  },
  { title: 'Saga' },
);

export function sagaRoutes(context: AdminContext): readonly Route[] {
  const { engines } = context.platform;

  /** Sagas of other tenants count as unknown. */
  const find = async (
    { memory, ...request }: Pick<ApiRequest, 'memory' | 'principal'>,
    stream: string,
  ) => {
    const found = await memory.load(() => sagaAt(engines, stream));
    if (isWithin(request, found.address.tenant)) return found;
    throw new MillraceError('SAGA_UNKNOWN', `unknown saga '${stream}'`, { details: { stream } });
  };

  return [
    route({
      ...get,
      path: '/admin/sagas',
      summary: 'Sagas in the order of their streams',
      query: closed({
        saga: Type.Optional(text(200, 'For example shop.fulfilment.v1.')),
        status: Type.Optional(status),
        tenant: Type.Optional(text(100)),
        ...pageQuery,
      }),
      responses: { 200: returns('A page', pageOf(entry)) },
      async handle(request) {
        const { limit, cursor, ...query } = request.query;
        const filter = { ...query, tenant: tenantWithin(request, query.tenant) };
        return pageBy(
          request.memory,
          { limit, cursor },
          (page) => engines.sagas.list({ ...filter, ...page }),
          ({ stream }) => stream,
        );
      },
    }),
    route({
      ...get,
      path: '/admin/sagas/{stream}',
      summary: 'A saga with its steps, timers and the reason why it is parked',
      params,
      responses: { 200: returns('The saga', info) },
      async handle(request) {
        const { sagas, address } = await find(request, request.params.stream);
        return { body: await request.memory.load(() => sagas.get(address)) };
      },
    }),
    route({
      ...post,
      path: '/admin/sagas/{stream}/resume',
      summary: 'Retries the failed action of a parked saga, or skips it',
      params,
      body: closed({
        skip: Type.Optional(
          Type.Boolean({
            description: 'Skips the failed action, because it was done manually or is not needed.',
          }),
        ),
        note: Type.Optional(text(2_000)),
      }),
      responses: {
        200: returns('The saga', info),
        409: { description: 'The saga is not parked' },
      },
      handle: (request) => {
        const { stream } = request.params;
        const { skip = false, note } = request.body;
        const how = skip ? 'skip' : 'resume';
        const what = { action: `saga.${how}`, target: stream };
        return audited(context, request, what, async () => {
          const { sagas, address } = await find(request, stream);
          const by = actorName(request);
          return request.memory.load(async () => {
            await sagas[how](address, note === undefined ? { by } : { by, note });
            return { body: await sagas.get(address) };
          });
        });
      },
    }),
  ];
}
