// Versions of read models over HTTP: how far each is, which one is asked, and the end of those that are
// not. Building one needs its code and hours: that is the command line's.

import { Type } from 'typebox';
import { namedVersion } from '../../projections/named-version.ts';
import {
  projectionStatus,
  retireProjection,
  switchProjection,
} from '../../projections/switch-projection.ts';
import { withLeases } from '../../subscriptions/with-leases.ts';
import { route, type Route } from '../http/route.ts';
import { audited, checkGlobal, closed, pageOf, text, type AdminContext } from './admin-context.ts';

const tag = 'admin: projections';
const access = 'admin';

const params = closed({ name: text(400, 'As in sub:banking:accounts:v2.') });
const status = Type.Object(
  {
    family: Type.String(),
    version: Type.Integer(),
    projection: Type.String(),
    status: Type.Enum(['building', 'ready', 'retiring', 'retired']),
    active: Type.Boolean({ description: 'Queries ask this one.' }),
    target: Type.Optional(Type.String()),
    changedAtMs: Type.Integer(),
    behind: Type.Optional(Type.Integer()),
    seconds: Type.Optional(Type.Number()),
    paused: Type.Boolean(),
    deadLetters: Type.Integer(),
  },
  { title: 'ProjectionVersion' },
);

export function projectionRoutes(context: AdminContext): readonly Route[] {
  const {
    store,
    leases,
    readModels,
    readModelVersions: versions,
    ...engines
  } = context.platform.engines;
  const storage = leases === undefined ? engines.storage : withLeases(engines.storage, leases);
  const host = { storage, readModels, versions };

  return [
    route({
      method: 'GET',
      path: '/admin/projections',
      summary: 'All versions of all read models',
      tag,
      access,
      answers: { 200: { description: 'All of them', schema: pageOf(status) } },
      async handle(request) {
        checkGlobal(request);
        return { body: { items: await projectionStatus(store, host) } };
      },
    }),
    route({
      method: 'POST',
      path: '/admin/projections/{name}/switch',
      summary: 'From now on all queries ask this version',
      tag,
      access,
      params,
      answers: {
        200: {
          description: 'The version that is asked',
          schema: closed({ family: Type.String(), active: Type.Integer() }),
        },
        409: { description: 'It has never caught up' },
      },
      handle: (request) => {
        const { name } = request.params;
        const what = { action: 'projection.switch', target: name };
        return audited(context, request, what, async () => {
          checkGlobal(request);
          const version = await namedVersion(versions, name);
          await switchProjection(store, version, host);
          const { bc, aggregate, version: active } = version.readModel;
          return { body: { family: `${bc}.${aggregate}`, active } };
        });
      },
    }),
    route({
      method: 'POST',
      path: '/admin/projections/{name}/retire',
      summary: 'Stops a version that is not asked, and removes its documents',
      description: 'Answered when all are removed. Broken off, it goes on when it is called again.',
      tag,
      access,
      params,
      isLong: true,
      answers: {
        200: { description: 'How many documents', schema: closed({ removed: Type.Integer() }) },
        409: { description: 'It is being asked: switch to another version first' },
      },
      handle: (request) => {
        const { name } = request.params;
        const what = { action: 'projection.retire', target: name };
        return audited(context, request, what, async () => {
          checkGlobal(request);
          const version = await namedVersion(versions, name);
          const { signal } = request;
          return { body: { removed: await retireProjection(store, version, { ...host, signal }) } };
        });
      },
    }),
  ];
}
