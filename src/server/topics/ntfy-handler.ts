// ntfy's API over topics: parses a request, calls the topics, and responds. The rules are in `src/topics`.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { systemClock, type Clock } from '../../foundation/clock.ts';
import { silentObserver, type Observer } from '../../foundation/observer.ts';
import type { AuditLog } from '../../platform/audit-log.ts';
import { createAccessBook, type TopicPermission } from '../../topics/users/access-rules.ts';
import { readJsonPublish } from '../../topics/json-publish.ts';
import { createNotifyUsers, type NotifyUsers } from '../../topics/users/notify-users.ts';
import { memoryUserDirectory, type UserDirectory } from '../../topics/users/user-directory.ts';
import { ntfyError } from '../../topics/ntfy-problems.ts';
import { readPublishParams, unifiedPushNames } from '../../topics/publish-params.ts';
import { requestParams, type RequestHeaders } from '../../topics/request-params.ts';
import { parseSince, readFilter } from '../../topics/read-params.ts';
import { messageJson } from '../../topics/topic-message.ts';
import type { TopicBody, Topics } from '../../topics/topics.ts';
import { administer } from './ntfy-administration.ts';
import { sendFile, sendJson, sendProblem, anyOrigin, loggedProblem } from './ntfy-response.ts';
import { bodyOf, peekBody } from './ntfy-body.ts';
import { accountOf, configOf } from './ntfy-facts.ts';
import { ntfyRouteOf, type NtfyRoute } from './ntfy-route.ts';
import {
  contentTypes,
  createKeepalives,
  encodeMessage,
  followOverHttp,
  type Following,
  type StreamForm,
} from './ntfy-stream.ts';
import { visitorOf, type Visitor } from './ntfy-visitor.ts';
import { createNtfyWebSockets, rejectUpgrade } from './ntfy-websocket.ts';

export interface NtfyHandlerOptions {
  /** Default: the users of `directory`, without tokens. */
  readonly users?: NotifyUsers | undefined;
  /** Users and access rules, which administrators change. Default: an empty one in memory. */
  readonly directory?: UserDirectory | undefined;
  /** Records who changes users and rules. Default: changes are not recorded. */
  readonly audit?: Pick<AuditLog, 'run'> | undefined;
  /** For topics that no access rule matches. Default: read-write. */
  readonly defaultAccess?: TopicPermission | undefined;
  /** True: only this machine can reach the server. Web pages of other origins then need credentials to publish. */
  readonly isLocal?: boolean | undefined;
  /** Origins that need no credentials either. */
  readonly corsOrigins?: readonly string[] | undefined;
  readonly exemptHosts?: readonly string[] | undefined;
  readonly isBehindProxy?: boolean | undefined;
  /** The product's version, which administrators can read. */
  readonly version?: string | undefined;
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
}

export interface NtfyHandler extends AsyncDisposable {
  /** Whether the request is for ntfy's API. The web page of a topic is not: this server has none. */
  takes(request: IncomingMessage): boolean;
  /** Never rejects. */
  serve(request: IncomingMessage, response: ServerResponse): Promise<void>;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void>;
  /** Ends all streams, which would otherwise keep the server from closing. */
  stop(): void;
}

interface Call {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly query: URLSearchParams | undefined;
  readonly visitor: Visitor;
}

interface Publish {
  readonly topic: string;
  readonly sequenceId: string | undefined;
  readonly headers: RequestHeaders;
  readonly query: URLSearchParams | undefined;
  readonly body?: TopicBody;
}

