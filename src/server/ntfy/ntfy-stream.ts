// A reader over HTTP: headers once, then chunks straight to the connection. Whoever leaves too much unread
// is cut off, and comes again with what it has.

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { controlMessage } from '../../notify/topic-message.ts';
import type { TopicReader } from '../../notify/topic-hub.ts';
import type { ReadRequest, Topics } from '../../notify/topics.ts';
import { anyOrigin } from './ntfy-answer.ts';
import {
  chunkOf,
  contentTypes,
  encodeMessage,
  streamBatch,
  type StreamForm,
} from './ntfy-forms.ts';
import type { Keepalives } from './ntfy-keepalives.ts';

/** What may wait for one reader. */
export const unreadBytesMax = 4_194_304;

export interface Following {
  readonly request: ReadRequest;
  /** The topics as the path says them. */
  readonly said: string;
  readonly filter: TopicReader['filter'];
  readonly mayRead: () => boolean;
  readonly keepalives: Keepalives;
  readonly nowMs: () => number;
}

/** Resolves when it is over. */
export async function followOverHttp(
  topics: Topics,
  form: StreamForm,
  {
    asked,
    response,
    following,
  }: {
    readonly asked: IncomingMessage;
    readonly response: ServerResponse;
    readonly following: Following;
  },
): Promise<void> {
  const { request, said, filter, mayRead, keepalives, nowMs } = following;
  const { socket } = asked;
  // Behind another answer on the same connection, which may have no end: it is over with that connection.
  if (response.socket === null) await eitherOf(once(response, 'socket'), socket);
  if (response.socket === null || socket.destroyed) return;
  const isChunked = asked.httpVersion !== '1.0';
  const send = (bytes: Buffer): void => {
    if (socket.writableLength > unreadBytesMax) socket.destroy();
    else socket.write(bytes);
  };
  const sendText = (text: string): void => send(isChunked ? chunkOf(text) : Buffer.from(text));
  const over = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  let isCut = false;
  const reader: TopicReader = {
    topics: request.topics,
    filter,
    mayRead,
    deliver: (batch) => send(streamBatch(form, batch, isChunked)),
    cut() {
      isCut = true;
      if (response.headersSent) response.end();
      else response.destroy();
      socket.destroySoon();
    },
  };
  using held = new DisposableStack();
  const opened = (): void => {
    response.writeHead(200, [...anyOrigin, 'Content-Type', contentTypes[form]]);
    response.flushHeaders();
    sendText(encodeMessage(form, controlMessage('open', said, nowMs())));
  };
  held.use(await topics.follow(reader, request, opened));
  const beat = (): void =>
    sendText(encodeMessage(form, controlMessage('keepalive', said, nowMs())));
  held.use(keepalives.add(beat));
  if (!isCut && !socket.destroyed) await over;
}

/** Resolves when that has happened, or when the connection is gone. */
async function eitherOf(event: Promise<unknown>, socket: Socket): Promise<void> {
  if (socket.destroyed) return;
  const gone = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  await Promise.race([event, gone]);
}
