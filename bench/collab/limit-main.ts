// The limit: bare Fastify, one durable insert into SQLite, and the message to the followers of the chat. The server reads
// nothing, checks no credentials, and causes no follow-up work.

import type { Server } from 'node:http';
import { DatabaseSync } from 'node:sqlite';
import { WebSocketServer, type WebSocket } from 'ws';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { importPeer } from '../peers.ts';
import type { ServedCollabInput, ServedCollabMessage } from './served-collab.ts';

interface Fastify {
  readonly server: Server;
  post(
    path: string,
    handle: (
      request: { readonly params: { readonly id: string }; readonly body: { content: string } },
      reply: { code(status: number): void },
    ) => unknown,
  ): void;
  listen(options: { readonly host: string; readonly port: number }): Promise<string>;
}

const { file, pairs } = childInput() as ServedCollabInput;
const { default: fastify } = await importPeer<{ readonly default: () => Fastify }>('fastify');
const database = new DatabaseSync(file);
database.exec(`
  pragma journal_mode = wal;
  pragma synchronous = full;
  create table messages (sequence integer primary key, chat text not null, content text not null) strict;
`);
const insert = database.prepare('insert into messages (chat, content) values (?, ?)');

const server = fastify();
const followers = new Map<string, WebSocket[]>();
new WebSocketServer({ server: server.server, path: '/ws' }).on('connection', (socket) => {
  socket.send(JSON.stringify({ type: 'connected' }));
  socket.on('message', (data: Buffer) => {
    const { type, chatId } = JSON.parse(data.toString()) as { type: string; chatId?: string };
    if (chatId !== undefined) followers.set(chatId, [...(followers.get(chatId) ?? []), socket]);
    socket.send(JSON.stringify({ type: type.replace('subscribe', 'subscribed') }));
  });
});
server.post('/api/v1/chats/:id/messages', ({ params: { id: chatId }, body }, reply) => {
  const { lastInsertRowid } = insert.run(chatId, body.content);
  const message = { messageId: String(lastInsertRowid), chatId, authorId: 'p', ...body };
  const text = JSON.stringify({ type: 'chat.message.posted', chatId, message });
  for (const socket of followers.get(chatId) ?? []) socket.send(text);
  reply.code(201);
  return message;
});
const url = await server.listen({ host: '127.0.0.1', port: 0 });
const chats = Array.from({ length: pairs }, (_, at) => ({
  id: `c${at}`,
  tokens: ['none', 'none'] as const,
}));
const port = Number(new URL(url).port);
tellParent({ kind: 'listening', port, chats, workspaceId: 'w' } satisfies ServedCollabMessage);
