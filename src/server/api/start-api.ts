// The product over HTTP: every route of the API in one server.

import { silentObserver, type Observer } from '../../foundation/observer.ts';
import { authenticateByTokens } from '../http/authenticate-by-tokens.ts';
import { startHttpServer, type HttpServer, type HttpServerOptions } from '../http/http-server.ts';
import { createJwtVerifier, type JwtOptions } from '../http/jwt-verifier.ts';
import { createRequestLimiter, type RequestLimits } from '../http/request-limiter.ts';
import type { Route } from '../http/route.ts';
import type { ApiPlatform } from './api-context.ts';
import { commandRoutes } from './command-routes.ts';
import { documentRoutes } from './document-routes.ts';
import { healthRoutes } from './health-routes.ts';
import { metricsRoute } from './metrics-route.ts';
import { referenceRoutes } from './reference-routes.ts';
import { streamRoutes } from './stream-routes.ts';
import { traceRoutes } from './trace-routes.ts';

export interface ApiOptions extends Pick<
  HttpServerOptions,
  'corsOrigins' | 'host' | 'limits' | 'port' | 'tls'
> {
  readonly jwt?: JwtOptions;
  readonly rateLimits?: RequestLimits;
  /** Routes of your own, beside ours. */
  readonly routes?: readonly Route[];
  readonly version?: string;
  /** The text of `GET /metrics`; without it, there is none. */
  readonly metrics?: () => Promise<string>;
  readonly observer?: Observer;
}

/**
 * Serves a platform's API: streams, commands and documents of its modules, health, and the reference.
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
): Promise<HttpServer> {
  const { jwt, rateLimits, metrics, version = '0', observer = silentObserver, ...server } = options;
  const verifier = jwt === undefined ? undefined : await createJwtVerifier(jwt);
  const routes = [
    ...commandRoutes(platform),
    ...documentRoutes(platform),
    ...streamRoutes(platform),
    ...traceRoutes(platform),
    ...healthRoutes(platform),
    ...(metrics === undefined ? [] : [metricsRoute(metrics)]),
    ...(options.routes ?? []),
  ];
  const info = {
    title: 'Millrace',
    version,
    description: 'Append an event once, and everything else follows.',
  };
  return startHttpServer({
    ...server,
    routes: [...routes, ...referenceRoutes(routes, info)],
    authenticate: authenticateByTokens(platform.tokens, verifier),
    admit: createRequestLimiter(rateLimits),
    observer,
  });
}
