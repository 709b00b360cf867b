// Versions of read models over HTTP: status, rebuild of a new version, switch of queries to it, and retirement.

import { Type } from '../../../contracts/type.ts';
import {
  namedVersion,
  projectionStatus,
  retireProjection,
  switchProjection,
  type ProjectionStatus,
} from '../../../projections/switch-projection.ts';
import { returns, routesOf } from '../api-context.ts';
import { route, type Route } from '../../../platform/modules/route.ts';
import { audited, closed, globalList, pageOf, text, type AdminContext } from './admin-context.ts';

const { get, post } = routesOf('admin: projections', { get: 'read', post: 'admin' });

const params = closed({ name: text(400, 'For example sub:banking:accounts:v2.') });
const rebuild = Type.Object(
  {
    state: Type.Enum(['running', 'done', 'failed', 'cancelled']),
    startedAt: Type.String(),
    endedAt: Type.Optional(Type.String()),
    progress: Type.Optional(
      Type.Object({
        events: Type.Integer({ description: 'Events processed by this run.' }),
        position: Type.String(),
        head: Type.String(),
        done: Type.Number({ description: 'From 0 to 1.' }),
        eventsPerSecond: Type.Number(),
        secondsLeft: Type.Optional(Type.Number()),
      }),
    ),
    error: Type.Optional(Type.String({ description: 'The error code.' })),
  },
  {
    title: 'ProjectionRebuild',
    description:
      'The last rebuild of the process that responds. It ends with the process; the next rebuild resumes from its checkpoint.',
  },
);
const status = Type.Object(
  {
    family: Type.String(),
    version: Type.Integer(),
    projection: Type.String(),
    status: Type.Enum(['building', 'ready', 'rebuilding', 'retiring', 'retired']),
    active: Type.Boolean({ description: 'Queries use this version.' }),
    target: Type.Optional(Type.String()),
    changedAtMs: Type.Integer(),
    behind: Type.Optional(Type.Integer()),
    unit: Type.Optional(Type.Enum(['events', 'bytes'], { description: 'What `behind` counts.' })),
    seconds: Type.Optional(Type.Number()),
    paused: Type.Boolean(),
    deadLetters: Type.Integer(),
    rebuild: Type.Optional(rebuild),
  },
  { title: 'ProjectionVersion' },
);

export function projectionRoutes(context: AdminContext): readonly Route[] {
  const { engines, rebuilds } = context.platform;
  const { readModelVersions: versions } = engines;
  const withRebuild = (each: ProjectionStatus): ProjectionStatus & { rebuild?: object } => {
    const known = rebuilds.get(each.projection);
    return known === undefined ? each : { ...each, rebuild: known };
  };

  return [
    globalList({
      ...get,
      path: '/admin/projections',
      summary: 'All versions of all read models',
      responses: { 200: returns('All versions', pageOf(status)) },
      list: async ({ memory }) =>
        (await memory.load(() => projectionStatus(engines))).map(withRebuild),
    }),
    route({
      ...get,
      path: '/admin/projections/{name}',
      summary: 'A version and the progress of its rebuild',
      isGlobal: true,
      params,
      responses: {
        200: returns('The version', status),
        404: { description: 'The projection was never started on this store' },
      },
      async handle(request) {
        const { name } = request.params;
        await namedVersion(versions, name);
        const all = await request.memory.load(() => projectionStatus(engines));
        return { body: all.filter(({ projection }) => projection === name).map(withRebuild)[0] };
      },
    }),
    route({
      ...post,
      path: '/admin/projections/{name}/rebuild',
      summary: 'Rebuilds a version that queries do not use yet, at full speed',
      description:
        'The response confirms the start. The rebuild runs in the process that responds, which must have loaded the module of the projection; the audit log records its outcome. If other processes run the projection, pause its subscription first.',
      isGlobal: true,
      params,
      responses: {
        202: returns('Rebuild started', rebuild),
        404: { description: 'No module of this process defines the projection' },
        409: { description: 'A rebuild is running, or queries use this version' },
      },
      async handle(request) {
        const { name } = request.params;
        const started = Promise.withResolvers<object | undefined>();
        const what = { action: 'projection.rebuild', target: name };
        const ended = audited(context, request, what, async () => {
          const { ended: built } = await rebuilds.start(name);
          started.resolve(rebuilds.get(name));
          await built;
        });
        // Errors before the start are in the response; later ones are in the status and the audit log.
        return { status: 202, body: await Promise.race([started.promise, ended]) };
      },
    }),
    route({
      ...post,
      path: '/admin/projections/{name}/rebuild/cancel',
      summary: 'Cancels the rebuild in this process; the next one resumes from its checkpoint',
      isGlobal: true,
      params,
      responses: {
        200: returns(
          'After the rebuild has ended. False: no rebuild was running',
          closed({ cancelled: Type.Boolean() }),
        ),
      },
      handle: (request) => {
        const { name } = request.params;
        const what = { action: 'projection.rebuild-cancel', target: name };
        return audited(context, request, what, async () => {
          return { body: { cancelled: await rebuilds.cancel(name) } };
        });
      },
    }),
    route({
      ...post,
      path: '/admin/projections/{name}/switch',
      summary: 'Switches all queries to this version',
      isGlobal: true,
      params,
      responses: {
        200: returns(
          'The version that queries use',
          closed({ family: Type.String(), active: Type.Integer() }),
        ),
        409: { description: 'The version has never caught up' },
      },
      handle: (request) => {
        const { name } = request.params;
        const what = { action: 'projection.switch', target: name };
        return audited(context, request, what, async () => {
          const version = await namedVersion(versions, name);
          await switchProjection(engines, version);
          const { bc, aggregate, version: active } = version.readModel;
          return { body: { family: `${bc}.${aggregate}`, active } };
        });
      },
    }),
    route({
      ...post,
      path: '/admin/projections/{name}/retire',
      summary: 'Stops a version that queries do not use and deletes its documents',
      description:
        'The response is sent after the last deletion. An aborted request can be repeated to continue.',
      isGlobal: true,
      params,
      isLong: true,
      responses: {
        200: returns('The number of deleted documents', closed({ removed: Type.Integer() })),
        409: { description: 'Queries use this version: switch to another version first' },
      },
      handle: (request) => {
        const { name } = request.params;
        const what = { action: 'projection.retire', target: name };
        return audited(context, request, what, async () => {
          const version = await namedVersion(versions, name);
          const { signal } = request;
          return { body: { removed: await retireProjection(engines, version, { signal }) } };
        });
      },
    }),
  ];
}
