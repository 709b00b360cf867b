// The product over HTTP: every route of the API in one server.

import { silentObserver, type Observer } from '../../foundation/observer.ts';
import { createAuditLog } from '../../platform/audit-log.ts';
import { startHttpServer, type HttpServer, type HttpServerOptions } from '../http/http-server.ts';
import type { Tokens } from '../../platform/tokens/open-tokens.ts';
import { notAuthenticated, type Authenticate } from '../../platform/modules/principal.ts';
import { createJwtVerifier, type JwtOptions, type JwtVerifier } from '../http/jwt-verifier.ts';
import { createRequestLimiter, type RequestLimits } from '../http/request-limiter.ts';
import type { Route } from '../../platform/modules/route.ts';
import { createWsServer } from '../http/ws-server.ts';
import type { WsLimits } from '../http/ws-limits.ts';
import type { ApiPlatform } from './api-context.ts';
import { apiRoutes } from './api-routes.ts';
import { metricsRoute } from './metrics-route.ts';
import { openModuleWebs } from './module-webs.ts';
import { wsOperations } from './ws-operations.ts';

export interface ApiOptions extends Pick<
  HttpServerOptions,
  'beside' | 'corsOrigins' | 'host' | 'limits' | 'port' | 'tls'
> {
  readonly jwt?: JwtOptions;
  readonly rateLimits?: RequestLimits;
  readonly wsLimits?: Partial<WsLimits>;
  /** Routes of your own, beside ours. */
  readonly routes?: readonly Route[];
  readonly version?: string;
  /** The text of `GET /metrics`; without it, there is none. */
  readonly metrics?: () => Promise<string>;
  readonly observer?: Observer;
}

export interface ApiServer extends HttpServer {
  /** All that are served, those of the modules among them. */
  readonly routes: readonly Route[];
  /** WebSockets that are open. */
  readonly connections: number;
}

/**
 * Serves a platform's API: streams, commands and documents of its modules, administration with its audit,
 * health, and the reference.
 *
 * @example
 * import { createPlatform } from 'millrace/platform';
 * import { startApi } from 'millrace/server/api';
 *
 * await using platform = await createPlatform();
 * await platform.start();
 * await using api = await startApi(platform, { port: 7480 });
 * console.log(`${api.url}/docs`);
 */
export async function startApi(
  platform: ApiPlatform,
  options: ApiOptions = {},
): Promise<ApiServer> {
  const { jwt, rateLimits, metrics, version = '0', observer = silentObserver, ...server } = options;
  await using opened = new AsyncDisposableStack();
  const modules = opened.use(openModuleWebs(platform, observer));
  const verifier = jwt === undefined ? undefined : await createJwtVerifier(jwt, observer);
  const info = {
    title: 'Millrace',
    version,
    description: 'Append an event once, and everything else follows.',
  };
  const audit = createAuditLog(platform.engines.store, { observer });
  const own = [
    ...(metrics === undefined ? [] : [metricsRoute(metrics)]),
    ...(options.routes ?? []),
  ];
  const routes = apiRoutes({ platform, audit }, { routes: own, modules, info });
  const guard = {
    authenticate: authenticateByTokens(platform.tokens, verifier),
    admit: createRequestLimiter(rateLimits),
    observer,
  };
  const { corsOrigins } = options;
  const ws = createWsServer({
    ...guard,
    operations: wsOperations(platform, routes),
    sockets: modules.sockets,
    ...(corsOrigins === undefined ? {} : { corsOrigins }),
    ...(options.wsLimits === undefined ? {} : { limits: options.wsLimits }),
  });
  const http = await startHttpServer({ ...server, ...guard, routes, onUpgrade: ws.onUpgrade });
  const all = opened.move();
  return {
    url: http.url,
    port: http.port,
    routes,
    get inFlight() {
      return http.inFlight;
    },
    get connections() {
      return ws.connections;
    },
    async [Symbol.asyncDispose]() {
      // Together: each waits for connections that are the other's.
      await Promise.all([ws[Symbol.asyncDispose](), http[Symbol.asyncDispose]()]);
      await all.disposeAsync();
    },
  };
}

/** Bearer tokens: API keys of Millrace and, with a verifier, JWTs of an identity provider. */
function authenticateByTokens(tokens: Pick<Tokens, 'verify'>, jwt?: JwtVerifier): Authenticate {
  return async (authorization) => {
    if (authorization === undefined) return undefined;
    const secret = /^bearer +(\S+)$/i.exec(authorization)?.[1];
    if (secret === undefined) throw notAuthenticated("send 'Authorization: Bearer <token>'");
    if (jwt !== undefined && secret.split('.').length === 3) return jwt.verify(secret);
    const verified = tokens.verify(secret);
    if (verified === undefined) throw notAuthenticated('unknown or revoked token');
    const { token, ended } = verified;
    const { name, scopes, tenant } = token;
    return { kind: 'token', name, scopes, ended, ...(tenant === undefined ? {} : { tenant }) };
  };
}
