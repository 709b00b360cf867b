// A real server with the module, for tests: users with tokens, over HTTP and WebSocket.

import { createHmac } from 'node:crypto';
import { createPlatform, type Platform } from 'millrace/platform';
import { startApi, type ApiServer } from 'millrace/server/api';
import {
  apiCaller,
  eventually,
  type ApiResponse,
  type ApiSocket,
  type SocketMessage,
} from 'millrace/testing';
import { collab } from '../collab.ts';

export type { SocketMessage };
export type PersonResponse<Body = Readonly<Record<string, unknown>>> = ApiResponse<Body>;
/** A WebSocket of a user. */
export type Screen = ApiSocket;
/** Polls for at most a minute. */
export const until = eventually;

export interface Person {
  readonly name: string;
  readonly token: string;
  get<Body = Readonly<Record<string, unknown>>>(path: string): Promise<PersonResponse<Body>>;
  send<Body = Readonly<Record<string, unknown>>>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<PersonResponse<Body>>;
  connect(): Screen;
}

export interface Rig extends AsyncDisposable {
  readonly platform: Platform;
  readonly server: ApiServer;
  /** A new user with a token. */
  person(name: string, tenant?: string): Promise<Person>;
  /** A user of an identity provider, with `hasJwt`. */
  known(claims: Readonly<Record<string, unknown>>): Person;
  /** Creates a workspace with these members. */
  workspace(of: Person, ...members: readonly Person[]): Promise<string>;
  chat(of: Person, workspaceId: string, more?: object): Promise<string>;
}

const jwt = { secret: 'a secret of at least thirty-two bytes', audience: 'collab' };

/** A JWT of an identity provider. */
function jwtOf(claims: object): string {
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
  const exp = Math.floor(Date.now() / 1_000) + 3_600;
  const content = `${encode({ alg: 'HS256' })}.${encode({ aud: jwt.audience, exp, ...claims })}`;
  return `${content}.${createHmac('sha256', jwt.secret).update(content).digest('base64url')}`;
}

/** With JWTs, a token is not a user. */
export async function openRig({ hasJwt = false } = {}): Promise<Rig> {
  await using stack = new AsyncDisposableStack();
  const engines = { store: 'memory:' };
  const platform = stack.use(await createPlatform({ engines, modules: [collab()] }));
  await platform.start();
  const server = stack.use(await startApi(platform, { port: 0, jwt: hasJwt ? jwt : undefined }));
  const all = stack.move();
  return {
    platform,
    server,
    async person(name, tenant = 'core') {
      const wanted = { name: `${name}-${tenant}`, scopes: ['use'] as const, tenant };
      const { secret } = await platform.tokens.create(wanted);
      return personOf(server, wanted.name, secret);
    },
    known: (claims) => personOf(server, String(claims['sub']), jwtOf(claims)),
    async workspace(of, ...members) {
      const created = await of.send<{ workspaceId: string }>('POST', '/api/v1/workspaces', {
        name: 'Mill',
      });
      const { workspaceId } = created.body;
      for (const member of members) {
        await member.get('/api/v1/users/me');
        const path = `/api/v1/workspaces/${workspaceId}/members`;
        await of.send('POST', path, { username: member.name });
      }
      return workspaceId;
    },
    async chat(of, workspaceId, more = {}) {
      const body = { title: 'Wheel', ...more };
      const path = `/api/v1/workspaces/${workspaceId}/chats`;
      return (await of.send<{ chatId: string }>('POST', path, body)).body.chatId;
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

export function personOf({ url }: Pick<ApiServer, 'url'>, name: string, token: string): Person {
  const caller = apiCaller(url, token);
  return {
    name,
    token,
    send: (method, path, body, headers) => caller.ask(method, path, body, headers),
    get: (path) => caller.ask('GET', path),
    connect: () => caller.connect(),
  };
}
