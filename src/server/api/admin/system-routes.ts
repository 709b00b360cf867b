// The deployment over HTTP: engines and roles, modules, this process, and the checks of `millrace doctor`.

import { hostname } from 'node:os';
import { Type } from '../../../contracts/type.ts';
import { examineEngines, type EngineReport } from '../../../platform/engines/examine-engines.ts';
import { urlFields } from '../../../platform/engines/engine-table.ts';
import type { EngineUrls, ResolvedRole } from '../../../platform/engines/resolve-roles.ts';
import { roleReport } from '../../../platform/engines/role-report.ts';
import { route, type Route } from '../../../platform/modules/route.ts';
import { returns, routesOf, type ApiPlatform } from '../api-context.ts';
import { closed, globalList, pageOf, type AdminContext } from './admin-context.ts';

const optional = (description: string) => Type.Optional(Type.String({ description }));
const names = Type.Array(Type.String());
const system = closed({
  roles: Type.Array(
    Type.Object(
      {
        role: Type.String(),
        title: Type.String(),
        engine: optional('Absent: the role is off, because no configured engine has it.'),
        url: optional('Without secrets.'),
        survives: optional('What an acknowledged write survives.'),
        sharedBy: optional('Which processes see the same data.'),
        warning: optional('Why this role needs a configured engine.'),
      },
      { title: 'Role' },
    ),
  ),
  modules: Type.Array(
    closed({ name: Type.String(), aggregates: names, projections: names, sagas: names }),
  ),
  process: closed({
    host: Type.String(),
    pid: Type.Integer(),
    node: Type.String({ description: 'The version of Node.js.' }),
    startedAt: Type.String(),
    memoryBytes: Type.Integer({ description: 'Resident memory.' }),
    roles: names,
  }),
});

const running = Type.Object(
  {
    id: Type.String({ description: 'The owner of its leases and claims.' }),
    host: optional('Absent: a worker that did not send it.'),
    pid: Type.Optional(Type.Integer()),
    node: optional('The version of Node.js.'),
    version: Type.Optional(Type.String()),
    roles: names,
    startedAt: Type.Optional(Type.String()),
    heardAt: optional('Its last heartbeat; absent: a worker that only claims jobs.'),
    taskTypes: Type.Optional(
      Type.Array(Type.String(), { description: 'The types of the jobs that it runs.' }),
    ),
    isThis: Type.Boolean({ description: 'The process that responds.' }),
  },
  { title: 'Process' },
);

const finding = Type.Object({
  check: Type.String(),
  level: Type.Enum(['ok', 'warning', 'broken', 'unknown']),
  detail: Type.String(),
  remedy: Type.Optional(Type.String()),
});
const examined = closed({
  at: Type.String({ description: 'When the engines were checked.' }),
  engines: Type.Array(
    Type.Object({
      roles: names,
      url: Type.String({ description: 'Without secrets.' }),
      findings: Type.Array(finding),
    }),
  ),
});

/** The checks open connections, so their result is kept for a while. */
const examinedForMs = 30_000;

export function systemRoutes({ platform }: AdminContext): readonly Route[] {
  const { clock, engines, modules } = platform;
  const { get } = routesOf('admin: system', 'read');
  let last:
    | { readonly atMs: number; readonly reports: Promise<readonly EngineReport[]> }
    | undefined;

  return [
    route({
      ...get,
      path: '/admin/system',
      summary: 'The engine of each role and what it promises, the modules and this process',
      isGlobal: true,
      responses: { 200: returns('The deployment', system) },
      handle: async () => ({
        body: {
          roles: roleReport(engines.roles),
          modules: modules.summaries,
          process: thisProcess(platform),
        },
      }),
    }),
    globalList({
      ...get,
      path: '/admin/processes',
      summary: 'The running processes of the deployment: servers and workers',
      description:
        'A process that was killed disappears when its lease expires, after 10 s by default.',
      responses: {
        200: returns(
          'The process that responds, then the others, the oldest first',
          pageOf(running),
        ),
      },
      list: () => platform.processes(),
    }),
    route({
      ...get,
      path: '/admin/doctor',
      summary: 'The checks of `millrace doctor` on every engine of this process',
      description: 'A result is reused for 30 seconds.',
      isGlobal: true,
      isLong: true,
      responses: { 200: returns('The findings', examined) },
      async handle() {
        const nowMs = clock.now();
        if (last === undefined || nowMs - last.atMs >= examinedForMs) {
          last = { atMs: nowMs, reports: examineEngines(urlsOf(engines.roles)) };
        }
        const { atMs, reports } = last;
        return { body: { at: new Date(atMs).toISOString(), engines: await reports } };
      },
    }),
  ];
}

/** The settings that lead to these roles. */
function urlsOf(roles: readonly ResolvedRole[]): EngineUrls {
  return Object.fromEntries(
    urlFields.flatMap((field) => {
      const target = roles.find(({ role }) => role === field)?.target;
      if (target === undefined) return [];
      const { connection, schema } = target;
      if (schema === undefined) return [[field, connection]];
      return [[field, `${connection}${connection.includes('?') ? '&' : '?'}schema=${schema}`]];
    }),
  );
}

/** The process that responds. */
function thisProcess({ clock, roles }: Pick<ApiPlatform, 'clock' | 'roles'>) {
  return {
    host: hostname(),
    pid: process.pid,
    node: process.versions.node,
    startedAt: new Date(clock.now() - process.uptime() * 1_000).toISOString(),
    memoryBytes: process.memoryUsage.rss(),
    roles,
  };
}
