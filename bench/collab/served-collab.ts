// A chat server in a separate process, and a hundred connected people, two in each chat: a writer and a
// reader whose screen is observed.

import { Agent, request } from 'node:http';
import { WebSocket } from 'ws';
import { startChild } from '../../src/testing/child-process.ts';

export const clients = 100;
const pairs = clients / 2;

export interface ServedCollabInput {
  /** The file of the database. */
  readonly file: string;
  readonly pairs: number;
  /** The number of messages in the long chat. */
  readonly messages: number;
}

export interface ServedCollabMessage {
  readonly kind: 'listening';
  readonly port: number;
  /** One entry per pair: the chat, and the tokens of writer and reader. */
  readonly chats: readonly { readonly id: string; readonly tokens: readonly [string, string] }[];
  readonly workspaceId: string;
}

/** The updates that the reader's screen must show before a message counts. */
export type Shown = 'chat.message.posted' | 'notification.new' | 'task.updated';

export interface ServedCollab {
  /** Posts into a chat without other writers, and waits for the reader's screen. */
  readonly post: (content: (turn: number) => string, until: readonly Shown[]) => Promise<unknown>;
  readonly get: (path: string) => Promise<unknown>;
  readonly close: () => Promise<void>;
}

interface ShownMessage {
  readonly type: string;
  readonly chatId?: string | undefined;
  readonly message?: { readonly authorId: string } | undefined;
}

export async function startServedCollab(
  script: URL,
  input: Omit<ServedCollabInput, 'pairs'>,
): Promise<ServedCollab> {
  const child = startChild(script, { input: { ...input, pairs } satisfies ServedCollabInput });
  const { port, chats, workspaceId } = await child.message(
    (said): said is ServedCollabMessage => (said as ServedCollabMessage).kind === 'listening',
  );
  const agent = new Agent({ keepAlive: true, maxSockets: pairs });
  const ask = (method: string, path: string, token: string, body?: object): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const sent = request(
        { host: '127.0.0.1', port, agent, method, path, headers },
        (response) => {
          let text = '';
          response.setEncoding('utf8').on('data', (part: string) => (text += part));
          response.on('error', reject).on('end', () => {
            if (response.statusCode === 200 || response.statusCode === 201)
              resolve(JSON.parse(text));
            else reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`));
          });
        },
      );
      sent.on('error', reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });

  const sockets: WebSocket[] = [];
  const free = await Promise.all(
    chats.map(async ({ id, tokens: [writer, reader] }) => {
      /** The updates that the screen must still show. */
      let missing = new Set<string>();
      let seen = (): void => undefined;
      const show = (text: string): void => {
        const { type, chatId, message } = JSON.parse(text) as ShownMessage;
        if (type !== 'notification.new' && chatId !== id) return;
        if (message?.authorId === 'bot') return;
        if (missing.delete(type) && missing.size === 0) seen();
      };
      for (const [token, take] of [
        [writer, (text: string) => void JSON.parse(text)],
        [reader, show],
      ] as const) {
        sockets.push(await connect({ port, token, chatId: id, workspaceId }, take));
      }
      return {
        id,
        writer,
        /** The number of turns so far, for each kind of content. */
        turns: new Map<unknown, number>(),
        whenShown: (until: readonly Shown[]) =>
          new Promise<void>((resolve) => {
            missing = new Set(until);
            seen = resolve;
          }),
      };
    }),
  );

  return {
    async post(content, until) {
      const chat = free.pop();
      if (chat === undefined) throw new Error('more messages are in flight than there are chats');
      const turn = (chat.turns.get(content) ?? 0) + 1;
      chat.turns.set(content, turn);
      const shown = chat.whenShown(until);
      const path = `/api/v1/chats/${chat.id}/messages`;
      const posted = await ask('POST', path, chat.writer, { content: content(turn) });
      await shown;
      free.unshift(chat);
      return posted;
    },
    get: (path) => ask('GET', path, chats[0]?.tokens[0] ?? ''),
    async close() {
      for (const socket of sockets) socket.terminate();
      agent.destroy();
      await child.kill();
    },
  };
}

/** Resolves when both subscriptions are confirmed. */
async function connect(
  who: {
    readonly port: number;
    readonly token: string;
    readonly chatId: string;
    readonly workspaceId: string;
  },
  take: (text: string) => void,
): Promise<WebSocket> {
  const { port, token, chatId, workspaceId } = who;
  const socket = new WebSocket(`ws://127.0.0.1:${port}/ws?token=${token}`);
  await new Promise<void>((resolve, reject) => {
    const waiting = new Set(['subscribed.chat', 'subscribed.workspace']);
    socket.on('error', reject);
    socket.on('message', (data: Buffer) => {
      const { type } = JSON.parse(data.toString()) as { type: string };
      if (type === 'connected') {
        socket.send(JSON.stringify({ type: 'subscribe.chat', chatId }));
        socket.send(JSON.stringify({ type: 'subscribe.workspace', workspaceId }));
      }
      if (waiting.delete(type) && waiting.size === 0) resolve();
    });
  });
  socket.removeAllListeners('message');
  socket.on('message', (data: Buffer) => take(data.toString()));
  return socket;
}
