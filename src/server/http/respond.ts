// The response to one request: finds the route, authenticates, validates the inputs and calls the route.

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { MillraceError } from '../../foundation/error.ts';
import { traceOf, silentObserver, type Observer, type Span } from '../../foundation/observer.ts';
import {
  checkRouteAccess,
  notAuthenticated,
  type Authenticate,
  type Principal,
} from '../../platform/modules/principal.ts';
import type {
  ApiRequest,
  ReaderMemory,
  Route,
  RouteResponse,
} from '../../platform/modules/route.ts';
import { checked, queryOf, readJson } from './read-inputs.ts';
import { createReaderBudget, type ReaderBudget } from './reader-budget.ts';
import { createRouteTable } from './route-table.ts';
import { sessionSecretOf } from './session-cookie.ts';

export interface RespondOptions {
  readonly routes: readonly Route[];
  readonly authenticate: Authenticate;
  /** Returns the caller of a session cookie. Default: cookies are ignored. */
  readonly authenticateSession?: AuthenticateSession | undefined;
  /** Answers GET requests for paths without a route. */
  readonly pages?: ServePage | undefined;
  /** Throws `RATE_LIMITED` if the caller exceeds its rate. */
  readonly admit?: ((caller: Caller) => void) | undefined;
  /** The memory of responses that clients have not read yet. */
  readonly readers?: ReaderBudget | undefined;
  readonly observer?: Observer | undefined;
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

/** The context of a request, completed while it is processed. */
export interface Seen {
  route?: Route;
  memory?: (ReaderMemory & Disposable) | undefined;
  span?: Span | undefined;
}

/** The part of a request that the server knows. */
interface RequestContext {
  readonly path: string;
  readonly requestId: string;
  /** Aborts when the response is no longer needed. */
  readonly over: AbortController;
  readonly seen: Seen;
  readonly disconnect: () => void;
}

type Respond = (request: IncomingMessage, context: RequestContext) => Promise<RouteResponse>;

// These errors are created once, because creating an error with its stack for each abort is slow.
const credentialsEnded = new MillraceError(
  'ABORTED',
  'the credentials have expired or were revoked',
);
const responseLate = new MillraceError('ABORTED', 'the response took too long');
const timerMsMax = 0x7fff_ffff;

export function createResponder(
  options: RespondOptions,
  {
    limits,
    isReserved,
    stopping,
  }: {
    readonly limits: { readonly answerMsMax: number; readonly bodyBytesMax: number };
    /** Whether the connection is one of those that are kept for health checks. */
    readonly isReserved: (socket: Socket) => boolean;
    readonly stopping: AbortSignal;
  },
): Respond {
  const { observer = silentObserver, readers = createReaderBudget() } = options;
  const table = createRouteTable(options.routes);
  return respondTo;

  async function respondTo(
    request: IncomingMessage,
    context: RequestContext,
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
        signal: AbortSignal.any([over.signal, stopping, ...credentialSignals(principal)]),
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
}

/** Returns signals that fire when the credentials are revoked or expire. */
export function credentialSignals(principal: Principal | undefined): readonly AbortSignal[] {
  const { ended, expiresAtMs } = principal ?? {};
  const signals = ended === undefined ? [] : [ended];
  if (expiresAtMs === undefined) return signals;
  const leftMs = Math.max(0, Math.min(expiresAtMs - Date.now(), timerMsMax));
  return [...signals, AbortSignal.timeout(leftMs)];
}
