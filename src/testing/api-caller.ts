// A client with a token, for tests of a served platform: HTTP, server-sent events and WebSocket.

import { eventually } from './assertions.ts';

export interface ApiResponse<Body = Readonly<Record<string, unknown>>> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

export interface ReceivedEvent {
  readonly event: string;
  readonly id: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface SocketMessage {
  readonly type: string;
  readonly position?: string;
  readonly [field: string]: unknown;
}

export interface ApiSocket extends Disposable {
  /** All messages so far. */
  readonly received: readonly SocketMessage[];
  send(message: object): void;
  /** Waits for the first message that matches. */
  receive(type: string, matches?: (message: SocketMessage) => boolean): Promise<SocketMessage>;
  closed(): Promise<void>;
}

export interface ApiCaller {
  readonly token: string;
  ask<Body = Readonly<Record<string, unknown>>>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<ApiResponse<Body>>;
  connect(): ApiSocket;
  /** Reads server-sent events until this many have arrived. */
  follow(path: string, count: number): Promise<readonly ReceivedEvent[]>;
}

/**
 * Calls a served platform with a token.
 *
 * @example
 * import { createPlatform } from 'millrace/platform';
 * import { startApi } from 'millrace/server/api';
 * import { apiCaller } from 'millrace/testing';
 *
 * await using platform = await createPlatform({ engines: { store: 'memory:' } });
 * await using server = await startApi(platform, { port: 0 });
 * const { secret } = await platform.tokens.create({ name: 'shop', scopes: ['read'], tenant: 'core' });
 * console.log((await apiCaller(server.url, secret).ask('GET', '/api/v1/events')).status); // 200
 */
export function apiCaller(url: string, token: string): ApiCaller {
  const authorization = `Bearer ${token}`;
  return {
    token,
    async ask(method, path, body, headers = {}) {
      const response = await fetch(url + path, {
        method,
        headers: {
          authorization,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      const parsed = JSON.parse(text === '' ? '{}' : text) as never;
      return { status: response.status, headers: response.headers, body: parsed };
    },
    connect: () => socketOf(url, token),
    async follow(path, count) {
      const ending = new AbortController();
      const { signal } = ending;
      const response = await fetch(url + path, { headers: { authorization }, signal });
      const found: ReceivedEvent[] = [];
      let rest = '';
      const decoder = new TextDecoder();
      for await (const chunk of response.body ?? []) {
        rest += decoder.decode(chunk as Uint8Array, { stream: true });
        const blocks = rest.split('\n\n');
        rest = blocks.pop() ?? '';
        found.push(...blocks.filter((each) => !each.startsWith(':')).map(parseBlock));
        if (found.length >= count) break;
      }
      ending.abort();
      return found;
    },
  };
}

function parseBlock(block: string): ReceivedEvent {
  const field = (name: string): string => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1] ?? '';
  return { event: field('event'), id: field('id'), data: JSON.parse(field('data')) as never };
}

function socketOf(url: string, token: string): ApiSocket {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/ws?token=${token}`);
  const received: SocketMessage[] = [];
  let isClosed = false;
  socket.addEventListener('message', ({ data }) => {
    received.push(JSON.parse(String(data)) as SocketMessage);
  });
  socket.addEventListener('close', () => (isClosed = true));
  return {
    received,
    send: (message) => socket.send(JSON.stringify(message)),
    async receive(type, matches = () => true) {
      const isWanted = (each: SocketMessage): boolean => each.type === type && matches(each);
      await eventually(() => received.some(isWanted));
      return received.find(isWanted) as SocketMessage;
    },
    closed: () => eventually(() => isClosed),
    [Symbol.dispose]: () => socket.close(),
  };
}
