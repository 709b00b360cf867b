// What modules offer over HTTP and WebSocket, opened for one server.

import { MillraceError } from '../../foundation/error.ts';
import type { Observer } from '../../foundation/observer.ts';
import type { ModuleSocket, WebContext } from '../../platform/modules/module-web.ts';
import type { Route } from '../../platform/modules/route.ts';
import { routesOverlap } from '../http/route-table.ts';
import type { ApiPlatform } from './api-context.ts';

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

/** One that is written out would win over a parameter of ours, and hide some of what we serve. */
export function checkModuleRoutes(ours: readonly Route[], theirs: readonly Route[]): void {
  for (const route of theirs) {
    const hidden = ours.find((each) => routesOverlap(each, route));
    if (hidden === undefined) continue;
    throw new MillraceError(
      'CONFIG_INVALID',
      `${route.method} ${route.path} of a module would hide ${hidden.path}`,
      { details: { field: 'modules', path: route.path } },
    );
  }
}
