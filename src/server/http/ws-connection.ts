// One WebSocket: its caller, its subscriptions and its requests, within limits, at the pace of the client.

import type { Duplex } from 'node:stream';
import type { RawData, WebSocket } from 'ws';
import { MillraceError } from '../../foundation/error.ts';
import { createIds } from '../../foundation/ids.ts';
import type { Observer } from '../../foundation/observer.ts';
import { jsonText } from '../../foundation/parse-json.ts';
import { withinTime } from '../../foundation/async/within-time.ts';
import type {
  ModuleSocket,
  SocketClient,
  SocketSession,
} from '../../platform/modules/module-web.ts';
import { callerKey, credentialSignals, type Caller } from './respond.ts';
import type { ReaderBudget } from './reader-budget.ts';
import {
  checkAccess,
  notAuthenticated,
  type Authenticate,
  type Principal,
} from '../../platform/modules/principal.ts';
import { allowsScope } from '../../platform/tokens/scopes.ts';
import { problemOf, statusOf } from './problem.ts';
import type { ApiRequest } from '../../platform/modules/route.ts';
import type { SentEvent } from '../../platform/modules/server-sent-events.ts';
import {
  moduleMessageAccess,
  readMessage,
  wsMessageAccess,
  type AnyWsMessage,
  type ModuleMessage,
  type WsMessage,
} from './ws-message.ts';

export interface WsLimits {
  readonly messageBytesMax: number;
  /** Time limit of the first message, which authenticates. */
  readonly authMsMax: number;
  /** The interval of pings; without a pong before the next ping the connection is closed. */
  readonly heartbeatMs: number;
  readonly subscriptionsMax: number;
  /** The maximum number of running commands, queries and module messages. */
  readonly requestsMax: number;
  /** The connection is closed if the client has more unread data. */
  readonly unreadBytesMax: number;
  /** Time limit from the close frame to closing the socket. */
  readonly closeMsMax: number;
  /** How long a stop waits for running requests. */
  readonly drainMsMax: number;
}

export const wsLimits: WsLimits = {
  messageBytesMax: 1_048_576,
  authMsMax: 5_000,
  heartbeatMs: 30_000,
  subscriptionsMax: 32,
  requestsMax: 64,
  unreadBytesMax: 4_194_304,
  closeMsMax: 1_000,
  drainMsMax: 10_000,
};

export const wsCloseCodes = {
  /** The server is stopping. */
  goingAway: 1001,
  /** The client sent a binary message. */
  unsupported: 1003,
  /** A module failed to accept the connection. */
  failed: 1011,
  /** The credentials are missing, invalid or expired. */
  notAuthenticated: 4401,
  /** The client does not read or does not respond. */
  tooSlow: 4408,
} as const;

/** The context of a message: caller, abort signal and request id. */
export type WsContext = Pick<ApiRequest, 'address' | 'memory' | 'requestId' | 'signal'> & {
  readonly principal: Principal;
};

export interface WsOperations {
  /** Rejects if the request is invalid or the caller may not follow these events. */
  follow(message: WsMessage['subscribe'], context: WsContext): Promise<AsyncIterable<SentEvent>>;
  execute(message: WsMessage['command'] | WsMessage['query'], context: WsContext): Promise<unknown>;
}

export interface WsConnectionOptions {
  readonly address: string;
  /** Undefined: the first message must authenticate. */
  readonly principal: Principal | undefined;
  readonly authenticate: Authenticate;
  /** Writes the frames. */
  readonly wire: Duplex;
  readonly admit: ((caller: Caller) => void) | undefined;
  readonly operations: WsOperations;
  readonly sockets: readonly ModuleSocket[];
  /** Messages of the modules' sockets, by type. */
  readonly messages: ReadonlyMap<string, ModuleMessage>;
  readonly limits: WsLimits;
  readonly readers: ReaderBudget;
  readonly observer: Observer;
}

export interface WsConnection {
  /** Waits for running requests, then closes the connection. */
  stop(): Promise<void>;
}

const ids = createIds();

/** Caches the last message, so a message to many clients is encoded once. */
const encoded = { text: '', bytes: Buffer.alloc(0) };
const encodedCharsMax = 65_536;
const gatheredBytesMax = 65_536;

function bytesOf(text: string): Buffer {
  if (text.length > encodedCharsMax) return Buffer.from(text);
  if (encoded.text !== text) Object.assign(encoded, { text, bytes: Buffer.from(text) });
  return encoded.bytes;
}

