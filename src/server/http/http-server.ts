// The HTTP server: accepts requests within limits, authenticates, validates inputs, calls the route and writes the
// response.

import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { http } from '../../foundation/http.ts';
import { MillraceError } from '../../foundation/error.ts';
import { createIds } from '../../foundation/ids.ts';
import { traceOf, silentObserver, type Observer, type Span } from '../../foundation/observer.ts';
import {
  checkRouteAccess,
  notAuthenticated,
  type Authenticate,
  type Principal,
} from '../../platform/modules/principal.ts';
import { problemOf, statusOf } from './problem.ts';
import { checked, queryOf, readJson } from './read-inputs.ts';
import type {
  ApiRequest,
  ErrorShape,
  ReaderMemory,
  Route,
  RouteResponse,
} from '../../platform/modules/route.ts';
import { createRouteTable } from './route-table.ts';
import { limitConnections, type ConnectionLimits } from './connection-limits.ts';
import { acceptedHosts, acceptsHost, rejectUpgrade, unknownHost } from './reach.ts';
import { createReaderBudget, type ReaderBudget } from './reader-budget.ts';
import { sessionSecretOf } from './session-cookie.ts';
import { clientTooSlow, disconnectSlowClient, writeResponse } from './write-response.ts';

export interface HttpServerOptions {
  readonly routes: readonly Route[];
  readonly authenticate: Authenticate;
  /** Returns the caller of a session cookie. Default: cookies are ignored. */
  readonly authenticateSession?: AuthenticateSession | undefined;
  /** Answers GET requests for paths without a route. */
  readonly pages?: ServePage | undefined;
  /** Default: 127.0.0.1. */
  readonly host?: string | undefined;
  /**
   * The names by which clients reach a server on a loopback address, in addition to those of this machine; `*`: any.
   */
  readonly hosts?: readonly string[] | undefined;
  /** Default: 7480; 0: any free port. */
  readonly port?: number | undefined;
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  readonly limits?: Partial<HttpLimits> | undefined;
  /** Throws `RATE_LIMITED` if the caller exceeds its rate. */
  readonly admit?: ((caller: Caller) => void) | undefined;
  /** The memory of responses that clients have not read yet. */
  readonly readers?: ReaderBudget | undefined;
  /** Handles upgrades to WebSocket. */
  readonly onUpgrade?:
    | ((request: IncomingMessage, socket: Duplex, head: Buffer) => void)
    | undefined;
  /** Handles requests of another protocol on the same port. */
  readonly fallbackHandler?: FallbackHandler | undefined;
  /** Origins that browsers may call from. Default: none. */
  readonly corsOrigins?: readonly string[] | undefined;
  readonly observer?: Observer | undefined;
}

/**
 * Handles the requests for which `takes` returns true, if no route begins with the same first path segment. All other
 * requests go to the routes. WebSocket upgrades reach it only if `onUpgrade` is set.
 */
interface FallbackHandler {
  takes(request: IncomingMessage): boolean;
  /** The returned promise never rejects. */
  serve(request: IncomingMessage, response: ServerResponse): Promise<void>;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void>;
  /** Closes streaming responses, which would otherwise delay the stop of the server. */
  stop(): void;
}

/** Undefined: the session is unknown, or has ended. */
export type AuthenticateSession = (secret: string) => Principal | undefined;

/** Undefined: there is no such page. */
export type ServePage = (
  path: string,
  headers: IncomingHttpHeaders,
) => Promise<RouteResponse | undefined>;

export interface Caller {
  readonly address: string;
  readonly principal: Principal | undefined;
  /** The path or the credentials are wrong. */
  readonly isRejected?: boolean | undefined;
}

/** JWT subjects are unique per tenant only, so the key contains the tenant. */
export function callerKey({ address, principal }: Caller): string {
  if (principal === undefined) return `address ${address}`;
  return `${principal.kind} ${principal.tenant ?? '*'} ${principal.name}`;
}

