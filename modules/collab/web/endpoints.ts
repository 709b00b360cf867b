// The table of routes with their access rules, and the function that makes a route from a row of it.

import {
  type Method,
  flowHeadersShown,
  flowOf,
  route,
  type Answer,
  type ApiRequest,
  type Route,
  type WebContext,
  type Principal,
} from 'millrace/platform';
import type { Action } from './access.ts';
import { buildIdempotencyKey, type NewCommand, Type } from 'millrace/contracts';
import { createIds, idFromKey } from 'millrace/foundation';
import type { Static, TObject, TSchema } from 'typebox';
import { collabErrors, forbidden } from './collab-errors.ts';
import { ensureUser, userIdOf } from '../user.ts';

export interface Endpoint {
  readonly method: Method;
  readonly path: string;
  /** `own`: about the caller, whoever that is. */
  readonly rule: Action | 'own';
}

const row = <Rule extends Endpoint['rule']>(method: Method, path: string, rule: Rule) => ({
  method,
  path: `/api/v1${path}`,
  rule,
});

export const endpoints = {
  getMe: row('GET', '/users/me', 'own'),
  changeMe: row('PUT', '/users/me', 'own'),

  createWorkspace: row('POST', '/workspaces', 'own'),
  listWorkspaces: row('GET', '/workspaces', 'own'),
  getWorkspace: row('GET', '/workspaces/{w}', 'workspace.see'),
  listMembers: row('GET', '/workspaces/{w}/members', 'workspace.see'),
  addMember: row('POST', '/workspaces/{w}/members', 'member.add'),
  changeMemberRole: row('PUT', '/workspaces/{w}/members/{userId}', 'member.change-role'),
  /** Of oneself: `workspace.leave`. */
  removeMember: row('DELETE', '/workspaces/{w}/members/{userId}', 'member.remove'),
  listInvites: row('GET', '/workspaces/{w}/invites', 'invite.list'),
  createInvite: row('POST', '/workspaces/{w}/invites', 'invite.create'),
  revokeInvite: row('DELETE', '/workspaces/{w}/invites/{inviteId}', 'invite.revoke'),
  useInvite: row('POST', '/invite/{token}', 'own'),

  createChat: row('POST', '/workspaces/{w}/chats', 'chat.create'),
  listChats: row('GET', '/workspaces/{w}/chats', 'chat.list'),
  getChat: row('GET', '/chats/{id}', 'chat.see'),
  listParticipants: row('GET', '/chats/{id}/participants', 'chat.see'),
  /** Of oneself: `chat.join`. */
  addParticipant: row('POST', '/chats/{id}/participants', 'participant.add'),
  /** Of oneself: `chat.leave`. */
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

/** The same messages under the path of the event flow's document. */
export const aliases = {
  listMessages: '/api/chats/{id}/messages',
  postMessage: '/api/chats/{id}/messages',
} as const satisfies Partial<Readonly<Record<EndpointName, string>>>;

export type CommandOutcome = Awaited<ReturnType<WebContext['handle']>>;

export interface Asking<Name extends EndpointName> {
  readonly me: WebUser;
  readonly rule: (typeof endpoints)[Name]['rule'];
  /** Sends a command of this user's, as a part of the flow of the request. */
  readonly send: (wanted: {
    readonly id: string;
    readonly command: NewCommand;
    readonly key?: string | undefined;
    /** Of a command before it. */
    readonly correlationId?: string | undefined;
    readonly headers?: Readonly<Record<string, unknown>>;
  }) => Promise<CommandOutcome>;
  /** With `Idempotency-Key`, a repeat is the same command on the same id; without, each is a new one. */
  readonly newId: (operation: string) => { readonly id: string; readonly key?: string };
}

type EndpointDefinition<
  Name extends EndpointName,
  Params extends TObject,
  Query extends TObject,
  Body extends TSchema,
> = Pick<Route, 'answers' | 'description' | 'headersShown' | 'summary' | 'tag'> & {
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: Body;
  handle(
    request: ApiRequest<Static<Params>, Static<Query>, Static<Body>>,
    asking: Asking<Name>,
  ): Promise<Answer>;
};

/** As ids come in; whether there is one is another question. */
export const idText = Type.String({ minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9._-]+$' });

export type MakeEndpoint = ReturnType<typeof createEndpointMaker>;

const ids = createIds();

export function createEndpointMaker({
  platform,
  users,
}: {
  readonly platform: Pick<WebContext, 'handle'>;
  readonly users: WebUsers;
}) {
  return <
    Name extends EndpointName,
    Params extends TObject = TObject,
    Query extends TObject = TObject,
    Body extends TSchema = TSchema,
  >(
    name: Name,
    definition: EndpointDefinition<Name, Params, Query, Body>,
  ): Route => {
    const { method, path, rule } = endpoints[name];
    return route<Params, Query, Body>({
      ...definition,
      method,
      path,
      access: 'known',
      errors: collabErrors,
      ...(method === 'GET'
        ? {}
        : { headersShown: { ...definition.headersShown, ...flowHeadersShown } }),
      async handle(request) {
        const me = await users.of(request.principal);
        return definition.handle(request, {
          me,
          rule,
          send({ id, command, key, correlationId, headers }) {
            const flow = flowOf(request);
            return platform.handle({
              ...flow,
              tenant: me.tenant,
              id,
              command,
              user: { id: me.userId },
              signal: request.signal,
              ...(key === undefined ? {} : { idempotencyKey: key }),
              ...(correlationId === undefined ? {} : { correlationId }),
              ...(headers === undefined ? {} : { headers: { ...flow.headers, ...headers } }),
            });
          },
          newId: (operation) => newId(me, request.headers['idempotency-key'], operation),
        });
      },
    });
  };
}

function newId(
  { tenant, userId }: WebUser,
  given: string | undefined,
  operation: string,
): { readonly id: string; readonly key?: string } {
  if (given === undefined) return { id: ids.next() };
  // Of one user's keys others know nothing.
  const naturalKey = `${userId}|${given}`;
  const key = buildIdempotencyKey({ tenant, service: 'collab', operation, naturalKey });
  return { id: idFromKey(key), key };
}

/** Of endpoints that use `newId`. */
export const repeatableShown = {
  'Idempotency-Key': 'A repeat under the same one gets the first answer, and makes nothing new.',
};

/** The flow that everything that follows belongs to. */
export function flowHeader({ events }: CommandOutcome): Readonly<Record<string, string>> {
  const correlationId = events[0]?.correlationId;
  return correlationId === undefined ? {} : { 'x-correlation-id': correlationId };
}

export interface WebUser {
  /** Of the credentials, never of the request. */
  readonly tenant: string;
  readonly userId: string;
  readonly username: string;
}

export interface WebUsers {
  of(principal: Principal | undefined): Promise<WebUser>;
}

/** Whoever has not asked for a while is looked up again. */
const knownMax = 10_000;

export function createWebUsers({ handle, load }: Pick<WebContext, 'handle' | 'load'>): WebUsers {
  const known = new Map<string, Promise<WebUser>>();
  return {
    async of(principal) {
      const { tenant, userId } = identify(principal);
      const { name, username, email } = principal as Principal;
      // An address that changed has to be told, too.
      const key = JSON.stringify([tenant, userId, username, email]);
      const found = known.get(key);
      if (found !== undefined) return found;
      const user = ensureUser(
        { send: handle, load },
        { tenant, principal: name, username, email },
      ).then((ensured) => ({ tenant, ...ensured }));
      known.set(key, user);
      const [oldest] = known.keys();
      if (known.size > knownMax && oldest !== undefined) known.delete(oldest);
      try {
        return await user;
      } catch (error) {
        known.delete(key);
        throw error;
      }
    },
  };
}

/** Without asking anybody. */
export function identify(principal: Principal | undefined): Omit<WebUser, 'username'> {
  const { tenant, name = '', scopes = [] } = principal ?? {};
  if (tenant === undefined) throw forbidden('this needs credentials of one tenant');
  // What may only read is a machine that looks on, and nobody who speaks.
  if (scopes.length > 0 && scopes.every((scope) => scope === 'read')) {
    throw forbidden("this needs the scope 'use'");
  }
  return { tenant, userId: userIdOf(name) };
}
