// Starts the API server: all routes over HTTP, and WebSockets on the same port.

import { bucketOf, checkRateLimit } from '../../delivery/rate-limit.ts';
import { systemClock } from '../../foundation/clock.ts';
import { hasCode, MillraceError } from '../../foundation/error.ts';
import { silentObserver, type Observer } from '../../foundation/observer.ts';
import { reserveTokens } from '../../foundation/token-bucket.ts';
import { createAuditLog } from '../../platform/audit-log.ts';
import type { ServerSettings } from '../../platform/config/millrace-config.ts';
import { createReaderBudget } from '../http/reader-budget.ts';
import { startHttpServer, type HttpServer, type HttpServerOptions } from '../http/http-server.ts';
import { callerKey, type Caller } from '../http/respond.ts';
import type { Tokens } from '../../platform/tokens/open-tokens.ts';
import {
  notAuthenticated,
  type Authenticate,
  type Principal,
} from '../../platform/modules/principal.ts';
import type { JwtSettings } from '../../platform/config/millrace-config.ts';
import { createJwtVerifier, type JwtVerifier } from '../http/jwt-verifier.ts';
import type { Route } from '../../platform/modules/route.ts';
import { bulkRoutes } from '../console/bulk-routes.ts';
import { consolePages } from '../console/console-pages.ts';
import { destinationRoutes } from '../console/destination-routes.ts';
import { failureRoutes } from '../console/failure-routes.ts';
import { createOverview } from '../console/overview.ts';
import { overviewRoutes, overviewSocket } from '../console/overview-routes.ts';
import { resolveRoutes } from '../console/resolve-routes.ts';
import { sessionAuthenticator, sessionRoutes } from '../console/session-routes.ts';
import { createWsServer } from '../http/ws-server.ts';
import type { WsLimits } from '../http/ws-connection.ts';
import type { ApiPlatform } from './api-context.ts';
import { apiRoutes, openModuleWebs } from './api-routes.ts';
import { metricsRoute } from './health-routes.ts';
import type { MetricsFormat } from '../../telemetry/create-metrics.ts';
import { wsOperations } from './ws-operations.ts';

export interface ApiOptions extends Pick<
  HttpServerOptions,
  'corsOrigins' | 'fallbackHandler' | 'host' | 'hosts' | 'limits' | 'port' | 'tls'
> {
  readonly jwt?: JwtSettings | undefined;
  readonly rateLimits?: RequestLimits | undefined;
  /** Masks payloads for callers without the scope `admin`. */
  readonly maskPayloads?: boolean | undefined;
  readonly wsLimits?: Partial<WsLimits> | undefined;
  /** Additional routes. */
  readonly routes?: readonly Route[] | undefined;
  readonly version?: string | undefined;
  /** Returns the text of `GET /metrics`. Default: no such route. */
  readonly metrics?: ((format: MetricsFormat) => Promise<string>) | undefined;
  readonly observer?: Observer | undefined;
}

export interface ApiServer extends HttpServer {
  /** All served routes, including those of modules. */
  readonly routes: readonly Route[];
  /** The number of open WebSockets. */
  readonly connections: number;
}

