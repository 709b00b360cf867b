// ntfy's API over topics: takes a request apart, asks the topics, and answers. It decides nothing.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { systemClock, type Clock } from '../../foundation/clock.ts';
import { silentObserver, type Observer } from '../../foundation/observer.ts';
import { createAccessBook, type TopicPermission } from '../../notify/access-rules.ts';
import { readJsonPublish } from '../../notify/json-publish.ts';
import { readFilter } from '../../notify/message-filter.ts';
import { createNotifyUsers, type NotifyUsers } from '../../notify/notify-users.ts';
import { memoryUserDirectory, type UserDirectory } from '../../notify/user-directory.ts';
import { refused } from '../../notify/ntfy-problems.ts';
import { readPublishParams, unifiedPushNames } from '../../notify/publish-params.ts';
import { requestParams, type RequestHeaders } from '../../notify/request-params.ts';
import { parseSince } from '../../notify/since.ts';
import { messageJson } from '../../notify/topic-message.ts';
import type { TopicBody, Topics } from '../../notify/topics.ts';
import { administer } from './ntfy-administration.ts';
import { answerJson, answerProblem, anyOrigin, toldProblem } from './ntfy-answer.ts';
import { bodyOf, peekBody } from './ntfy-body.ts';
import { answerFile } from './ntfy-file.ts';
import { accountOf, configOf } from './ntfy-facts.ts';
import { contentTypes, encodeMessage, type StreamForm } from './ntfy-forms.ts';
import { createKeepalives } from './ntfy-keepalives.ts';
import { pushTarget } from './ntfy-matrix.ts';
import { ntfyRouteOf, type NtfyRoute } from './ntfy-route.ts';
import { followOverHttp, type Following } from './ntfy-stream.ts';
import { visitorOf, type Visitor } from './ntfy-visitor.ts';
import { createNtfyWebSockets } from './ntfy-websocket.ts';
import { refuseUpgrade } from './refuse-upgrade.ts';

export interface NtfyHandlerOptions {
  /** Default: nobody is known. */
  readonly users?: NotifyUsers;
  /** Who there is and what they may, which administrators change. Default: nobody, in memory. */
  readonly directory?: UserDirectory;
  /** For topics that no rule is about. Default: read-write. */
  readonly defaultAccess?: TopicPermission;
  readonly exemptHosts?: readonly string[];
  readonly isBehindProxy?: boolean;
  /** What administrators are told. */
  readonly version?: string;
  readonly clock?: Clock;
  readonly observer?: Observer;
}

export interface NtfyHandler extends AsyncDisposable {
  /** Whether it is ntfy's; a topic's own page is not, there is none. */
  takes(request: IncomingMessage): boolean;
  /** Never rejects. */
  serve(request: IncomingMessage, response: ServerResponse): Promise<void>;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void>;
  /** Ends what has no end, before the server waits for its connections. */
  stop(): void;
}

interface Asked {
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
  const who = { users, visitors, isBehindProxy, exemptHosts };
  // Who may not read any more is not read to any longer, in whichever process that was said.
  const cutOff = (): void => topics.cutThose((reader) => reader.mayRead?.() === false);
  directory.onChanged(cutOff);
  const watched = new WeakSet<AbortSignal>();

  /** One listener for each token, however many read with it. */
  function watchEnd(ended: AbortSignal | undefined): void {
    if (ended === undefined || watched.has(ended)) return;
    watched.add(ended);
    ended.addEventListener('abort', cutOff, { once: true });
  }

  function admit({ name, isExempt }: Visitor): void {
    if (!isExempt) visitors.request(name);
  }

  function check(names: readonly string[], { user }: Visitor, wanted: 'read' | 'write'): void {
    for (const topic of names) if (!access.may(user, topic, wanted)) throw refused('forbidden');
  }

  function touch(topic: string, { name }: Visitor): void {
    topics.touch(topic, name);
  }

