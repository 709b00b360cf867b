// Liveness and readiness for orchestrators and load balancers, and metrics for Prometheus.

import { statSync } from 'node:fs';
import { withinTime } from '../../foundation/async/within-time.ts';
import { Type } from '../../contracts/type.ts';
import { metricsContentTypes, type MetricsFormat } from '../../telemetry/create-metrics.ts';
import { engineTable } from '../../platform/engines/engine-table.ts';
import type { ResolvedRole } from '../../platform/engines/resolve-roles.ts';
import type { FailingShard } from '../../subscriptions/run/failing-shards.ts';
import type { RunningOutbox } from '../../platform/run-standalone-outbox.ts';
import { route, type Route, type RouteResponse } from '../../platform/modules/route.ts';
import { textResponse, type ApiPlatform } from './api-context.ts';

const responseMsMax = 2_000;
const readiness = Type.Object({
  status: Type.Union([Type.Literal('ok'), Type.Literal('failing')]),
  checks: Type.Record(
    Type.String(),
    Type.Object({ status: Type.String(), detail: Type.Optional(Type.String()) }),
  ),
});

interface Check {
  readonly status: 'ok' | 'failing';
  readonly detail?: string;
}

export function healthRoutes(platform: ApiPlatform): readonly Route[] {
  const checkFiles = watchFiles(platform.engines.roles);
  return probeRoutes(async () => {
    const { store, outbox, roles } = platform.engines;
    const { state } = platform;
    return {
      platform: state === 'started' ? ok : failing(`the platform is ${state}`),
      store: await checkResponse(store.head()),
      ...checkShards(platform.failingShards()),
      ...(await checkReadModels(platform.engines)),
      ...(outbox === undefined ? {} : { outbox: await checkResponse(outbox.paused()) }),
      ...(await checkSignals(platform.engines)),
      ...localRoles(roles),
      ...checkFiles(),
    };
  });
}

/** Health and metrics of an outbox without a platform. Anonymous, because such a process has no tokens. */
export function outboxRunRoutes(
  { ledger, projecting, runners }: RunningOutbox,
  metrics: (format: MetricsFormat) => Promise<string>,
): readonly Route[] {
  return [
    ...probeRoutes(async () => ({
      ...(projecting && { store: await checkResponse(projecting.store.head()) }),
      outbox: await checkResponse(ledger.paused()),
      ...checkShards(runners.flatMap(({ status }) => status.failing)),
    })),
    route({
      ...metricsRouteBase,
      access: 'anonymous',
      handle: ({ headers }) => metricsResponse(metrics, headers),
    }),
  ];
}

function probeRoutes(check: () => Promise<Readonly<Record<string, Check>>>): readonly Route[] {
  const base = { method: 'GET', tag: 'health', access: 'anonymous' } as const;
  return [
    route({
      ...base,
      path: '/health/live',
      summary: 'Liveness: the process is running',
      responses: { 200: { description: 'Running' } },
      handle: async () => ({ body: { status: 'ok' } }),
    }),
    route({
      ...base,
      path: '/health/ready',
      summary: 'Readiness: the platform is started and its engines respond',
      responses: {
        200: { description: 'Ready', schema: readiness },
        503: { description: 'Not ready', schema: readiness },
      },
      async handle() {
        const checks = await check();
        const isReady = Object.values(checks).every(({ status }) => status === 'ok');
        return {
          status: isReady ? 200 : 503,
          body: { status: isReady ? 'ok' : 'failing', checks },
        };
      },
    }),
  ];
}

/** A subscription that ends at each start processes nothing, however healthy its engines are. The log has the reasons. */
function checkShards(all: readonly FailingShard[]): Readonly<Record<string, Check>> {
  const lost = namesOf(all.filter(({ isCheckpointLost }) => isCheckpointLost));
  const stuck = namesOf(all.filter(({ isCheckpointLost }) => !isCheckpointLost));
  return {
    ...(stuck === 0
      ? {}
      : { subscriptions: failing(`${stuck} end again and again without progress`) }),
    ...(lost === 0 ? {} : { checkpoints: failing(`${lost} lost: reset the subscriptions`) }),
  };
}

function namesOf(shards: readonly FailingShard[]): number {
  return new Set(shards.map(({ subscription }) => subscription)).size;
}

