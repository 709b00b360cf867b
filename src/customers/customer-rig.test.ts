// A platform with the module behind a real server, for tests: programs and customers over HTTP and WebSocket.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../foundation/clock.ts';
import { createPlatform, type Platform } from '../platform/create-platform.ts';
import type { EngineUrls } from '../platform/platform-engines.ts';
import type { TokenScope } from '../platform/token.ts';
import { startApi } from '../server/api/start-api.ts';
import { notifications, type NotificationsOptions } from './customer-module.ts';

export interface Answer<Body = Readonly<Record<string, unknown>>> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

export interface Caller {
  readonly token: string;
  ask<Body = Readonly<Record<string, unknown>>>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Answer<Body>>;
  connect(): Socket;
  /** The events of a stream of server-sent events, until so many are there. */
  follow(path: string, count: number): Promise<readonly SentNews[]>;
}

export interface SentNews {
  readonly event: string;
  readonly id: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface Told {
  readonly type: string;
  readonly [field: string]: unknown;
}

export interface Socket extends Disposable {
  readonly told: readonly Told[];
  say(message: object): void;
  hear(type: string, fits?: (told: Told) => boolean): Promise<Told>;
  closed(): Promise<void>;
}

export interface CustomerRig extends AsyncDisposable {
  readonly platform: Platform;
  readonly url: string;
  caller(name: string, scopes: readonly TokenScope[], tenant?: string): Promise<Caller>;
}

export async function customerRig(
  options: NotificationsOptions & { readonly clock?: Clock; readonly engines?: EngineUrls } = {},
): Promise<CustomerRig> {
  const { clock, engines, ...own } = options;
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'millrace-notify-'));
  stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const platform = stack.use(
    await createPlatform({
      engines: engines ?? { store: 'memory:', bus: `sqlite:${join(folder, 'bus.db')}` },
      modules: [notifications(own)],
      dispatcher: { tickIntervalMs: 50 },
      ...(clock === undefined ? {} : { clock }),
    }),
  );
  await platform.start();
  const { url } = stack.use(await startApi(platform, { port: 0 }));
  const all = stack.move();
  return {
    platform,
    url,
    async caller(name, scopes, tenant = 'core') {
      const { secret } = await platform.tokens.create({ name, scopes, tenant });
      return callerOf(url, secret);
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

export function callerOf(url: string, token: string): Caller {
  const authorization = `Bearer ${token}`;
  return {
    token,
    async ask(method, path, body, headers = {}) {
      const answer = await fetch(url + path, {
        method,
        headers: {
          authorization,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      const parsed = JSON.parse(text === '' ? '{}' : text) as never;
      return { status: answer.status, headers: answer.headers, body: parsed };
    },
    connect: () => socketOf(url, token),
    async follow(path, count) {
      const ending = new AbortController();
      const { signal } = ending;
      const answer = await fetch(url + path, { headers: { authorization }, signal });
      const found: SentNews[] = [];
      let rest = '';
      const decoder = new TextDecoder();
      for await (const chunk of answer.body ?? []) {
        rest += decoder.decode(chunk as Uint8Array, { stream: true });
        const blocks = rest.split('\n\n');
        rest = blocks.pop() ?? '';
        found.push(...blocks.filter((each) => !each.startsWith(':')).map(newsIn));
        if (found.length >= count) break;
      }
      ending.abort();
      return found;
    },
  };
}

function newsIn(block: string): SentNews {
  const field = (name: string): string => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1] ?? '';
  return { event: field('event'), id: field('id'), data: JSON.parse(field('data')) as never };
}

function socketOf(url: string, token: string): Socket {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/ws?token=${token}`);
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
