// A reader over WebSocket: frames with messages, pings in between, and nothing that it says is listened to.

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Socket } from 'node:net';
import type { WebSocket, WebSocketServer } from 'ws';
import { loadDriver } from '../../foundation/load-driver.ts';
import { controlMessage, messageFrameJson } from '../../notify/topic-message.ts';
import type { TopicReader } from '../../notify/topic-hub.ts';
import type { Topics } from '../../notify/topics.ts';
import { frameBatch, frameOf } from './ntfy-forms.ts';
import { unreadBytesMax, type Following } from './ntfy-stream.ts';

export interface NtfyWebSockets {
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

/** Clients have nothing to say but pongs. */
const heardBytesMax = 64;

export function createNtfyWebSockets(): NtfyWebSockets {
  let server: Promise<WebSocketServer> | undefined;

  async function open(): Promise<WebSocketServer> {
    const { WebSocketServer: Server } = await loadDriver('ws', () => import('ws'));
    return new Server({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: heardBytesMax,
      handleProtocols: () => false,
    });
  }

  return {
    async follow(topics, { request, socket, head, following, isPoll }) {
      const { request: reading, said, filter, mayRead, keepalives, nowMs } = following;
      server ??= open();
      const upgrading = await server;
      const client = await new Promise<WebSocket | undefined>((resolve) => {
        // Who is not let in, or is gone by now, is not told of: its connection ends.
        socket.once('close', () => resolve(undefined));
        if (socket.destroyed) resolve(undefined);
        else upgrading.handleUpgrade(request, socket, head, (accepted) => resolve(accepted));
      });
      if (client === undefined) return;
      const over = new Promise<void>((resolve) => client.once('close', () => resolve()));
      client.on('error', () => client.terminate());
      const connection = socket as Socket;
      const send = (bytes: Buffer): void => {
        if (connection.writableLength > unreadBytesMax) client.terminate();
        else if (!connection.destroyed) connection.write(bytes);
      };
      if (isPoll) {
        const kept = await topics.read(reading);
        for (const message of kept) {
          if (filter?.(message) ?? true) send(frameOf(`${messageFrameJson(message)}\n`));
        }
        client.close(1_000);
        return;
      }
      const reader: TopicReader = {
        topics: reading.topics,
        filter,
        mayRead,
        deliver: (batch) => send(frameBatch(batch)),
        cut: () => client.close(1_001),
      };
      let isAlive = true;
      client.on('pong', () => (isAlive = true));
      using held = new DisposableStack();
      const opened = (): void => {
        const message = controlMessage('open', said, nowMs());
        send(frameOf(`${messageFrameJson(message)}\n`));
      };
      held.use(await topics.follow(reader, reading, opened));
      const beat = (): void => {
        if (!isAlive) return client.terminate();
        isAlive = false;
        client.ping();
      };
      held.use(keepalives.add(beat));
      await over;
    },
  };
}
