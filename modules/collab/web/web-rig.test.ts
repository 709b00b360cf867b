// The module behind a real server, for tests: people with tokens, over HTTP and WebSocket.

import { createHmac } from 'node:crypto';
import { createPlatform, type Platform } from 'millrace/platform';
import { startApi, type ApiServer } from 'millrace/server/api';
import { collab } from '../collab.ts';

export interface Told {
  readonly type: string;
  readonly position?: string;
  readonly [field: string]: unknown;
}

export interface Answer<Body = Readonly<Record<string, unknown>>> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

export interface Person {
  readonly name: string;
  readonly token: string;
  get<Body = Readonly<Record<string, unknown>>>(path: string): Promise<Answer<Body>>;
  send<Body = Readonly<Record<string, unknown>>>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Answer<Body>>;
  connect(): Screen;
}

/** A WebSocket of a person. */
export interface Screen extends Disposable {
  readonly told: readonly Told[];
  say(message: object): void;
  /** The first that fits, once it is there. */
  hear(type: string, fits?: (told: Told) => boolean): Promise<Told>;
  closed(): Promise<void>;
}

export interface Rig extends AsyncDisposable {
  readonly platform: Platform;
  readonly server: ApiServer;
  /** A new one for each name. */
  person(name: string, tenant?: string): Promise<Person>;
  /** Somebody whom an identity provider knows. */
  known(claims: Readonly<Record<string, unknown>>): Person;
  /** Of this person, with these others in it. */
  workspace(of: Person, ...members: readonly Person[]): Promise<string>;
  chat(of: Person, workspaceId: string, more?: object): Promise<string>;
}

const jwt = { secret: 'a secret of at least thirty-two bytes', audience: 'collab' };

/** As an identity provider would make it. */
function jwtOf(claims: object): string {
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
  const exp = Math.floor(Date.now() / 1_000) + 3_600;
  const content = `${encode({ alg: 'HS256' })}.${encode({ aud: jwt.audience, exp, ...claims })}`;
  return `${content}.${createHmac('sha256', jwt.secret).update(content).digest('base64url')}`;
}

export async function openRig(): Promise<Rig> {
  await using stack = new AsyncDisposableStack();
  const engines = { store: 'memory:' };
  const platform = stack.use(await createPlatform({ engines, modules: [collab()] }));
  await platform.start();
  const server = stack.use(await startApi(platform, { port: 0, jwt }));
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
      const made = await of.send<{ workspaceId: string }>('POST', '/api/v1/workspaces', {
        name: 'Mill',
      });
      const { workspaceId } = made.body;
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

type Address = Pick<ApiServer, 'url'>;

export function personOf(server: Address, name: string, token: string): Person {
  const ask = async (
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer<never>> => {
    const answer = await fetch(server.url + path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return {
      status: answer.status,
      headers: answer.headers,
      body: JSON.parse(text === '' ? '{}' : text) as never,
    };
  };
  return {
    name,
    token,
    send: ask,
    get: (path) => ask('GET', path),
    connect: () => screenOf(server, token),
  };
}

function screenOf(server: Address, token: string): Screen {
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/ws?token=${token}`);
  const told: Told[] = [];
  let isClosed = false;
  socket.addEventListener('message', ({ data }) => told.push(JSON.parse(String(data)) as Told));
  socket.addEventListener('close', () => (isClosed = true));
  return {
    told,
    say: (message) => socket.send(JSON.stringify(message)),
    async hear(type, fits = () => true) {
      const isIt = (each: Told): boolean => each.type === type && fits(each);
      await until(() => told.some(isIt));
      return told.find(isIt) as Told;
    },
    closed: () => until(() => isClosed),
    [Symbol.dispose]: () => socket.close(),
  };
}

/** Looks again and again, for a minute at most. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 60_000;
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error('it did not happen within a minute');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