export function createNtfyHandler(topics: Topics, options: NtfyHandlerOptions = {}): NtfyHandler {
  const { clock = systemClock, observer = silentObserver } = options;
  const { directory = memoryUserDirectory(), isBehindProxy = false, exemptHosts = [] } = options;
  const { users = createNotifyUsers({ directory }), version = '' } = options;
  const access = createAccessBook(directory, options.defaultAccess ?? 'read-write');
  const { limits, visitors } = topics;
  const keepalives = createKeepalives(limits.keepaliveMs);
  const sockets = createNtfyWebSockets();
  const visitorOptions = { users, visitors, isBehindProxy, exemptHosts };
  // Ends the streams of users that have lost their permission, also when another process changed it.
  const cutOff = (): void => topics.cutThose((reader) => reader.mayRead?.() === false);
  directory.onChanged(cutOff);
  const watched = new WeakSet<AbortSignal>();

  /** Adds one listener per token, however many streams use it. */
  function watchEnd(ended: AbortSignal | undefined): void {
    if (ended === undefined || watched.has(ended)) return;
    watched.add(ended);
    ended.addEventListener('abort', cutOff, { once: true });
  }

  function admit({ name, isExempt }: Visitor): void {
    if (!isExempt) visitors.request(name);
  }

  function admitReader(visitor: Visitor, topicsInPath: string): void {
    admit(visitor);
    check(topicsInPath.split(','), visitor, 'read');
  }

  function admitWriter({ request, visitor }: Call, topic: string): void {
    topics.touch(topic, visitor.name);
    admit(visitor);
    check([topic], visitor, 'write');
    const isForeign = options.isLocal === true && isForeignPage(request, options.corsOrigins);
    if (isForeign && visitor.user === undefined) {
      throw ntfyError('forbidden', 'web pages of other origins need credentials to publish');
    }
  }

  function check(names: readonly string[], { user }: Visitor, wanted: 'read' | 'write'): void {
    for (const topic of names) if (!access.may(user, topic, wanted)) throw ntfyError('forbidden');
  }

  async function publish(call: Call, { topic, sequenceId, ...given }: Publish): Promise<string> {
    const { visitor } = call;
    admitWriter(call, topic);
    const body = given.body ?? (await peekBody(call.request, limits.messageBytesMax));
    const params = readPublishParams(requestParams(given.headers, given.query), {
      pathSequenceId: sequenceId,
      nowMs: clock.now(),
      rules: topics.rules,
    });
    if (params.email !== '' && visitor.user === undefined) throw ntfyError('anonymousEmail');
    const { name, isExempt, user } = visitor;
    const request = { topic, params, body, visitor: name, user: user?.name, isExempt };
    return messageJson(await topics.publish(request));
  }

  async function publishJson(call: Call): Promise<void> {
    const { request, response, query } = call;
    const peeked = await peekBody(request, limits.messageBytesMax * 2);
    if (peeked.isCut) throw ntfyError('jsonTooLarge');
    const { topic, body, headers } = readJsonPublish(peeked.head, request.headers);
    const content = bodyOf(body, limits.messageBytesMax);
    const given = { topic, sequenceId: undefined, headers, query, body: content };
    sendJson(response, await publish(call, given));
  }

  /** The Matrix push gateway: a homeserver's push key is the URL of a topic. */
  async function pushMatrix(call: Call): Promise<void> {
    const { request, response } = call;
    if (topics.baseUrl === undefined) throw ntfyError('baseUrlMissing');
    const peeked = await peekBody(request, limits.messageBytesMax);
    if (peeked.isCut) throw ntfyError('matrixTooLarge');
    const pushkey = pushkeyOf(peeked.head);
    const isOurs = pushkey.startsWith(`${topics.baseUrl}/`) && URL.canParse(pushkey);
    if (isOurs) {
      const { pathname, searchParams: query } = new URL(pushkey);
      const basePath = new URL(topics.baseUrl).pathname.replace(/\/$/, '');
      const [, topic = ''] = pathname.slice(basePath.length).split('/');
      await publish(call, { topic, sequenceId: undefined, headers: {}, query, body: peeked });
    }
    // A homeserver deletes the push keys that are rejected.
    const rejected = isOurs ? [] : [pushkey];
    sendJson(response, JSON.stringify({ rejected }), { headers: [] });
  }

  async function change(
    call: Call,
    { event, topic, sequenceId }: Extract<NtfyRoute, { readonly kind: 'change' }>,
  ): Promise<void> {
    admitWriter(call, topic);
    const { name, isExempt } = call.visitor;
    const message = await topics.change(event, { topic, sequenceId, visitor: name, isExempt });
    sendJson(call.response, messageJson(message));
  }

  function readingOf(
    topicsInPath: string,
    { request, query, visitor }: Omit<Call, 'response'>,
  ): Following & { readonly isPoll: boolean } {
    const names = topicsInPath.split(',');
    for (const topic of names) topics.touch(topic, visitor.name);
    const params = requestParams(request.headers, query);
    const isPoll = params.flag(['x-poll', 'poll', 'po'], false);
    const since = parseSince(params.text(['x-since', 'since', 'si']), {
      isPoll,
      nowMs: clock.now(),
    });
    const withScheduled = params.flag(['x-scheduled', 'scheduled', 'sched'], false);
    watchEnd(visitor.user?.ended);
    return {
      request: { topics: names, since, withScheduled },
      topicsInPath,
      filter: readFilter(params),
      mayRead: () =>
        (visitor.user === undefined || users.isKnown(visitor.user)) &&
        visitor.user?.ended?.aborted !== true &&
        names.every((topic) => access.may(visitor.user, topic, 'read')),
      keepalives,
      nowMs: () => clock.now(),
      isPoll,
    };
  }

  async function subscribe(call: Call, form: StreamForm, topicsInPath: string): Promise<void> {
    const { request, response, visitor } = call;
    admitReader(visitor, topicsInPath);
    using resources = new DisposableStack();
    resources.use(visitors.subscribe(visitor.name));
    const following = readingOf(topicsInPath, call);
    if (!following.isPoll) {
      await followOverHttp(topics, form, { incoming: request, response, following });
      return;
    }
    const stored = await topics.read(following.request);
    const { filter } = following;
    const text = stored
      .filter((message) => filter?.(message) ?? true)
      .map((message) => encodeMessage(form, message))
      .join('');
    response.writeHead(200, [...anyOrigin, 'Content-Type', contentTypes[form]]).end(text);
  }

  async function respond(call: Call, route: NtfyRoute): Promise<void> {
    const { request, response, query, visitor } = call;
    switch (route.kind) {
      case 'publish': {
        const { topic, sequenceId } = route;
        const given = { topic, sequenceId, headers: request.headers, query };
        return sendJson(response, await publish(call, given));
      }
      case 'publishJson':
        return publishJson(call);
      case 'change':
        return change(call, route);
      case 'subscribe':
        if (route.form !== 'ws') return subscribe(call, route.form, route.topics);
        admitReader(visitor, route.topics);
        throw ntfyError('notWebSocket');
      case 'auth':
        admitReader(visitor, route.topics);
        return sendJson(response, '{"success":true}');
      case 'page':
        if (!requestParams(request.headers, query).flag(unifiedPushNames, false)) {
          throw ntfyError('pageNotFound');
        }
        return sendJson(response, '{"unifiedpush":{"version":1}}');
      case 'file':
        admit(visitor);
        return sendFile(topics, route.id, { request, response });
      case 'matrixPush':
        return pushMatrix(call);
      case 'administration': {
        const isAdmin = visitor.user?.role === 'admin';
        if (!isAdmin) throw ntfyError(users.isOpen ? 'pageNotFound' : 'unauthorized');
        const { audit } = options;
        return administer(route.action, { request, response, visitor, directory, version, audit });
      }
      default:
        return sendFixed(call, route.kind);
    }
  }

  /** Routes without parameters. */
  async function sendFixed({ response, visitor }: Call, kind: NtfyRoute['kind']): Promise<void> {
    switch (kind) {
      case 'health':
        return sendJson(response, '{"healthy":true}');
      case 'stats':
        return sendJson(
          response,
          JSON.stringify({ messages: topics.published, messages_rate: topics.publishedPerSecond }),
        );
      case 'config': {
        const headers = [...anyOrigin, 'Cache-Control', 'no-cache'];
        return sendJson(response, JSON.stringify(configOf(topics)), { headers });
      }
      case 'configJs': {
        const json = JSON.stringify(configOf(topics), undefined, 2);
        const headers = ['Content-Type', 'text/javascript', 'Cache-Control', 'no-cache'];
        response.writeHead(200, headers);
        return void response.end(`// Generated server configuration\nvar config = ${json};\n`);
      }
      case 'account':
        return sendJson(response, JSON.stringify(await accountOf(topics, visitor)));
      case 'matrixDiscovery':
        if (topics.baseUrl === undefined) throw ntfyError('baseUrlMissing');
        return sendJson(response, '{"unifiedpush":{"gateway":"matrix"}}', { headers: [] });
      case 'options':
        admit(visitor);
        response.writeHead(200, [
          ...anyOrigin,
          'Access-Control-Allow-Methods',
          'GET, PUT, POST, PATCH, DELETE',
          'Access-Control-Allow-Headers',
          '*',
        ]);
        return void response.end();
      case 'empty':
        return void response.writeHead(200).end();
      default:
        throw ntfyError('pageNotFound');
    }
  }

  return {
    takes(request) {
      const [path = '/'] = (request.url ?? '/').split('?', 1);
      const route = ntfyRouteOf(request.method ?? '', decodedPath(path) ?? '');
      if (route?.kind === 'page') return /[?&](?:x-)?(?:up|unifiedpush)=/.test(request.url ?? '');
      return route !== undefined && route.kind !== 'empty';
    },
    async serve(request, response) {
      try {
        const { path, query } = targetOf(request);
        const route = ntfyRouteOf(request.method ?? '', path);
        const visitor = await visitorOf(request, query, visitorOptions);
        if (route === undefined) throw ntfyError('pageNotFound');
        await respond({ request, response, query, visitor }, route);
      } catch (error) {
        sendProblem(request, response, loggedProblem(error, observer));
      }
    },
    async upgrade(request, socket, head) {
      socket.on('error', (error) => observer.log?.debug({ err: error }, 'websocket error'));
      try {
        const { path, query } = targetOf(request);
        const visitor = await visitorOf(request, query, visitorOptions);
        const route = ntfyRouteOf(request.method ?? '', path);
        if (route?.kind !== 'subscribe' || route.form !== 'ws') throw ntfyError('pageNotFound');
        admitReader(visitor, route.topics);
        using resources = new DisposableStack();
        resources.use(visitors.subscribe(visitor.name));
        const following = readingOf(route.topics, { request, query, visitor });
        const { isPoll } = following;
        await sockets.follow(topics, { request, socket, head, following, isPoll });
        return;
      } catch (error) {
        rejectUpgrade(socket, loggedProblem(error, observer).http);
      }
    },
    stop: () => topics.cut(),
    async [Symbol.asyncDispose]() {
      keepalives[Symbol.dispose]();
    },
  };
}

