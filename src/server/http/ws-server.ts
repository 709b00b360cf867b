// WebSockets on the HTTP server: accepts a connection if path, origin and credentials are valid. The library is loaded
// with the first connection.

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ServerOptions, WebSocketServer } from 'ws';
import { http } from '../../foundation/http.ts';
import { MillraceError } from '../../foundation/error.ts';
import { createIds } from '../../foundation/ids.ts';
import { loadDriver } from '../../foundation/load-driver.ts';
import { silentObserver, type Observer } from '../../foundation/observer.ts';
import type { ModuleSocket } from '../../platform/modules/module-web.ts';
import type { AuthenticateSession, Caller } from './respond.ts';
import { createReaderBudget, type ReaderBudget } from './reader-budget.ts';
import { notAuthenticated, type Authenticate } from '../../platform/modules/principal.ts';
import { problemOf, statusOf } from './problem.ts';
import {
  serveConnection,
  wsLimits,
  type WsConnection,
  type WsLimits,
  type WsOperations,
} from './ws-connection.ts';
import { isOwnOrigin, socketSecretOf } from './session-cookie.ts';
import { moduleMessages } from './ws-message.ts';

export interface WsServerOptions {
  /** Default: `/ws`. */
  readonly path?: string | undefined;
  readonly operations: WsOperations;
  /** Messages of modules. */
  readonly sockets?: readonly ModuleSocket[] | undefined;
  readonly authenticate: Authenticate;
  /** Returns the caller of a session cookie. Default: cookies are ignored. */
  readonly authenticateSession?: AuthenticateSession | undefined;
  readonly admit?: ((caller: Caller) => void) | undefined;
  /** Origins that browsers may connect from, in addition to the origin of the server. */
  readonly corsOrigins?: readonly string[] | undefined;
  readonly limits?: Partial<WsLimits> | undefined;
  /** The memory of messages that clients have not read yet. */
  readonly readers?: ReaderBudget | undefined;
  readonly observer?: Observer | undefined;
}

export interface WsServer extends AsyncDisposable {
  readonly onUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  readonly connections: number;
}

const wsProtocol = 'millrace.v1';

const ids = createIds();

export function createWsServer(options: WsServerOptions): WsServer {
  const { path = '/ws', operations, authenticate, admit, corsOrigins = [] } = options;
  const { observer = silentObserver, sockets = [], readers = createReaderBudget() } = options;
  const messages = moduleMessages(sockets);
  const limits = { ...wsLimits, ...options.limits };
  const connections = new Set<WsConnection>();
  let server: WebSocketServer | undefined;
  let isStopping = false;

  async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    if (isStopping) throw new MillraceError('SERVER_UNAVAILABLE', 'the server is stopping');
    const [requested, search = ''] = request.url?.split('?', 2) ?? [];
    const address = request.socket.remoteAddress ?? '';
    const reject = (): void => admit?.({ address, principal: undefined, isRejected: true });
    if (requested !== path) {
      reject();
      throw new MillraceError(
        'NOT_FOUND',
        `unknown WebSocket path '${requested}': connect to ${path}`,
      );
    }
    checkOrigin(request, corsOrigins);
    const secret = socketSecretOf(request.headers);
    const session = secret === undefined ? undefined : options.authenticateSession?.(secret);
    const given =
      request.headers.authorization ?? bearerOf(new URLSearchParams(search).get('token'));
    const principal = await (
      session === undefined ? authenticate(given) : Promise.resolve(session)
    ).catch((error: unknown) => {
      reject();
      throw error;
    });
    if (principal?.ended?.aborted === true)
      throw notAuthenticated('the credentials have expired or were revoked');
    admit?.({ address, principal });
    server ??= await openWebSocketServer({
      maxPayload: limits.messageBytesMax,
      handleProtocols: (offered) => (offered.has(wsProtocol) ? wsProtocol : false),
    });
    if (isStopping) throw new MillraceError('SERVER_UNAVAILABLE', 'the server is stopping');
    server.handleUpgrade(request, socket, head, (accepted) => {
      const connection = serveConnection(accepted, {
        address,
        wire: socket,
        principal,
        authenticate,
        admit,
        operations,
        sockets,
        messages,
        limits,
        readers,
        observer,
      });
      connections.add(connection);
      accepted.once('close', () => connections.delete(connection));
    });
  }

  return {
    onUpgrade(request, socket, head) {
      // Until the upgrade the socket has no other error listener.
      socket.on('error', (error) => observer.log?.debug({ err: error }, 'websocket error'));
      upgrade(request, socket, head).catch((error: unknown) =>
        rejectUpgrade(socket, error, observer),
      );
    },
    get connections() {
      return connections.size;
    },
    async [Symbol.asyncDispose]() {
      isStopping = true;
      await Promise.all([...connections].map((each) => each.stop()));
    },
  };
}

/** A server that upgrades requests of an HTTP server. */
export async function openWebSocketServer(
  options: Pick<ServerOptions, 'handleProtocols' | 'maxPayload'>,
): Promise<WebSocketServer> {
  const { WebSocketServer: Server } = await loadDriver('ws', () => import('ws'));
  return new Server({
    noServer: true,
    clientTracking: false,
    // Compression would allow decompression bombs, and costs memory for each connection.
    perMessageDeflate: false,
    ...options,
  });
}

function bearerOf(token: string | null): string | undefined {
  return token === null ? undefined : `Bearer ${token}`;
}

/** Browsers send the origin of a page; other clients do not, and have no cookies to steal. */
function checkOrigin({ headers }: IncomingMessage, allowed: readonly string[]): void {
  const { origin } = headers;
  if (origin === undefined || allowed.includes(origin) || isOwnOrigin(headers)) return;
  throw new MillraceError(
    'NOT_ALLOWED',
    `the origin '${origin}' may not connect: add it to server.corsOrigins`,
    {
      details: { field: 'origin' },
    },
  );
}

function rejectUpgrade(socket: Duplex, error: unknown, observer: Observer): void {
  const requestId = ids.next();
  const status = statusOf(error);
  if (status === 500) observer.log?.error({ requestId, err: error }, 'upgrade failed');
  const text = JSON.stringify(problemOf(error, requestId));
  socket.end(
    [
      `HTTP/1.1 ${status} ${http.STATUS_CODES[status] ?? ''}`,
      'connection: close',
      'content-type: application/problem+json',
      `content-length: ${Buffer.byteLength(text)}`,
      `x-request-id: ${requestId}`,
      ...(status === 401 ? ['www-authenticate: Bearer'] : []),
      '',
      text,
    ].join('\r\n'),
    () => socket.destroy(),
  );
}
