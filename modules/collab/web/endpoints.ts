// The table of routes with their access rules, and the function that makes a route from a row of the table.

import { buildIdempotencyKey, Type, type NewCommand } from 'millrace/contracts';
import { createIds, idFromKey } from 'millrace/foundation';
import {
  flowHeadersShown,
  flowOf,
  personOf,
  route,
  type RouteResponse,
  type ApiRequest,
  type Method,
  type Principal,
  type Route,
  type WebContext,
} from 'millrace/platform';
import type { Projection } from 'millrace/projections';
import type { Static, TObject, TProperties, TSchema } from 'typebox';
import { ensureUser, userIdOf } from '../user.ts';
import type { Action } from './access.ts';
import type { CollabDocuments } from './collab-documents.ts';
import { collabErrors, forbidden } from './collab-errors.ts';

export interface Endpoint {
  readonly method: Method;
  readonly path: string;
  /** `own`: the route concerns only the caller. */
  readonly rule: Action | 'own';
}

const row = <const Path extends string, Rule extends Endpoint['rule']>(
  method: Method,
  path: Path,
  rule: Rule,
) => ({ method, path: `/api/v1${path}` as const, rule });

export const endpoints = {
  getMe: row('GET', '/users/me', 'own'),
  changeMe: row('PUT', '/users/me', 'own'),

  createWorkspace: row('POST', '/workspaces', 'own'),
  listWorkspaces: row('GET', '/workspaces', 'own'),
  getWorkspace: row('GET', '/workspaces/{w}', 'workspace.see'),
  listMembers: row('GET', '/workspaces/{w}/members', 'workspace.see'),
  addMember: row('POST', '/workspaces/{w}/members', 'member.add'),
  changeMemberRole: row('PUT', '/workspaces/{w}/members/{userId}', 'member.change-role'),
  /** Members leave by the rule `workspace.leave`. */
  removeMember: row('DELETE', '/workspaces/{w}/members/{userId}', 'member.remove'),
  listInvites: row('GET', '/workspaces/{w}/invites', 'invite.list'),
  createInvite: row('POST', '/workspaces/{w}/invites', 'invite.create'),
  revokeInvite: row('DELETE', '/workspaces/{w}/invites/{inviteId}', 'invite.revoke'),
  useInvite: row('POST', '/invite/{token}', 'own'),

  createChat: row('POST', '/workspaces/{w}/chats', 'chat.create'),
  listChats: row('GET', '/workspaces/{w}/chats', 'chat.list'),
  getChat: row('GET', '/chats/{id}', 'chat.see'),
  listParticipants: row('GET', '/chats/{id}/participants', 'chat.see'),
  /** Users join by the rule `chat.join`. */
  addParticipant: row('POST', '/chats/{id}/participants', 'participant.add'),
  /** Participants leave by the rule `chat.leave`. */
  removeParticipant: row('DELETE', '/chats/{id}/participants/{userId}', 'participant.remove'),

  listMessages: row('GET', '/chats/{id}/messages', 'message.list'),
  postMessage: row('POST', '/chats/{id}/messages', 'message.post'),
  editMessage: row('PUT', '/messages/{id}', 'message.change'),
  deleteMessage: row('DELETE', '/messages/{id}', 'message.change'),

  listTasks: row('GET', '/workspaces/{w}/tasks', 'task.list'),
  getBoard: row('GET', '/workspaces/{w}/board', 'board.see'),
  getTask: row('GET', '/tasks/{id}', 'task.see'),
  watchTask: row('PUT', '/tasks/{id}/watch', 'task.watch'),
  unwatchTask: row('DELETE', '/tasks/{id}/watch', 'task.watch'),

  listNotifications: row('GET', '/notifications', 'own'),
  readNotification: row('PUT', '/notifications/{id}/read', 'own'),
  deleteNotification: row('DELETE', '/notifications/{id}', 'own'),
} as const satisfies Readonly<Record<string, Endpoint>>;

export type EndpointName = keyof typeof endpoints;

/** The path of messages in the requirement document. */
export const aliases = {
  listMessages: '/api/chats/{id}/messages',
  postMessage: '/api/chats/{id}/messages',
} as const satisfies Partial<Readonly<Record<EndpointName, string>>>;

type CommandOutcome = Awaited<ReturnType<WebContext['handle']>>;

export interface WebUser {
  /** The tenant of the credentials; requests cannot choose it. */
  readonly tenant: string;
  readonly userId: string;
  readonly username: string;
}

/** The second argument of a handler, in addition to the request. */
export interface EndpointContext<Name extends EndpointName> {
  readonly me: WebUser;
  readonly rule: (typeof endpoints)[Name]['rule'];
  /** Sends a command of the user in the flow of the request. The response gets the flow's `X-Correlation-Id`. */
  readonly send: (request: {
    readonly id: string;
    readonly command: NewCommand;
    readonly key?: string | undefined;
    readonly headers?: Readonly<Record<string, unknown>> | undefined;
    /** Returns when this projection shows the change. */
    readonly visibleIn?: Projection | undefined;
  }) => Promise<CommandOutcome>;
  /** With `Idempotency-Key`, a repeated request gets the same id and key; without, a new id. */
  readonly newId: (operation: string) => NewId;
}

interface NewId {
  readonly id: string;
  readonly key?: string | undefined;
}

/** The names in braces of a path. */
type ParamsIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamsIn<Rest>
  : never;
