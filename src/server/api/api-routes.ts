// The list of all routes: those of the API, those of modules, and the reference that describes them.

import { MillraceError } from '../../foundation/error.ts';
import type { Observer } from '../../foundation/observer.ts';
import type { ModuleSocket, WebContext } from '../../platform/modules/module-web.ts';
import { route, type Route } from '../../platform/modules/route.ts';
import { maskingRoute } from '../http/masked-fields.ts';
import { openApiDocument, type OpenApiInfo } from '../http/openapi.ts';
import { referencePage } from '../http/reference-page.ts';
import { routesOverlap } from '../http/route-table.ts';
import { adminAliases, type AdminContext } from './admin/admin-context.ts';
import { auditRoutes } from './admin/audit-routes.ts';
import { systemRoutes } from './admin/system-routes.ts';
import { deadLetterRoutes } from './admin/dead-letter-routes.ts';
import { outboxRoutes } from './admin/outbox-routes.ts';
import { parkedStreamRoutes } from './admin/parked-stream-routes.ts';
import { projectionRoutes } from './admin/projection-routes.ts';
import { sagaRoutes } from './admin/saga-routes.ts';
import { subscriptionRoutes } from './admin/subscription-routes.ts';
import { tokenRoutes } from './admin/token-routes.ts';
import { textResponse, type ApiPlatform } from './api-context.ts';
import { commandRoutes } from './command-routes.ts';
import { documentRoutes } from './document-routes.ts';
import { eventSearchRoutes } from './event-search.ts';
import { healthRoutes } from './health-routes.ts';
import { streamRoutes } from './stream-routes.ts';
import { taskAdminRoutes } from './tasks/task-admin-routes.ts';
import { taskRoutes } from './tasks/task-routes.ts';
import { workerRoutes } from './tasks/worker-routes.ts';
import { traceRoutes } from './trace-routes.ts';
import { wsRoute } from './ws-operations.ts';

export function apiRoutes(
  context: AdminContext,
  {
    routes: custom = [],
    modules = { routes: [], sockets: [] },
    info,
  }: {
    readonly routes?: readonly Route[] | undefined;
    readonly modules?: Pick<ModuleWebs, 'routes' | 'sockets'> | undefined;
    readonly info: OpenApiInfo;
  },
): readonly Route[] {
  const { platform } = context;
  const routes = [
    ...commandRoutes(platform),
    ...documentRoutes(platform),
    ...streamRoutes(platform),
    ...eventSearchRoutes(platform),
    ...deadLetterRoutes(context),
    ...parkedStreamRoutes(context),
    ...outboxRoutes(context),
    ...subscriptionRoutes(context),
    ...projectionRoutes(context),
    ...sagaRoutes(context),
    ...tokenRoutes(context),
    ...auditRoutes(context),
    ...systemRoutes(context),
    ...traceRoutes(platform),
    ...taskRoutes(context),
    ...taskAdminRoutes(context),
    ...workerRoutes(platform),
    wsRoute(modules.sockets),
    ...healthRoutes(platform),
    ...custom,
  ].map(maskingRoute);
  const aliases = adminAliases(routes);
  const all = [...routes, ...modules.routes];
  const reference = referenceRoutes(all, info);
  checkModuleRoutes([...routes, ...aliases, ...reference], modules.routes);
  return [...all, ...aliases, ...reference];
}

/** The routes and sockets that modules add to one server. */
export interface ModuleWebs extends AsyncDisposable {
  readonly routes: readonly Route[];
  readonly sockets: readonly ModuleSocket[];
}

export function openModuleWebs(platform: ApiPlatform, observer: Observer): ModuleWebs {
  const { engines, tokens, clock, modules } = platform;
  const context: WebContext = {
    store: engines.store,
    tenants: tokens.tenants,
    clock,
    observer,
    handle: (request) => platform.handle(request),
    load: platform.load,
    documents: (family) => platform.documents(family),
    waitFor: (...wanted) => platform.waitFor(...wanted),
  };
  const webs = modules.web.map((open) => open(context));
  return {
    routes: webs.flatMap(({ routes = [] }) => routes),
    sockets: webs.flatMap(({ socket }) => (socket === undefined ? [] : [socket])),
    async [Symbol.asyncDispose]() {
      await Promise.all(webs.map(async (each) => each[Symbol.asyncDispose]?.()));
    },
  };
}

/** A literal path of a module would take requests away from a path parameter of the API. */
function checkModuleRoutes(ours: readonly Route[], theirs: readonly Route[]): void {
  for (const added of theirs) {
    const hidden = ours.find((each) => routesOverlap(each, added));
    if (hidden === undefined) continue;
    throw new MillraceError(
      'CONFIG_INVALID',
      `${added.method} ${added.path} of a module would hide ${hidden.path}`,
      { details: { field: 'modules', path: added.path } },
    );
  }
}

/** The description of the API: OpenAPI for programs, a page for people. */
function referenceRoutes(routes: readonly Route[], info: OpenApiInfo): readonly Route[] {
  const base = { method: 'GET', tag: 'reference', access: 'anonymous' } as const;
  let json: unknown;
  let html: string | undefined;
  const own: readonly Route[] = [
    route({
      ...base,
      path: '/openapi.json',
      summary: 'The API as an OpenAPI 3.1 document',
      responses: { 200: { description: 'The document' } },
      handle: async () => ({ body: (json ??= openApiDocument(all, info)) }),
    }),
    route({
      ...base,
      path: '/docs',
      summary: 'The API as a web page',
      responses: { 200: { description: 'The page', contentType: 'text/html' } },
      handle: async () => ({
        ...textResponse('text/html; charset=utf-8', (html ??= referencePage(all, info))),
        headers: { 'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'" },
      }),
    }),
  ];
  const all = [...routes, ...own];
  return own;
}