export function serveConnection(socket: WebSocket, options: WsConnectionOptions): WsConnection {
  const { address, authenticate, admit, operations, limits, observer, readers, wire } = options;
  const lifetime = new AbortController();
  const feeds = new Map<string, AbortController>();
  const sessions = new Map<ModuleSocket, SocketSession>();
  let caller: Promise<Principal> | undefined;
  let requests = 0;
  let idle: (() => void) | undefined;
  let hasPong = true;
  let isStopping = false;
  let isGathering = false;
  const tooSlow = (): void => closeWith(wsCloseCodes.tooSlow, 'the client reads too slowly');
  const memoryFor = (principal: Principal | undefined, signal: AbortSignal) =>
    readers.open({ key: callerKey({ address, principal }), signal, disconnect: tooSlow });
  let unsentBytes = 0;
  let unsent: ReturnType<typeof memoryFor> | undefined;

  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  void closed.then(() => end());
  // The library itself closes the connection on protocol errors (too large, not UTF-8, broken frames).
  socket.on('error', (error) => observer.log?.debug({ err: error }, 'websocket error'));
  socket.on('pong', () => (hasPong = true));
  socket.on('message', (data, isBinary) => void receive(data, isBinary));

  const authTimer = setTimeout(
    () => closeWith(wsCloseCodes.notAuthenticated, 'authentication required'),
    limits.authMsMax,
  );
  const heartbeat = setInterval(() => {
    if (!hasPong) return closeWith(wsCloseCodes.tooSlow, 'no pong received');
    hasPong = false;
    socket.ping();
  }, limits.heartbeatMs);
  if (options.principal !== undefined) {
    const { principal } = options;
    startSession(principal);
    caller = Promise.resolve(principal);
  }

  function end(): void {
    lifetime.abort();
    unsent?.[Symbol.dispose]();
    clearTimeout(authTimer);
    clearInterval(heartbeat);
    for (const session of sessions.values()) session[Symbol.dispose]?.();
    sessions.clear();
  }

  function closeWith(code: number, reason: string): void {
    if (lifetime.signal.aborted) return;
    end();
    socket.close(code, reason);
    // A client that does not read does not get this message either.
    const timer = setTimeout(() => socket.terminate(), limits.closeMsMax);
    void closed.then(() => clearTimeout(timer));
  }

  /** Resolves when the message is written, so that a feed never outpaces its client. */
  async function send(message: object | string): Promise<void> {
    if (lifetime.signal.aborted || socket.readyState !== socket.OPEN) return;
    if (socket.bufferedAmount > limits.unreadBytesMax) return tooSlow();
    const bytes = bytesOf(typeof message === 'string' ? message : jsonText(message));
    gather();
    unsentBytes += bytes.length;
    unsent?.hold(unsentBytes);
    await new Promise<void>((resolve) => socket.send(bytes, { binary: false }, () => resolve()));
    unsentBytes -= bytes.length;
    unsent?.hold(unsentBytes);
  }

  /** Messages of one turn are written together, because a system call costs more than the rest. */
  function gather(): void {
    if (isGathering) {
      if (wire.writableLength < gatheredBytesMax) return;
      // Large data is written immediately; unwritten data counts as unread.
      wire.uncork();
      wire.cork();
      return;
    }
    isGathering = true;
    wire.cork();
    process.nextTick(() => {
      isGathering = false;
      wire.uncork();
    });
  }

  async function receive(data: RawData, isBinary: boolean): Promise<void> {
    if (lifetime.signal.aborted || isStopping) return;
    if (isBinary) return closeWith(wsCloseCodes.unsupported, 'messages are JSON text');
    const requestId = ids.next();
    let about: { readonly id?: string | undefined; readonly socket?: ModuleSocket | undefined } =
      {};
    requests += 1;
    try {
      if (requests > limits.requestsMax) throw tooMany(`at most ${limits.requestsMax} at a time`);
      // The server is configured for single Buffers.
      const read = readMessage((data as Buffer).toString('utf8'), options.messages);
      about = read;
      const message = read.check();
      if ('ours' in message) await handle(message.ours, requestId);
      else await handleModuleMessage(message.socket, message.theirs, requestId);
    } catch (error) {
      await sendError(error, about, requestId);
      if (caller === undefined) closeWith(wsCloseCodes.notAuthenticated, 'authentication required');
    } finally {
      requests -= 1;
      if (requests === 0) idle?.();
    }
  }

  async function handle(message: AnyWsMessage, requestId: string): Promise<void> {
    if (message.type === 'auth') {
      if (caller !== undefined) throw invalid('type', 'already authenticated');
      caller = signIn(message.token);
      // The caller gets its error by a message; this prevents an unhandled rejection.
      caller.catch(() => {
        caller = undefined;
      });
      await caller;
      return;
    }
    const principal = await admitted();
    const access = wsMessageAccess[message.type];
    if (access !== 'command') checkAccess(access, principal);
    if (message.type === 'unsubscribe') return unsubscribe(message.id);
    const context = { principal, address, requestId };
    if (message.type === 'subscribe') return subscribe(message, context);
    const { signal } = lifetime;
    using memory = memoryFor(principal, signal);
    const result = await operations.execute(message, { ...context, signal, memory });
    await send({ type: 'result', id: message.id, result });
  }

  async function admitted(): Promise<Principal> {
    if (caller === undefined) throw notAuthenticated('the first message must be auth');
    const principal = await caller;
    admit?.({ address, principal });
    return principal;
  }

  async function handleModuleMessage(
    socketOfModule: ModuleSocket,
    message: { readonly type: string },
    requestId: string,
  ): Promise<void> {
    checkAccess(moduleMessageAccess, await admitted());
    const handler = sessions.get(socketOfModule)?.on[message.type];
    // The connection ended while this message was queued.
    if (handler === undefined) return;
    await handler(message, { address, requestId, signal: lifetime.signal });
  }

  async function signIn(token: string): Promise<Principal> {
    admit?.({ address, principal: undefined });
    const principal = await authenticate(`Bearer ${token}`);
    if (principal === undefined || principal.ended?.aborted === true) {
      throw notAuthenticated('the credentials have expired or were revoked');
    }
    startSession(principal);
    return principal;
  }

  function startSession(principal: Principal): void {
    const { name, scopes, tenant } = principal;
    clearTimeout(authTimer);
    unsent = memoryFor(principal, lifetime.signal);
    for (const signal of credentialSignals(principal)) {
      const leave = (): void =>
        closeWith(wsCloseCodes.notAuthenticated, 'the credentials have expired or were revoked');
      signal.addEventListener('abort', leave, { once: true, signal: lifetime.signal });
    }
    void send({ type: 'ready', name, scopes, tenant });
    connectModules(principal);
  }

  function connectModules(principal: Principal): void {
    if (!allowsScope(principal.scopes, 'use')) return;
    let sent = Promise.resolve();
    const client: SocketClient = {
      principal,
      signal: lifetime.signal,
      send: (message) => {
        sent = send(message);
      },
      whenSent: () => sent,
    };
    try {
      for (const each of options.sockets) {
        // The connection may have ended during authentication, or by a message of a module.
        if (lifetime.signal.aborted) return;
        const session = each.connect(client);
        if (lifetime.signal.aborted) session[Symbol.dispose]?.();
        else sessions.set(each, session);
      }
    } catch (error) {
      observer.log?.error({ err: error }, 'websocket session failed');
      closeWith(wsCloseCodes.failed, 'internal error');
    }
  }

  async function subscribe(
    message: WsMessage['subscribe'],
    context: Omit<WsContext, 'memory' | 'signal'>,
  ): Promise<void> {
    const { id } = message;
    if (feeds.has(id)) throw invalid('id', `duplicate subscription '${id}': choose another id`);
    if (feeds.size >= limits.subscriptionsMax) {
      throw tooMany(`a connection has at most ${limits.subscriptionsMax} subscriptions`);
    }
    const ending = new AbortController();
    const signal = AbortSignal.any([lifetime.signal, ending.signal]);
    using opening = new DisposableStack();
    const memory = opening.use(memoryFor(context.principal, signal));
    feeds.set(id, ending);
    try {
      const events = await operations.follow(message, { ...context, signal, memory });
      void forwardEvents(id, events, { signal, requestId: context.requestId }, opening.move());
    } catch (error) {
      feeds.delete(id);
      throw error;
    }
  }

  async function forwardEvents(
    id: string,
    events: AsyncIterable<SentEvent>,
    { signal, requestId }: Pick<WsContext, 'requestId' | 'signal'>,
    resources: Disposable,
  ): Promise<void> {
    try {
      await send({ type: 'subscribed', id });
      for await (const sent of events) {
        if (signal.aborted) break;
        await send(messageOf(id, sent));
      }
    } catch (error) {
      if (!signal.aborted) await sendError(error, { id }, requestId);
    }
    feeds.delete(id);
    resources[Symbol.dispose]();
    await send({ type: 'unsubscribed', id });
  }

  function unsubscribe(id: string): void {
    const ending = feeds.get(id);
    if (ending === undefined) throw invalid('id', `unknown subscription '${id}': subscribe first`);
    ending.abort();
  }

  async function sendError(
    error: unknown,
    {
      id,
      socket: moduleSocket,
    }: { readonly id?: string | undefined; readonly socket?: ModuleSocket | undefined },
    requestId: string,
  ): Promise<void> {
    if (statusOf(error) === 500) observer.log?.error({ requestId, err: error }, 'message failed');
    const problem = problemOf(error, requestId);
    const message = moduleSocket?.error?.(problem) ?? { type: 'problem', problem };
    await send({ ...message, ...(id === undefined ? {} : { id }) });
  }

  return {
    async stop() {
      isStopping = true;
      for (const ending of feeds.values()) ending.abort();
      if (requests > 0) {
        const drained = new Promise<void>((resolve) => (idle = resolve));
        await withinTime(drained, { ms: limits.drainMsMax, late: () => undefined });
      }
      closeWith(wsCloseCodes.goingAway, 'the server is stopping');
      await closed;
    },
  };
}

function messageOf(id: string, sent: SentEvent): string {
  if ('json' in sent) return `{"type":"event","id":${JSON.stringify(id)},"event":${sent.json}}`;
  return JSON.stringify({ type: sent.event, id, ...(sent.data as object) });
}

function tooMany(reason: string): MillraceError {
  return new MillraceError('RATE_LIMITED', reason, { details: { retryAfterSeconds: 1 } });
}

function invalid(field: string, reason: string): MillraceError {
  return new MillraceError('REQUEST_INVALID', reason, { details: { field } });
}