/** Whether a web page of another origin sends the request; images and links send no `Origin`. */
function isForeignPage(
  { headers }: IncomingMessage,
  trusted: readonly string[] | undefined,
): boolean {
  const { origin, host } = headers;
  if (origin === undefined) {
    return ['cross-site', 'same-site'].includes(String(headers['sec-fetch-site']));
  }
  if (trusted?.includes(origin) === true) return false;
  return !URL.canParse(origin) || new URL(origin).host !== host?.toLowerCase();
}

function targetOf(request: IncomingMessage): {
  readonly path: string;
  readonly query: URLSearchParams | undefined;
} {
  const url = request.url ?? '/';
  const at = url.indexOf('?');
  const path = decodedPath(at === -1 ? url : url.slice(0, at));
  if (path === undefined) throw ntfyError('invalid');
  return { path, query: at === -1 ? undefined : new URLSearchParams(url.slice(at + 1)) };
}

function pushkeyOf(body: Buffer): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body.toString('utf8'));
  } catch {
    throw ntfyError('matrixInvalid');
  }
  const { notification } = (parsed ?? {}) as { readonly notification?: unknown };
  const { devices } = (notification ?? {}) as { readonly devices?: unknown };
  const first: unknown = Array.isArray(devices) ? devices[0] : undefined;
  const { pushkey } = (first ?? {}) as { readonly pushkey?: unknown };
  if (typeof pushkey !== 'string' || pushkey === '') throw ntfyError('matrixInvalid');
  return pushkey;
}

function decodedPath(path: string): string | undefined {
  if (!path.includes('%')) return path;
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
