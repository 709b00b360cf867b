// Customers and broadcasts on the web: routes and messages, over what the platform gives.

import type { ModuleWeb, WebContext } from '../platform/modules/module-web.ts';
import { broadcastRoutes } from './broadcast-routes.ts';
import { createNotifier } from './customer-notifier.ts';
import { customerRoutes } from './customer-routes.ts';
import { customerSocket } from './customer-socket.ts';

export function customerWeb(platform: WebContext): ModuleWeb {
  const notifier = createNotifier(platform);
  return {
    routes: [...customerRoutes(notifier), ...broadcastRoutes(notifier)],
    socket: customerSocket(notifier, platform),
  };
}
