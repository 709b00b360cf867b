// A reader over HTTP: a response without an end, in one of ntfy's three formats. A reader that leaves too many
// bytes unread is disconnected, and continues with `since` when it reconnects.

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { controlMessage, messageJson, type TopicMessage } from '../../topics/topic-message.ts';
import type { TopicReader } from '../../topics/topic-hub.ts';
import type { ReadRequest, Topics } from '../../topics/topics.ts';
import { anyOrigin } from './ntfy-response.ts';

export type StreamForm = 'json' | 'sse' | 'raw';

export const contentTypes: Readonly<Record<StreamForm, string>> = {
  json: 'application/x-ndjson; charset=utf-8',
  sse: 'text/event-stream; charset=utf-8',
  raw: 'text/plain; charset=utf-8',
};

/** Bytes that may wait for one reader. */
export const unreadBytesMax = 4_194_304;

const eventsWithoutName = new Set(['message', 'message_delete', 'message_clear']);

export function encodeMessage(form: StreamForm, message: TopicMessage): string {
  if (form === 'json') return `${messageJson(message)}\n`;
  if (form === 'raw') {
    return message.event === 'message'
      ? `${(message.message ?? '').replaceAll('\n', ' ')}\n`
      : '\n';
  }
  const data = `data: ${messageJson(message)}\n\n`;
  return eventsWithoutName.has(message.event) ? data : `event: ${message.event}\n${data}`;
}

export interface Following {
  readonly request: ReadRequest;
  /** The topics as the path spells them. */
  readonly topicsInPath: string;
  readonly filter: TopicReader['filter'];
  readonly mayRead: () => boolean;
  readonly keepalives: Keepalives;
  readonly nowMs: () => number;
}

/** Resolves when the connection has ended. */
export async function followOverHttp(
  topics: Topics,
  form: StreamForm,
  {
    incoming,
    response,
    following,
  }: {
    readonly incoming: IncomingMessage;
    readonly response: ServerResponse;
    readonly following: Following;
  },
): Promise<void> {
  const { request, topicsInPath, filter, mayRead, keepalives, nowMs } = following;
  const { socket } = incoming;
  // A pipelined request waits for the response before it, which may never end.
  if (response.socket === null) await socketOrClose(response, socket);
  if (response.socket === null || socket.destroyed) return;
  const send = (content: Buffer | string): void => {
    if (response.writableEnded || response.destroyed) return;
    if (response.writableLength > unreadBytesMax) socket.destroy();
    else response.write(content);
  };
  const sendControl = (event: 'keepalive' | 'open'): void =>
    send(encodeMessage(form, controlMessage(event, topicsInPath, nowMs())));
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  let isCut = false;
  const reader: TopicReader = {
    topics: request.topics,
    filter,
    mayRead,
    deliver(batch) {
      const encode = ({ message }: { readonly message: TopicMessage }): string =>
        encodeMessage(form, message);
      send(batch.once(form, (messages) => Buffer.from(messages.map(encode).join(''))));
    },
    cut() {
      isCut = true;
      if (response.headersSent) response.end();
      else response.destroy();
      socket.destroySoon();
    },
  };
  using resources = new DisposableStack();
  const opened = (): void => {
    response.writeHead(200, [...anyOrigin, 'Content-Type', contentTypes[form]]);
    sendControl('open');
  };
  resources.use(await topics.follow(reader, request, opened));
  resources.use(keepalives.add(() => sendControl('keepalive')));
  if (!isCut && !socket.destroyed) await closed;
}

/** Resolves when the response gets its socket, or when the connection closes. */
async function socketOrClose(response: ServerResponse, socket: Socket): Promise<void> {
  if (socket.destroyed) return;
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  await Promise.race([once(response, 'socket'), closed]);
}

/** Periodic calls that keep connections alive: one timer for all readers. */
export interface Keepalives extends Disposable {
  /** Calls `beat` every interval until the result is disposed. */
  add(beat: () => void): Disposable;
}

const slots = 16;

export function createKeepalives(everyMs: number): Keepalives {
  const rounds = Array.from({ length: slots }, () => new Set<() => void>());
  let at = 0;
  const timer = setInterval(
    () => {
      at = (at + 1) % slots;
      for (const beat of rounds[at] ?? []) beat();
    },
    Math.max(1, Math.floor(everyMs / slots)),
  );
  timer.unref();
  return {
    add(beat) {
      const round = rounds[at];
      round?.add(beat);
      return { [Symbol.dispose]: () => void round?.delete(beat) };
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}
