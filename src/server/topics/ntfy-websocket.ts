// A reader over WebSocket: one frame per message, and pings in between. Frames from the client are ignored.

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket, WebSocketServer } from 'ws';
import { http } from '../../foundation/http.ts';
import { controlMessage, messageFrameJson, type TopicMessage } from '../../topics/topic-message.ts';
import type { TopicReader } from '../../topics/topic-hub.ts';
import type { Topics } from '../../topics/topics.ts';
import { openWebSocketServer } from '../http/ws-server.ts';
import { unreadBytesMax, type Following } from './ntfy-stream.ts';

export interface NtfyWebSockets {
  /** Resolves when the connection has ended. */
  follow(
    topics: Topics,
    upgrade: {
      readonly request: IncomingMessage;
      readonly socket: Duplex;
      readonly head: Buffer;
      readonly following: Following;
      readonly isPoll: boolean;
    },
  ): Promise<void>;
}

/** Clients send pongs only. */
const receivedBytesMax = 64;

export function createNtfyWebSockets(): NtfyWebSockets {
  let server: Promise<WebSocketServer> | undefined;

  return {
    async follow(topics, { request, socket, head, following, isPoll }) {
      const { request: reading, topicsInPath, filter, mayRead, keepalives, nowMs } = following;
      server ??= openWebSocketServer({
        maxPayload: receivedBytesMax,
        handleProtocols: () => false,
      });
      const upgrading = await server;
      const client = await new Promise<WebSocket | undefined>((resolve) => {
        // `ws` has no callback for a rejected handshake or a client that has disconnected.
        socket.once('close', () => resolve(undefined));
        if (socket.destroyed) resolve(undefined);
        else upgrading.handleUpgrade(request, socket, head, (accepted) => resolve(accepted));
      });
      if (client === undefined) return;
      const closed = new Promise<void>((resolve) => client.once('close', () => resolve()));
      client.on('error', () => client.terminate());
      const send = (frames: readonly Buffer[]): void => {
        if (client.bufferedAmount > unreadBytesMax) return client.terminate();
        socket.cork();
        for (const frame of frames) client.send(frame, { binary: false });
        socket.uncork();
      };
      if (isPoll) {
        const kept = await topics.read(reading);
        send(kept.filter((message) => filter?.(message) ?? true).map(contentOf));
        client.close(1_000);
        return;
      }
      const reader: TopicReader = {
        topics: reading.topics,
        filter,
        mayRead,
        deliver: (batch) =>
          send(batch.once('ws', (all) => all.map(({ message }) => contentOf(message)))),
        cut: () => client.close(1_001),
      };
      let isAlive = true;
      client.on('pong', () => (isAlive = true));
      using resources = new DisposableStack();
      const opened = (): void => send([contentOf(controlMessage('open', topicsInPath, nowMs()))]);
      resources.use(await topics.follow(reader, reading, opened));
      const beat = (): void => {
        if (!isAlive) return client.terminate();
        isAlive = false;
        client.ping();
      };
      resources.use(keepalives.add(beat));
      await closed;
    },
  };
}

function contentOf(message: TopicMessage): Buffer {
  return Buffer.from(`${messageFrameJson(message)}\n`);
}

/** Answers with a bare status, as ntfy does: WebSocket clients show nothing else. */
export function rejectUpgrade(socket: Duplex, status: number): void {
  if (socket.destroyed) return;
  const head = [
    `HTTP/1.1 ${status} ${http.STATUS_CODES[status] ?? ''}`,
    'connection: close',
    'content-length: 0',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n`, () => socket.destroy());
}