/**
 * Serves the API of a platform: streams, commands and documents of its modules, audited administration, health
 * and the reference.
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
  const {
    jwt,
    rateLimits,
    maskPayloads = false,
    metrics,
    version = '0',
    observer = silentObserver,
    ...server
  } = options;
  await using opened = new AsyncDisposableStack();
  const modules = opened.use(openModuleWebs(platform, observer));
  const verifier = jwt === undefined ? undefined : await createJwtVerifier(jwt, observer);
  const info = {
    title: 'Millrace',
    version,
    description: 'Event store, projections, outbox, tasks and notifications.',
  };
  const audit = createAuditLog(platform.engines.store, { observer });
  const seen = (principal: Principal): Principal =>
    maskPayloads && !principal.scopes.includes('admin')
      ? { ...principal, isMasked: true }
      : principal;
  const known = bearerAuthenticator(platform.tokens, { jwt: verifier, observer });
  const authenticate: Authenticate = async (authorization) => {
    const principal = await known(authorization);
    return principal && seen(principal);
  };
  const overview = opened.use(createOverview(platform, { observer }));
  const custom = [
    ...sessionRoutes({ platform, audit }, { authenticate, routes: () => routes }),
    ...overviewRoutes(overview),
    ...resolveRoutes(platform),
    ...failureRoutes({ platform, audit }),
    ...bulkRoutes({ platform, audit }),
    ...destinationRoutes({ platform, audit }),
    ...(metrics === undefined ? [] : [metricsRoute(metrics)]),
    ...(options.routes ?? []),
  ];
  const sockets = [...modules.sockets, overviewSocket(overview)];
  const web = { routes: modules.routes, sockets };
  const routes: readonly Route[] = apiRoutes(
    { platform, audit },
    { routes: custom, modules: web, info },
  );
  const knownSession = sessionAuthenticator(platform.tokens, { hasJwt: jwt !== undefined });
  const guard = {
    authenticate,
    authenticateSession: (secret: string) => {
      const principal = knownSession(secret);
      return principal && seen(principal);
    },
    admit: createRequestLimiter(rateLimits),
    readers: createReaderBudget(),
    observer,
  };
  const ws = createWsServer({
    ...guard,
    operations: wsOperations(platform, routes),
    sockets,
    corsOrigins: options.corsOrigins,
    limits: options.wsLimits,
  });
  const pages = consolePages({ observer });
  const http = await startHttpServer({
    ...server,
    ...guard,
    routes,
    pages,
    onUpgrade: ws.onUpgrade,
  });
  const all = opened.move();
  return {
    url: http.url,
    port: http.port,
    routes,
    handle: http.handle,
    upgrade: http.upgrade,
    get inFlight() {
      return http.inFlight;
    },
    get connections() {
      return ws.connections;
    },
    async [Symbol.asyncDispose]() {
      // Closed together, because the HTTP server waits for the sockets of the WebSocket server.
      await Promise.all([ws[Symbol.asyncDispose](), http[Symbol.asyncDispose]()]);
      await all.disposeAsync();
    },
  };
}

/** Accepts bearer tokens: API keys of Millrace and, with a verifier, JWTs of an identity provider. */
function bearerAuthenticator(
  tokens: Pick<Tokens, 'addTenant' | 'tenants' | 'verify'>,
  { jwt, observer }: { readonly jwt: JwtVerifier | undefined; readonly observer: Observer },
): Authenticate {
  /** Tenants of an identity provider enter the directory with their first request. */
  const verifyJwt = async (verifier: JwtVerifier, secret: string): Promise<Principal> => {
    const principal = await verifier.verify(secret);
    const { tenant } = principal;
    if (tenant === undefined || tokens.tenants.has(tenant)) return principal;
    try {
      await tokens.addTenant(tenant);
      return principal;
    } catch (error) {
      if (!hasCode(error, 'TENANT_OVERLAP')) throw error;
      observer.log?.warn({ err: error, tenant }, 'tenant of a JWT rejected');
      // The caller must not learn the name of the other tenant.
      throw new MillraceError('NOT_ALLOWED', `tenant '${tenant}' overlaps another tenant`, {
        details: { tenant },
      });
    }
  };
  return async (authorization) => {
    if (authorization === undefined) return undefined;
    const secret = /^bearer +(\S+)$/i.exec(authorization)?.[1];
    if (secret === undefined) throw notAuthenticated("send 'Authorization: Bearer <token>'");
    if (jwt !== undefined && secret.split('.').length === 3) return verifyJwt(jwt, secret);
    const verified = tokens.verify(secret);
    if (verified === undefined) throw notAuthenticated('unknown or revoked token');
    const { token, ended } = verified;
    const { name, scopes, tenant } = token;
    return {
      kind: 'token',
      name,
      scopes,
      ended,
      ...(tenant === undefined ? {} : { tenant }),
      ...(jwt === undefined ? {} : { person: `token:${name}` }),
    };
  };
}

type RequestLimits = NonNullable<ServerSettings['rateLimits']>;

const requestLimits: RequestLimits = {
  known: { perSecond: 1_000, burst: 2_000 },
  unknown: { perSecond: 50, burst: 200 },
};

const callersMax = 100_000;

/** One token bucket per API token or address; a full bucket can be dropped. */
function createRequestLimiter(limits: RequestLimits = requestLimits): (caller: Caller) => void {
  checkRateLimit(limits.known, 'known callers');
  checkRateLimit(limits.unknown, 'unknown callers');
  const buckets = { known: bucketOf(limits.known), unknown: bucketOf(limits.unknown) };
  const fullAt = new Map<string, number>();

  function makeRoom(nowMs: number): void {
    for (const [key, fullAtMs] of fullAt) if (fullAtMs <= nowMs) fullAt.delete(key);
    // All buckets are in use: drop the oldest one.
    const [oldest] = fullAt.keys();
    if (fullAt.size >= callersMax && oldest !== undefined) fullAt.delete(oldest);
  }

  return (caller) => {
    const { principal, isRejected = false } = caller;
    // Counted separately, so that guessing tokens does not block health checks from the same address.
    const key = isRejected ? `rejected ${callerKey(caller)}` : callerKey(caller);
    const nowMs = systemClock.now();
    if (!fullAt.has(key) && fullAt.size >= callersMax) makeRoom(nowMs);
    const bucket = principal === undefined ? buckets.unknown : buckets.known;
    const state = { fullAtMs: fullAt.get(key) ?? 0, nowMs, wanted: 1 };
    const { waitMs, fullAtMs } = reserveTokens({ ...bucket, ...state });
    if (waitMs === 0) {
      fullAt.set(key, fullAtMs);
      return;
    }
    throw new MillraceError('RATE_LIMITED', 'too many requests', {
      details: { retryAfterSeconds: Math.ceil(waitMs / 1_000) },
    });
  };
}
