// Versions of read models over HTTP: how far each is, which one is asked, building one beside it, and the
// end of those that nobody asks.

import { Type } from '../../../contracts/type.ts';
import { namedVersion } from '../../../projections/named-version.ts';
import {
  projectionStatus,
  retireProjection,
  switchProjection,
  type ProjectionStatus,
} from '../../../projections/switch-projection.ts';
import { withLeases } from '../../../subscriptions/with-leases.ts';
import { route, type Route } from '../../../platform/modules/route.ts';
import { audited, checkGlobal, closed, pageOf, text, type AdminContext } from './admin-context.ts';

const tag = 'admin: projections';
const access = 'admin';

const params = closed({ name: text(400, 'As in sub:banking:accounts:v2.') });
const rebuild = Type.Object(
  {
    state: Type.Enum(['running', 'done', 'failed', 'cancelled']),
    startedAt: Type.String(),
    endedAt: Type.Optional(Type.String()),
    progress: Type.Optional(
      Type.Object({
        events: Type.Integer({ description: 'Folded by this run.' }),
        position: Type.String(),
        head: Type.String(),
        done: Type.Number({ description: 'From 0 to 1.' }),
        eventsPerSecond: Type.Number(),
        secondsLeft: Type.Optional(Type.Number()),
      }),
    ),
    error: Type.Optional(Type.String({ description: 'The code of what it failed with.' })),
  },
  {
    title: 'ProjectionRebuild',
    description:
      'The last one that the answering process was asked for; it ends with the process, and the next goes on where it was.',
  },
);
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
    rebuild: Type.Optional(rebuild),
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
  const { rebuilds } = context.platform;
  const withRebuild = (each: ProjectionStatus): ProjectionStatus & { rebuild?: object } => {
    const known = rebuilds.get(each.projection);
    return known === undefined ? each : { ...each, rebuild: known };
  };

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
        const all = await projectionStatus(store, host);
        return { body: { items: all.map(withRebuild) } };
      },
    }),
    route({
      method: 'GET',
      path: '/admin/projections/{name}',
      summary: 'One version, and how far its rebuild is',
      tag,
      access,
      params,
      answers: {
        200: { description: 'As it is now', schema: status },
        404: { description: 'It was never started on this store' },
      },
      async handle(request) {
        checkGlobal(request);
        const { name } = request.params;
        await namedVersion(versions, name);
        const all = await projectionStatus(store, host);
        return { body: all.filter(({ projection }) => projection === name).map(withRebuild)[0] };
      },
    }),
    route({
      method: 'POST',
      path: '/admin/projections/{name}/rebuild',
      summary: 'Builds a version that is not asked yet, at full speed',
      description:
        'Answered when it has begun, in the process that answers, whose module the projection must be; the audit tells its end. Where other processes run the projection, pause its subscription first.',
      tag,
      access,
      params,
      answers: {
        202: { description: 'It has begun', schema: rebuild },
        404: { description: 'No module of this process has it' },
        409: { description: 'It is being built already, or it is the version that is asked' },
      },
      async handle(request) {
        const { name } = request.params;
        const began = Promise.withResolvers<object | undefined>();
        const what = { action: 'projection.rebuild', target: name };
        const ended = audited(context, request, what, async () => {
          checkGlobal(request);
          const { ended: built } = await rebuilds.start(name);
          began.resolve(rebuilds.get(name));
          await built;
        });
        // Before it has begun, what is wrong is the answer; later, the state and the audit tell it.
        return { status: 202, body: await Promise.race([began.promise, ended]) };
      },
    }),
    route({
      method: 'POST',
      path: '/admin/projections/{name}/rebuild/cancel',
      summary: 'Ends the rebuild that runs in this process; another one goes on where it was',
      tag,
      access,
      params,
      answers: {
        200: {
          description: 'Answered when it has ended; false: there was none',
          schema: closed({ cancelled: Type.Boolean() }),
        },
      },
      handle: (request) => {
        const { name } = request.params;
        const what = { action: 'projection.rebuild-cancel', target: name };
        return audited(context, request, what, async () => {
          checkGlobal(request);
          return { body: { cancelled: await rebuilds.cancel(name) } };
        });
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