export interface HttpLimits extends ConnectionLimits {
  readonly bodyBytesMax: number;
  readonly headerBytesMax: number;
  /** Time limit from the first byte of a request to the last byte of its body. */
  readonly receiveMsMax: number;
  /** Time limit until the response starts, except for streams. */
  readonly answerMsMax: number;
  /** A client that has read nothing of a response for this long is disconnected. */
  readonly unreadMsMax: number;
  /** How long a stop waits for running requests. */
  readonly drainMsMax: number;
}

export const httpLimits: HttpLimits = {
  bodyBytesMax: 1_048_576,
  headerBytesMax: 16_384,
  receiveMsMax: 30_000,
  answerMsMax: 60_000,
  connectionsMax: 10_000,
  unreadMsMax: 30_000,
  drainMsMax: 10_000,
};

export interface HttpServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** The number of running requests, including streams. */
  readonly inFlight: number;
  /**
   * Serves a request of another HTTP server, such as that of an Express or Nest application. The path begins where this
   * server is mounted, and nothing has read the body.
   */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** The same for an upgrade to WebSocket. */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
}

/** The context of a request, completed while it is processed. */
interface Seen {
  route?: Route;
  memory?: (ReaderMemory & Disposable) | undefined;
  span?: Span | undefined;
}

const ids = createIds();
// These errors are created once, because creating an error with its stack for each abort is slow.
const clientDisconnected = new MillraceError('ABORTED', 'the client disconnected');
const credentialsEnded = new MillraceError(
  'ABORTED',
  'the credentials have expired or were revoked',
);
const responseLate = new MillraceError('ABORTED', 'the response took too long');
const serverStopping = new MillraceError('ABORTED', 'the server is stopping');
const timerMsMax = 0x7fff_ffff;

