// The HTTP server: accepts requests within limits and writes the responses of their routes (`respond.ts`).

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { http } from '../../foundation/http.ts';
import { MillraceError } from '../../foundation/error.ts';
import { createIds } from '../../foundation/ids.ts';
import { silentObserver } from '../../foundation/observer.ts';
import { limitConnections, type ConnectionLimits } from './connection-limits.ts';
import { sendProblem, statusOf } from './problem.ts';
import { acceptedHosts, acceptsHost, rejectUpgrade, unknownHost } from './reach.ts';
import { createResponder, type RespondOptions, type Seen } from './respond.ts';
import {
  clientTooSlow,
  disconnectSlowClient,
  setCommonHeaders,
  writeResponse,
} from './write-response.ts';

export interface HttpServerOptions extends RespondOptions {
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
  /** Handles upgrades to WebSocket. */
  readonly onUpgrade?:
    | ((request: IncomingMessage, socket: Duplex, head: Buffer) => void)
    | undefined;
  /** Handles requests of another protocol on the same port. */
  readonly fallbackHandler?: FallbackHandler | undefined;
  /** Origins that browsers may call from. Default: none. */
  readonly corsOrigins?: readonly string[] | undefined;
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

const ids = createIds();
// These errors are created once, because creating an error with its stack for each abort is slow.
const clientDisconnected = new MillraceError('ABORTED', 'the client disconnected');
const serverStopping = new MillraceError('ABORTED', 'the server is stopping');
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
  const respondTo = createResponder(options, { limits, isReserved, stopping: stopping.signal });
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
    setCommonHeaders(request, response, { requestId, corsOrigins: options.corsOrigins });
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
      if (statusOf(error) === 500) observer.log?.error({ requestId, err: error }, 'request failed');
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
