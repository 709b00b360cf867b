// Every route of the API, in one list.

import type { Route } from '../../platform/modules/route.ts';
import type { OpenApiInfo } from '../http/openapi.ts';
import { adminAliases, type AdminContext } from './admin/admin-context.ts';
import { auditRoutes } from './admin/audit-routes.ts';
import { commandRoutes } from './command-routes.ts';
import { deadLetterRoutes } from './admin/dead-letter-routes.ts';
import { documentRoutes } from './document-routes.ts';
import { healthRoutes } from './health-routes.ts';
import { checkModuleRoutes, type ModuleWebs } from './module-webs.ts';
import { outboxRoutes } from './admin/outbox-routes.ts';
import { projectionRoutes } from './admin/projection-routes.ts';
import { referenceRoutes } from './reference-routes.ts';
import { sagaRoutes } from './admin/saga-routes.ts';
import { streamRoutes } from './stream-routes.ts';
import { subscriptionRoutes } from './admin/subscription-routes.ts';
import { taskAdminRoutes } from './tasks/task-admin-routes.ts';
import { taskMonitorRoutes } from './task-monitor-routes.ts';
import { taskRoutes } from './tasks/task-routes.ts';
import { tokenRoutes } from './admin/token-routes.ts';
import { traceRoutes } from './trace-routes.ts';
import { workerRoutes } from './tasks/worker-routes.ts';
import { wsRoute } from './ws-operations.ts';

export function apiRoutes(
  context: AdminContext,
  {
    routes: own = [],
    modules = { routes: [], sockets: [] },
    info,
  }: {
    readonly routes?: readonly Route[];
    readonly modules?: Pick<ModuleWebs, 'routes' | 'sockets'>;
    readonly info: OpenApiInfo;
  },
): readonly Route[] {
  const { platform } = context;
  const routes = [
    ...commandRoutes(platform),
    ...documentRoutes(platform),
    ...streamRoutes(platform),
    ...deadLetterRoutes(context),
    ...outboxRoutes(context),
    ...subscriptionRoutes(context),
    ...projectionRoutes(context),
    ...sagaRoutes(context),
    ...tokenRoutes(context),
    ...auditRoutes(context),
    ...traceRoutes(platform),
    ...taskRoutes(platform),
    ...taskAdminRoutes(context),
    ...taskMonitorRoutes(context),
    ...workerRoutes(platform),
    wsRoute(modules.sockets),
    ...healthRoutes(platform),
    ...own,
  ];
  const aliases = adminAliases(routes);
  const all = [...routes, ...modules.routes];
  const reference = referenceRoutes(all, info);
  checkModuleRoutes([...routes, ...aliases, ...reference], modules.routes);
  return [...all, ...aliases, ...reference];
}