  async function publish(asked: Asked, { topic, sequenceId, ...said }: Publish): Promise<string> {
    const { request, visitor } = asked;
    touch(topic, visitor);
    admit(visitor);
    check([topic], visitor, 'write');
    const body = said.body ?? (await peekBody(request, limits.messageBytesMax));
    const params = readPublishParams(requestParams(said.headers, said.query), {
      pathSequenceId: sequenceId,
      nowMs: clock.now(),
      rules: topics.rules,
    });
    const { name, isExempt } = visitor;
    return messageJson(await topics.publish({ topic, params, body, visitor: name, isExempt }));
  }

  async function publishJson(asked: Asked): Promise<void> {
    const { request, response, query } = asked;
    const peeked = await peekBody(request, limits.messageBytesMax * 2);
    if (peeked.isCut) throw refused('jsonTooLarge');
    const { topic, body, headers } = readJsonPublish(peeked.head, request.headers);
    const content = bodyOf(body, limits.messageBytesMax);
    const said = { topic, sequenceId: undefined, headers, query, body: content };
    answerJson(response, await publish(asked, said));
  }

  async function pushMatrix(asked: Asked): Promise<void> {
    const { request, response } = asked;
    if (topics.baseUrl === undefined) throw refused('baseUrlMissing');
    const peeked = await peekBody(request, limits.messageBytesMax);
    if (peeked.isCut) throw refused('matrixTooLarge');
    const { pushkey, url } = pushTarget(peeked.head, topics.baseUrl);
    const [, topic = ''] =
      url?.pathname.slice(new URL(topics.baseUrl).pathname.replace(/\/$/, '').length).split('/') ??
      [];
    if (url !== undefined) {
      const said = { topic, sequenceId: undefined, headers: {}, query: url.searchParams };
      await publish(asked, { ...said, body: peeked });
    }
    const rejected = url === undefined ? [pushkey] : [];
    answerJson(response, JSON.stringify({ rejected }), { headers: [] });
  }

  async function change(
    { response, visitor }: Asked,
    { event, topic, sequenceId }: Extract<NtfyRoute, { readonly kind: 'change' }>,
  ): Promise<void> {
    touch(topic, visitor);
    admit(visitor);
    check([topic], visitor, 'write');
    const { name, isExempt } = visitor;
    const message = await topics.change(event, { topic, sequenceId, visitor: name, isExempt });
    answerJson(response, messageJson(message));
  }

