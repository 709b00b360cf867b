// Sagas over HTTP: where each of them is, and what lets a parked one go on.

import { Type } from '../../../contracts/type.ts';
import { MillraceError } from '../../../foundation/error.ts';
import { sagaAt } from '../../../reactors/saga-at.ts';
import { sagaStatuses } from '../../../reactors/saga-index.ts';
import { route, type ApiRequest, type Route } from '../../../platform/modules/route.ts';
import {
  askedBy,
  audited,
  closed,
  isWithin,
  pageBy,
  pageOf,
  pageQuery,
  tenantWithin,
  text,
  type AdminContext,
} from './admin-context.ts';

const tag = 'admin: sagas';
const access = 'admin';

const status = Type.Enum([...sagaStatuses]);
const optional = Type.Optional(Type.String());
const params = closed({ stream: text(400, 'As in shop.fulfilment.v1-core-o1.') });

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
    reason: optional,
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
    data: Type.Unknown(),
    startedAt: optional,
    updatedAt: optional,
    correlationId: optional,
    steps: Type.Array(
      Type.Object({
        step: Type.String(),
        status: Type.String(),
        command: optional,
        reason: optional,
      }),
    ),
    timers: Type.Array(Type.Object({ timer: Type.String(), dueAt: Type.String() })),
    held: Type.Integer({ description: 'Events that wait.' }),
    reason: optional,
    parked: Type.Optional(Type.Object({ at: Type.String(), reason: Type.String() })),
  },
  { title: 'Saga' },
);

export function sagaRoutes(context: AdminContext): readonly Route[] {
  const { store, sagas: index } = context.platform.engines;

  /** Another tenant's is as if it were not there. */
  const find = async (request: Pick<ApiRequest, 'principal'>, stream: string) => {
    const found = await sagaAt(store, stream, { index });
    if (isWithin(request, found.address.tenant)) return found;
    throw new MillraceError('SAGA_UNKNOWN', 'there is no such saga', { details: { stream } });
  };

  return [
    route({
      method: 'GET',
      path: '/admin/sagas',
      summary: 'Sagas by status, in the order of their streams',
      tag,
      access,
      query: closed({
        saga: Type.Optional(text(200, 'As in shop.fulfilment.v1.')),
        status: Type.Optional(status),
        tenant: Type.Optional(text(100)),
        ...pageQuery,
      }),
      answers: { 200: { description: 'A page', schema: pageOf(entry) } },
      async handle(request) {
        const { limit, cursor, tenant: asked, ...query } = request.query;
        const tenant = tenantWithin(request, asked);
        const filter = { ...query, ...(tenant === undefined ? {} : { tenant }) };
        return pageBy(
          { limit, cursor },
          (page) => index.list({ ...filter, ...page }),
          ({ stream }) => stream,
        );
      },
    }),
    route({
      method: 'GET',
      path: '/admin/sagas/{stream}',
      summary: 'A saga: its steps, timers, and why it is parked',
      tag,
      access,
      params,
      answers: { 200: { description: 'The saga', schema: info } },
      async handle(request) {
        const { sagas, address } = await find(request, request.params.stream);
        return { body: await sagas.get(address) };
      },
    }),
    route({
      method: 'POST',
      path: '/admin/sagas/{stream}/resume',
      summary: 'Lets a parked saga try again, or go on without what it is parked at',
      tag,
      access,
      params,
      body: closed({
        skip: Type.Optional(
          Type.Boolean({ description: 'Without it: it was done by hand, or had no effect.' }),
        ),
        note: Type.Optional(text(2_000)),
      }),
      answers: {
        200: { description: 'The saga', schema: info },
        409: { description: 'It is not parked' },
      },
      handle: (request) => {
        const { stream } = request.params;
        const { skip = false, note } = request.body;
        const how = skip ? 'skip' : 'resume';
        const what = { action: `saga.${how}`, target: stream };
        return audited(context, request, what, async () => {
          const { sagas, address } = await find(request, stream);
          const by = askedBy(request);
          await sagas[how](address, note === undefined ? { by } : { by, note });
          return { body: await sagas.get(address) };
        });
      },
    }),
  ];
}