/** Queries of a read model whose documents were lost are rejected until it is rebuilt. */
async function checkReadModels({
  readModelVersions,
}: ApiPlatform['engines']): Promise<Readonly<Record<string, Check>>> {
  const noResponse: Readonly<Record<string, Check>> = { 'read models': failing('no response') };
  const checked = readModelVersions.list().then(
    (versions): typeof noResponse => {
      const lost = versions.filter(({ status }) => status === 'rebuilding');
      const names = lost.map(({ family, version }) => `${family}.v${version}`).join(', ');
      return lost.length === 0
        ? {}
        : { 'read models': failing(`rebuilding after a loss: ${names}`) };
    },
    () => noResponse,
  );
  return withinTime(checked, { ms: responseMsMax, late: () => noResponse });
}

/** Reads something that does not exist: opens the roles if nothing has used them yet. Files are checked below. */
async function checkSignals({
  roles,
  bus,
  tasks,
}: Pick<ApiPlatform['engines'], 'bus' | 'roles' | 'tasks'>): Promise<
  Readonly<Record<string, Check>>
> {
  const probes = {
    bus: async () => (await bus()).stream('gbe.events.system.health'),
    tasks: async () => (await tasks()).heads([{ type: 'health', id: '0' }]),
  };
  const remote = roles.flatMap(({ role, target }) =>
    (role === 'bus' || role === 'tasks') &&
    target !== undefined &&
    !engineTable[target.engine].isEmbedded
      ? [role]
      : [],
  );
  const checks = remote.map(async (role) => [role, await checkResponse(probes[role]())] as const);
  return Object.fromEntries(await Promise.all(checks));
}

/** SQLite still writes to a file that was removed or replaced, and everything written is lost with the process. */
function watchFiles(roles: readonly ResolvedRole[]): () => Readonly<Record<string, Check>> {
  const seen = new Map<string, number>();
  const files = roles.flatMap(({ role, target }) =>
    target?.engine === 'sqlite' && target.connection.startsWith('sqlite:')
      ? [{ role, path: target.connection.slice('sqlite:'.length) }]
      : [],
  );
  const check = (): Readonly<Record<string, Check>> =>
    Object.fromEntries(
      files.flatMap(({ role, path }) => {
        const inode = statSync(path, { throwIfNoEntry: false })?.ino;
        const opened = seen.get(path) ?? inode;
        if (opened !== undefined) seen.set(path, opened);
        if (opened === inode) return [];
        const detail = 'its file was removed or replaced while it was open';
        return [[`file of role ${role}`, failing(detail)]];
      }),
    );
  check();
  return check;
}

const metricsRouteBase = {
  method: 'GET',
  path: '/metrics',
  summary: 'Metrics in the Prometheus text format, or as OpenMetrics with exemplars',
  tag: 'health',
  responses: { 200: { description: 'The metrics', contentType: metricsContentTypes.prometheus } },
} as const;

/** Needs the scope `read`, because metrics show the load and the failures of all tenants. */
export function metricsRoute(metrics: (format: MetricsFormat) => Promise<string>): Route {
  return route({
    ...metricsRouteBase,
    access: 'read',
    isGlobal: true,
    handle: async ({ headers }) => metricsResponse(metrics, headers),
  });
}

/** Prometheus prefers OpenMetrics wherever it accepts it. */
async function metricsResponse(
  metrics: (format: MetricsFormat) => Promise<string>,
  headers: Readonly<Record<string, string | undefined>>,
): Promise<RouteResponse> {
  const isOpen = (headers['accept'] ?? '').includes('application/openmetrics-text');
  const format = isOpen ? 'openmetrics' : 'prometheus';
  return textResponse(metricsContentTypes[format], await metrics(format));
}

/** A role in a local file is no failure, but other processes do not see its data. */
function localRoles(roles: readonly ResolvedRole[]): Readonly<Record<string, Check>> {
  return Object.fromEntries(
    roles.flatMap(({ role, warning }) =>
      warning === undefined ? [] : [[`role ${role}`, { status: 'ok', detail: warning } as const]],
    ),
  );
}

const ok: Check = { status: 'ok' };
const failing = (detail: string): Check => ({ status: 'failing', detail });

/** The reason of a failure stays private, because the route is anonymous. */
async function checkResponse(response: Promise<unknown>): Promise<Check> {
  const succeeded = response.then(
    () => true,
    () => false,
  );
  const isOk = await withinTime(succeeded, { ms: responseMsMax, late: () => false });
  return isOk ? ok : failing('no response');
}