type EndpointRequest<
  Name extends EndpointName,
  Query extends TObject,
  Body extends TSchema,
> = ApiRequest<
  Readonly<Record<ParamsIn<(typeof endpoints)[Name]['path']>, string>>,
  Static<Query>,
  Static<Body>
>;

type EndpointDefinition<
  Name extends EndpointName,
  Query extends TObject,
  Body extends TSchema,
> = Pick<Route, 'responses' | 'description' | 'headersShown' | 'summary'> & {
  /** Default: all parameters of the path are ids. */
  readonly params?: TObject;
  readonly query?: Query;
  readonly body?: Body;
  handle(
    request: EndpointRequest<Name, Query, Body>,
    context: EndpointContext<Name>,
  ): Promise<RouteResponse>;
};

/** A well-formed id; it need not exist. */
export const idText = Type.String({ minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9._-]+$' });

/** A request body; other fields are rejected. */
export function bodyOf<Fields extends TProperties>(fields: Fields) {
  return Type.Object(fields, { additionalProperties: false });
}

export type EndpointMaker = ReturnType<typeof createEndpointMaker>;

const ids = createIds();

/** Makes routes of the table; all routes of one tag are together in the reference. */
export function createEndpointMaker(
  platform: Pick<WebContext, 'handle' | 'load'>,
  { settled }: Pick<CollabDocuments, 'settled'>,
) {
  const userOf = createUserLookup(platform);
  return (tag: string) =>
    <Name extends EndpointName, Query extends TObject = TObject, Body extends TSchema = TSchema>(
      name: Name,
      definition: EndpointDefinition<Name, Query, Body>,
    ): Route => {
      const { method, path, rule } = endpoints[name];
      const { params = idParams(path) } = definition;
      return route<TObject, Query, Body>({
        ...definition,
        ...(params === undefined ? {} : { params }),
        tag,
        method,
        path,
        access: 'use',
        errors: collabErrors,
        ...(method === 'GET'
          ? {}
          : { headersShown: { ...definition.headersShown, ...flowHeadersShown } }),
        async handle(request) {
          const me = await userOf(request.principal);
          const flow = flowOf(request);
          let correlationId: string | undefined;
          const response = await definition.handle(request as EndpointRequest<Name, Query, Body>, {
            me,
            rule,
            async send({ id, command, key, headers, visibleIn }) {
              const outcome = await platform.handle({
                ...flow,
                tenant: me.tenant,
                id,
                command,
                user: { id: me.userId },
                signal: request.signal,
                idempotencyKey: key,
                // All commands of a request belong to the flow of the first one.
                correlationId: correlationId ?? flow.correlationId,
                headers: headers === undefined ? flow.headers : { ...flow.headers, ...headers },
              });
              correlationId ??= outcome.events[0]?.correlationId;
              if (visibleIn !== undefined) await settled(visibleIn, outcome.position);
              return outcome;
            },
            newId: (operation) => newId(me, request.headers['idempotency-key'], operation),
          });
          if (correlationId === undefined) return response;
          return {
            ...response,
            headers: { 'x-correlation-id': correlationId, ...response.headers },
          };
        },
      });
    };
}

function idParams(path: string): TObject | undefined {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, idText]);
  return names.length === 0 ? undefined : Type.Object(Object.fromEntries(names));
}

function newId({ tenant, userId }: WebUser, given: string | undefined, operation: string): NewId {
  if (given === undefined) return { id: ids.next() };
  // Keys of different users never collide.
  const naturalKey = `${userId}|${given}`;
  const key = buildIdempotencyKey({ tenant, service: 'collab', operation, naturalKey });
  return { id: idFromKey(key), key };
}

/** For endpoints that use `newId`. */
export const repeatableShown = {
  'Idempotency-Key':
    'A repeated request with the same key gets the first response and creates nothing.',
};

/** How many users stay cached. */
const cachedMax = 10_000;

/** The user of a principal; the first request registers it. */
function createUserLookup({
  handle,
  load,
}: Pick<WebContext, 'handle' | 'load'>): (principal: Principal | undefined) => Promise<WebUser> {
  const cached = new Map<string, Promise<WebUser>>();
  return async (principal) => {
    const { tenant, userId } = identify(principal);
    const { username, email } = principal as Principal;
    // The key contains the address: a changed one updates the profile.
    const key = JSON.stringify([tenant, userId, username, email]);
    const found = cached.get(key);
    if (found !== undefined) return found;
    const user = ensureUser(
      { send: handle, load },
      { tenant, principal: personOf(principal as Principal), username, email },
    ).then((ensured) => ({ tenant, ...ensured }));
    cached.set(key, user);
    const [oldest] = cached.keys();
    if (cached.size > cachedMax && oldest !== undefined) cached.delete(oldest);
    try {
      return await user;
    } catch (error) {
      cached.delete(key);
      throw error;
    }
  };
}

/** The user id of a principal, without registration. */
export function identify(principal: Principal | undefined): Omit<WebUser, 'username'> {
  const { tenant, scopes = [] } = principal ?? {};
  if (principal === undefined || tenant === undefined)
    throw forbidden('This route needs credentials of one tenant.');
  // A token that may only read belongs to a machine, not to a user.
  if (!scopes.some((scope) => scope === 'use' || scope === 'append' || scope === 'admin')) {
    throw forbidden("This route needs the scope 'use'.");
  }
  return { tenant, userId: userIdOf(personOf(principal)) };
}