  function readingOf(
    said: string,
    { request, query, visitor }: Omit<Asked, 'response'>,
  ): Following & { readonly isPoll: boolean } {
    const names = said.split(',');
    for (const topic of names) touch(topic, visitor);
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
      said,
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

  async function subscribe(asked: Asked, form: StreamForm, said: string): Promise<void> {
    const { request, response, visitor } = asked;
    admit(visitor);
    check(said.split(','), visitor, 'read');
    using held = new DisposableStack();
    held.use(visitors.subscribe(visitor.name));
    const following = readingOf(said, asked);
    if (!following.isPoll) {
      await followOverHttp(topics, form, { asked: request, response, following });
      return;
    }
    const kept = await topics.read(following.request);
    const { filter } = following;
    const text = kept
      .filter((message) => filter?.(message) ?? true)
      .map((message) => encodeMessage(form, message))
      .join('');
    response.writeHead(200, [...anyOrigin, 'Content-Type', contentTypes[form]]).end(text);
  }

  async function answer(asked: Asked, route: NtfyRoute): Promise<void> {
    const { request, response, query, visitor } = asked;
    switch (route.kind) {
      case 'publish': {
        const { topic, sequenceId } = route;
        const said = { topic, sequenceId, headers: request.headers, query };
        return answerJson(response, await publish(asked, said));
      }
      case 'publishJson':
        return publishJson(asked);
      case 'change':
        return change(asked, route);
      case 'subscribe':
        if (route.form !== 'ws') return subscribe(asked, route.form, route.topics);
        admit(visitor);
        check(route.topics.split(','), visitor, 'read');
        throw refused('notWebSocket');
      case 'auth':
        admit(visitor);
        check(route.topics.split(','), visitor, 'read');
        return answerJson(response, '{"success":true}');
      case 'page':
        if (!requestParams(request.headers, query).flag(unifiedPushNames, false)) {
          throw refused('pageNotFound');
        }
        return answerJson(response, '{"unifiedpush":{"version":1}}');
      case 'file':
        admit(visitor);
        return answerFile(topics, route.id, { request, response });
      case 'matrixPush':
        return pushMatrix(asked);
      case 'administration': {
        const isAdmin = visitor.user?.role === 'admin';
        if (!isAdmin) throw refused(users.isOpen ? 'pageNotFound' : 'unauthorized');
        return administer(route.deed, { request, response, directory, version });
      }
      default:
        return tell(asked, route.kind);
    }
  }

  async function tell({ response, visitor }: Asked, kind: NtfyRoute['kind']): Promise<void> {
    switch (kind) {
      case 'health':
        return answerJson(response, '{"healthy":true}');
      case 'stats':
        return answerJson(
          response,
          JSON.stringify({ messages: topics.published, messages_rate: topics.publishedPerSecond }),
        );
      case 'config': {
        const headers = [...anyOrigin, 'Cache-Control', 'no-cache'];
        return answerJson(response, JSON.stringify(configOf(topics)), { headers });
      }
      case 'configJs': {
        const json = JSON.stringify(configOf(topics), undefined, 2);
        const headers = ['Content-Type', 'text/javascript', 'Cache-Control', 'no-cache'];
        response.writeHead(200, headers);
        return void response.end(`// Generated server configuration\nvar config = ${json};\n`);
      }
      case 'account':
        return answerJson(response, JSON.stringify(await accountOf(topics, visitor)));
      case 'matrixDiscovery':
        if (topics.baseUrl === undefined) throw refused('baseUrlMissing');
        return answerJson(response, '{"unifiedpush":{"gateway":"matrix"}}', { headers: [] });
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
        throw refused('pageNotFound');
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
        const visitor = await visitorOf(request, query, who);
        if (route === undefined) throw refused('pageNotFound');
        await answer({ request, response, query, visitor }, route);
      } catch (error) {
        answerProblem(request, response, toldProblem(error, observer));
      }
    },
    async upgrade(request, socket, head) {
      socket.on('error', (error) => observer.log?.debug({ err: error }, 'websocket error'));
      try {
        const { path, query } = targetOf(request);
        const visitor = await visitorOf(request, query, who);
        const route = ntfyRouteOf(request.method ?? '', path);
        if (route?.kind !== 'subscribe' || route.form !== 'ws') throw refused('pageNotFound');
        admit(visitor);
        check(route.topics.split(','), visitor, 'read');
        using held = new DisposableStack();
        held.use(visitors.subscribe(visitor.name));
        const following = readingOf(route.topics, { request, query, visitor });
        const { isPoll } = following;
        await sockets.follow(topics, { request, socket, head, following, isPoll });
        return;
      } catch (error) {
        refuseUpgrade(socket, toldProblem(error, observer).status);
      }
    },
    stop: () => topics.cut(),
    async [Symbol.asyncDispose]() {
      keepalives[Symbol.dispose]();
    },
  };
}

function targetOf(request: IncomingMessage): {
  readonly path: string;
  readonly query: URLSearchParams | undefined;
} {
  const url = request.url ?? '/';
  const at = url.indexOf('?');
  const path = decodedPath(at === -1 ? url : url.slice(0, at));
  if (path === undefined) throw refused('invalid');
  return { path, query: at === -1 ? undefined : new URLSearchParams(url.slice(at + 1)) };
}

function decodedPath(path: string): string | undefined {
  if (!path.includes('%')) return path;
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
