// Generates the tables of docs/scopes.md: which scope each route, command, gRPC method, WebSocket message and topic route
// needs.

import { collab } from '../modules/collab/index.ts';
import { notifications } from '../modules/customers/index.ts';
import { payments, pretendProvider } from '../modules/payments/index.ts';
import { slackRequests } from '../modules/slack-requests/index.ts';
import { createPlatform, type Platform, type PlatformModule } from '../src/platform/index.ts';
import { scopeTable } from '../src/platform/tokens/scopes.ts';
import type { Access } from '../src/platform/modules/principal.ts';
import type { Route } from '../src/platform/modules/route.ts';
import { startApi, type ApiServer } from '../src/server/api/start-api.ts';
import { moduleMessageAccess, wsMessageAccess } from '../src/server/http/ws-message.ts';
import { createCallKit } from '../src/server/kurrent/calls.ts';
import type { KurrentContext } from '../src/server/kurrent/context.ts';
import type { Groups } from '../src/server/kurrent/persistent/groups.ts';
import { createServices, type Services } from '../src/server/kurrent/services.ts';
import { fixedRoutes, ntfyRouteOf, topicRouteAccess } from '../src/server/topics/ntfy-route.ts';

/** All modules of this repository. */
export const allModules = (): readonly PlatformModule[] => [
  payments({ provider: pretendProvider() }),
  collab(),
  notifications(),
  slackRequests(),
];

type Row = readonly [call: string, access: string, isGlobal?: boolean | undefined];

const title = '## Reference';

/** Returns the page with new tables. */
export async function withScopeReference(page: string): Promise<string> {
  await using platform = await createPlatform({
    engines: { store: 'memory:' },
    modules: allModules(),
  });
  await using api = await startApi(platform, { port: 0, metrics: async () => '' });
  const [head = ''] = page.split(`${title}\n`);
  const scopes = Object.entries(scopeTable).map(([scope, { allows, includes }]) => {
    const own = includes.map((each) => `\`${each}\``).join(', ');
    return `| \`${scope}\` | ${allows}${own === '' ? '' : `; includes ${own}`} |\n`;
  });
  return [
    `${head}${title}\n\n| scope | allows |\n|---|---|\n${scopes.join('')}`,
    table(
      'HTTP routes',
      'Every `/admin/…` path exists under `/api/v1` as well. “All tenants”: refused to credentials of one tenant.',
      routeRows(api),
    ),
    table(
      'Commands',
      'Sent as `POST /api/v1/commands/<command>` or over the WebSocket. `internal`: no client can send it.',
      commandRows(platform),
    ),
    table('gRPC methods', 'Methods of the KurrentDB protocol.', grpcRows()),
    table('WebSocket messages', 'A `command` needs the scope of the command.', messageRows(api)),
    table(
      'Topic routes',
      'For tokens of all tenants. The access rules of topics say what users of topics and callers without credentials may read and publish.',
      topicRows(),
    ),
  ].join('\n');
}

/** The methods of the gRPC server. */
export function grpcServices(): Services {
  // Only the definitions are read, no handler runs.
  const context = {} as unknown as KurrentContext;
  const groups = {} as unknown as Groups;
  return createServices(context, groups, createCallKit(context), () => ({ host: '', port: 0 }));
}

/** Without the aliases of admin routes. */
export function ownRoutes({ routes }: Pick<ApiServer, 'routes'>): readonly Route[] {
  return routes.filter(({ path }) => !path.startsWith('/api/v1/admin/'));
}

function routeRows(api: ApiServer): readonly Row[] {
  return ownRoutes(api)
    .filter(({ path }) => !path.startsWith('/api/v1/commands/'))
    .map(({ method, path, access, isGlobal }) => [`${method} ${path}`, access, isGlobal]);
}

function commandRows({ modules }: Platform): readonly Row[] {
  return [...modules.aggregates.values()].flatMap((aggregate) =>
    aggregate.commands.map(({ type }): Row => {
      const open = modules.commands.get(type);
      return [type, open?.aggregates.includes(aggregate) === true ? open.scope : 'internal'];
    }),
  );
}

function grpcRows(): readonly Row[] {
  return Object.entries(grpcServices()).flatMap(([service, methods]) =>
    Object.entries(methods).map(([name, { access }]): Row => [`${service}/${name}`, access]),
  );
}

function messageRows(api: ApiServer): readonly Row[] {
  return socketMessages(api).map(({ type, access }) => [type, access]);
}

const topicPaths = [
  ...['PUT', 'POST'].flatMap((method) => [`${method} /{topic}`, `${method} /{topic}/{id}`]),
  ...['publish', 'send', 'trigger'].map((word) => `GET /{topic}/${word}`),
  'DELETE /{topic}/{id}',
  ...['read', 'clear'].map((word) => `PUT /{topic}/{id}/${word}`),
  ...['read', 'clear', 'delete'].map((word) => `GET /{topic}/{id}/${word}`),
  ...['json', 'sse', 'raw', 'ws', 'auth'].map((form) => `GET /{topic}/${form}`),
  'GET /{topic}',
  'GET /file/{id}',
];

/** The routes of the server of topics. */
export function topicRows(): readonly Row[] {
  return [...Object.keys(fixedRoutes), ...topicPaths].flatMap((call): readonly Row[] => {
    const [method = '', path = ''] = call.replaceAll(/[{}]/g, '').split(' ');
    const kind = ntfyRouteOf(method, path)?.kind;
    if (kind === undefined) throw new Error(`${call} is no route of topics`);
    return kind === 'absent' ? [] : [[call, topicRouteAccess[kind]]];
  });
}

/** The messages that the WebSocket accepts. */
export function socketMessages({ routes }: Pick<ApiServer, 'routes'>): readonly SocketMessage[] {
  const document = JSON.stringify(
    routes.find(({ path }) => path === '/ws')?.responses[101]?.schema,
  );
  const { toServer } = (JSON.parse(document) as { properties: Record<string, SchemaUnion> })
    .properties;
  const own: Readonly<Record<string, Access | 'command'>> = wsMessageAccess;
  return (toServer?.anyOf ?? []).map((schema) => {
    const { title: type } = schema;
    return { type, schema, access: own[type] ?? moduleMessageAccess };
  });
}

export interface SocketMessage {
  readonly type: string;
  readonly schema: MessageSchema;
  readonly access: Access | 'command';
}

interface MessageSchema {
  readonly title: string;
  readonly properties: Readonly<Record<string, { readonly type?: string }>>;
  readonly required: readonly string[];
}

interface SchemaUnion {
  readonly anyOf: readonly MessageSchema[];
}

function table(name: string, text: string, rows: readonly Row[]): string {
  const sorted = rows.toSorted(([a], [b]) => (a < b ? -1 : 1));
  const groups = ['anonymous', 'internal', 'command', ...Object.keys(scopeTable)].flatMap(
    (access) => sorted.filter((row) => row[1] === access),
  );
  const lines = groups.map(
    ([call, access, isGlobal]) =>
      `| \`${call}\` | ${access}${isGlobal === true ? ', all tenants' : ''} |\n`,
  );
  return `### ${name}\n\n${text}\n\n| call | scope |\n|---|---|\n${lines.join('')}`;
}