/**
 * Listens until the server is disposed. Disposing rejects new requests, waits for running ones and cancels the rest.
 *
 * @example
 * import { route } from 'millrace/platform';
 * import { startHttpServer } from 'millrace/server/http';
 *
 * const ping = route({
 *   method: 'GET', path: '/ping', summary: 'Responds', tag: 'demo', access: 'anonymous',
 *   responses: { 200: { description: 'Running' } },
 *   handle: async () => ({ body: { ok: true } }),
 * });
 * await using server = await startHttpServer({
 *   routes: [ping], port: 0, authenticate: async () => undefined,
 * });
 * console.log(await (await fetch(`${server.url}/ping`)).json());
 */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { host = '127.0.0.1', port = 7480, tls, observer = silentObserver } = options;
  const limits = { ...httpLimits, ...options.limits };
  const { readers = createReaderBudget() } = options;
  const table = createRouteTable(options.routes);
  /** Stopping the server closes streams immediately, and other requests when the drain time is over. */
  const stopping = new AbortController();
  const running = new Set<AbortController>();
  let inFlight = 0;
  let idle: (() => void) | undefined;

  const settings = {
    maxHeaderSize: limits.headerBytesMax,
    keepAliveTimeout: 65_000,
    // Node checks for slow clients every 30 s by default, regardless of their limit.
    connectionsCheckingInterval: Math.min(limits.receiveMsMax, 5_000),
    // Other upgrades, such as curl's offer of HTTP/2, are ignored.
    shouldUpgradeCallback: (request: IncomingMessage) =>
      options.onUpgrade !== undefined && request.headers.upgrade?.toLowerCase() === 'websocket',
  };
  const server: Server =
    tls === undefined ? http.createServer(settings) : createTlsServer({ ...settings, ...tls });
  server.requestTimeout = limits.receiveMsMax;
  server.headersTimeout = limits.receiveMsMax;
  const isReserved = limitConnections(server, limits);
  const { fallbackHandler, onUpgrade } = options;
  const ownSegments = new Set(options.routes.map(({ path }) => firstSegment(path)));
  const hosts = acceptedHosts(options);
  const isAddressed = ({ headers }: IncomingMessage): boolean => acceptsHost(hosts, headers.host);
  const fallbackFor = (request: IncomingMessage): FallbackHandler | undefined =>
    isAddressed(request) &&
    !ownSegments.has(firstSegment(pathOf(request.url))) &&
    fallbackHandler?.takes(request) === true
      ? fallbackHandler
      : undefined;
  const handle: HttpServer['handle'] = (request, response) => {
    const fallback = isReserved(request.socket) ? undefined : fallbackFor(request);
    void (fallback?.serve(request, response) ?? serve(request, response));
  };
  const upgrade: HttpServer['upgrade'] = (request, socket, head) => {
    const fallback = fallbackFor(request);
    if (onUpgrade === undefined || isReserved(request.socket)) socket.destroy();
    else if (!isAddressed(request)) rejectUpgrade(socket);
    else if (fallback === undefined) onUpgrade(request, socket, head);
    else void fallback.upgrade(request, socket, head);
  };
  server.on('request', handle);
  server.on('upgrade', upgrade);

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    inFlight += 1;
    const startMs = performance.now();
    const requestId = ids.next();
    const over = new AbortController();
    running.add(over);
    // Do not abort after a complete response: it would be useless work.
    response.once('close', () => response.writableFinished || over.abort(clientDisconnected));
    const path = pathOf(request.url);
    const seen: Seen = {};
    setCommonHeaders(request, response, requestId);
    const disconnect = (): void => {
      observer.log?.warn({ requestId, route: seen.route?.path }, 'slow client disconnected');
      over.abort(clientTooSlow);
      disconnectSlowClient(response);
    };
    response.once('close', () => seen.memory?.[Symbol.dispose]());
    // Node counts a connection as active while any byte of the response is sent.
    response.setTimeout(limits.unreadMsMax, () => response.writableLength > 0 && disconnect());
    try {
      if (!isAddressed(request)) throw unknownHost(request.headers.host);
      if (request.method === 'OPTIONS' && response.hasHeader('access-control-allow-origin')) {
        response.writeHead(204).end();
      } else {
        const reply = await respondTo(request, { path, requestId, over, seen, disconnect });
        await writeResponse(response, reply, {
          isHead: request.method === 'HEAD',
          memory: seen.memory,
          signal:
            seen.route?.isLong === true
              ? AbortSignal.any([over.signal, stopping.signal])
              : over.signal,
        });
      }
    } catch (error) {
      if (statusOf(error) >= 500) seen.span?.fail(error);
      sendProblem(request, response, { error, requestId, shape: seen.route?.errors });
    } finally {
      running.delete(over);
      inFlight -= 1;
      if (inFlight === 0) idle?.();
      seen.span?.set({ status: response.statusCode });
      seen.span?.end();
      const attributes = {
        method: request.method ?? '',
        route: seen.route?.path ?? 'unknown',
        status: response.statusCode,
        requestId,
      };
      observer.record?.(
        'http_request_duration_seconds',
        (performance.now() - startMs) / 1_000,
        attributes,
      );
    }
  }

  async function respondTo(
    request: IncomingMessage,
    context: {
      readonly path: string;
      readonly requestId: string;
      readonly over: AbortController;
      readonly seen: Seen;
      readonly disconnect: () => void;
    },
  ): Promise<RouteResponse> {
    const address = request.socket.remoteAddress ?? '';
    const reject = (): void => options.admit?.({ address, principal: undefined, isRejected: true });
    if (isReserved(request.socket) && !context.path.startsWith('/health/')) {
      throw new MillraceError(
        'RATE_LIMITED',
        'too many connections: only health checks are served',
        {
          details: { retryAfterSeconds: 1 },
        },
      );
    }
    const found = table.find(request.method ?? '', context.path);
    if (found === undefined) {
      const isRead = request.method === 'GET' || request.method === 'HEAD';
      const page = isRead ? await options.pages?.(context.path, request.headers) : undefined;
      if (page !== undefined) {
        options.admit?.({ address, principal: undefined });
        return page;
      }
      reject();
      throw new MillraceError('NOT_FOUND', `unknown path '${context.path}'`);
    }
    if ('allow' in found) {
      reject();
      throw new MillraceError(
        'METHOD_NOT_ALLOWED',
        `${request.method ?? ''} is not allowed for ${context.path}: use ${found.allow.join(', ')}`,
        {
          details: { allow: found.allow },
        },
      );
    }
    const { route, params } = found;
    context.seen.route = route;
    // No span for probes and scrapes, which are most requests, nor for streams.
    if (route.access !== 'anonymous' && route.isLong !== true) {
      const attributes = { method: route.method, route: route.path, requestId: context.requestId };
      context.seen.span = observer.span?.('http request', attributes, traceOf(request.headers));
    }
    const principal = await authenticate(request).catch((error: unknown) => {
      reject();
      throw error;
    });
    const caller = { address, principal };
    options.admit?.(caller);
    checkRouteAccess(route, principal);
    const input = await inputsOf(request, route, params);
    const { over, requestId, seen, disconnect } = context;
    const memory = readers.open({ key: callerKey(caller), signal: over.signal, disconnect });
    seen.memory = memory;
    // Commands of the request are children of its span.
    const headers =
      seen.span === undefined ? input.headers : { ...input.headers, ...seen.span.context };
    const apiRequest = { ...input, headers, principal, requestId, address, memory };
    // A stream also closes when the credentials end or the server stops.
    if (route.isLong === true) {
      return route.handle({
        ...apiRequest,
        signal: AbortSignal.any([over.signal, stopping.signal, ...credentialSignals(principal)]),
      });
    }
    // One signal for all reasons, because combining signals costs more than the rest.
    let isLate = false;
    const end = (): void => over.abort(credentialsEnded);
    principal?.ended?.addEventListener('abort', end);
    const timer = setTimeout(() => {
      isLate = true;
      over.abort(responseLate);
    }, limits.answerMsMax);
    try {
      return await route.handle({ ...apiRequest, signal: over.signal });
    } catch (error) {
      if (!isLate) throw error;
      throw new MillraceError('REQUEST_TIMEOUT', `no response within ${limits.answerMsMax} ms`, {
        cause: error,
      });
    } finally {
      clearTimeout(timer);
      principal?.ended?.removeEventListener('abort', end);
    }
  }

  async function authenticate(request: IncomingMessage): Promise<Principal | undefined> {
    const { headers } = request;
    const secret = sessionSecretOf(headers);
    const principal =
      secret === undefined
        ? await options.authenticate(headers.authorization)
        : options.authenticateSession?.(secret);
    if (principal?.ended?.aborted === true)
      throw notAuthenticated('the credentials have expired or were revoked');
    return principal;
  }

  async function inputsOf(
    request: IncomingMessage,
    route: Route,
    params: Readonly<Record<string, string>>,
  ): Promise<Pick<ApiRequest, 'body' | 'headers' | 'params' | 'query'>> {
    const at = (request.url ?? '').indexOf('?');
    const search = new URLSearchParams(at === -1 ? '' : (request.url ?? '').slice(at + 1));
    const { query, body } = route;
    return {
      params: route.params === undefined ? params : checked('path', route.params, params),
      query: query === undefined ? {} : checked('query', query, queryOf(search, query)),
      body:
        body === undefined
          ? undefined
          : checked('body', body, await readJson(request, limits.bodyBytesMax)),
      headers: request.headers as Readonly<Record<string, string | undefined>>,
    };
  }

  function sendProblem(
    request: IncomingMessage,
    response: ServerResponse,
    {
      error,
      requestId,
      shape,
    }: {
      readonly error: unknown;
      readonly requestId: string;
      readonly shape: ErrorShape | undefined;
    },
  ): void {
    const status = statusOf(error);
    if (status === 500) observer.log?.error({ requestId, err: error }, 'request failed');
    // The response has started: closing the connection shows the client that it is incomplete.
    if (response.headersSent || response.destroyed) return void response.destroy();
    const problem = problemOf(error, requestId);
    const retryAfter = problem.details?.['retryAfterSeconds'];
    if (status === 401) response.setHeader('www-authenticate', 'Bearer');
    if (Array.isArray(problem.details?.['allow'])) {
      response.setHeader('allow', problem.details['allow'].join(', '));
    }
    if (typeof retryAfter === 'number') response.setHeader('retry-after', String(retryAfter));
    // Unread data would be parsed as the next request.
    if (!request.complete) response.setHeader('connection', 'close');
    const shaped = shape?.toResponse(problem);
    for (const [name, value] of Object.entries(shaped?.headers ?? {})) {
      response.setHeader(name, value);
    }
    const text = JSON.stringify(shaped === undefined ? problem : shaped.body);
    response
      .writeHead(shaped?.status ?? status, {
        'content-type': shaped === undefined ? 'application/problem+json' : 'application/json',
        'content-length': Buffer.byteLength(text),
      })
      .end(request.method === 'HEAD' ? undefined : text);
  }

  function setCommonHeaders(
    request: IncomingMessage,
    response: ServerResponse,
    requestId: string,
  ): void {
    response.setHeader('x-request-id', requestId);
    response.setHeader('x-content-type-options', 'nosniff');
    response.setHeader('x-frame-options', 'DENY');
    response.setHeader('referrer-policy', 'no-referrer');
    response.setHeader('cache-control', 'no-store');
    const { origin } = request.headers;
    if (origin === undefined || options.corsOrigins?.includes(origin) !== true) return;
    response.setHeader('access-control-allow-origin', origin);
    response.setHeader('vary', 'origin');
    response.setHeader('access-control-allow-methods', 'GET, POST, PUT, PATCH, DELETE');
    response.setHeader(
      'access-control-allow-headers',
      'authorization, content-type, idempotency-key, last-event-id, x-correlation-id, x-tenant-id',
    );
    response.setHeader(
      'access-control-expose-headers',
      'retry-after, x-correlation-id, x-request-id, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset',
    );
  }

  await listen(server, host, port);
  const { port: bound } = server.address() as AddressInfo;
  const shown = host.includes(':') ? `[${host}]` : host;
  return {
    port: bound,
    url: `${tls === undefined ? 'http' : 'https'}://${shown}:${bound}`,
    get inFlight() {
      return inFlight;
    },
    handle,
    upgrade,
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      stopping.abort();
      fallbackHandler?.stop();
      server.closeIdleConnections();
      const timer = setTimeout(() => {
        for (const over of running) over.abort(serverStopping);
        server.closeAllConnections();
      }, limits.drainMsMax);
      if (inFlight > 0) await new Promise<void>((resolve) => (idle = resolve));
      server.closeIdleConnections();
      await closed;
      clearTimeout(timer);
    },
  };
}

function firstSegment(path: string): string {
  return path.split('/', 2)[1] ?? '';
}

function pathOf(url: string | undefined): string {
  const at = url?.indexOf('?') ?? -1;
  return at === -1 ? (url ?? '/') : (url ?? '/').slice(0, at);
}

/** Returns signals that fire when the credentials are revoked or expire. */
export function credentialSignals(principal: Principal | undefined): readonly AbortSignal[] {
  const { ended, expiresAtMs } = principal ?? {};
  const signals = ended === undefined ? [] : [ended];
  if (expiresAtMs === undefined) return signals;
  const leftMs = Math.max(0, Math.min(expiresAtMs - Date.now(), timerMsMax));
  return [...signals, AbortSignal.timeout(leftMs)];
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(
        new MillraceError(
          'SERVER_UNAVAILABLE',
          `cannot listen on ${host}:${port}: ${error.message}`,
          {
            cause: error,
            details: { host, port },
          },
        ),
      ),
    );
    server.listen({ host, port, backlog: 1_024 }, resolve);
  });
}
