// A real HTTP server that deduplicates by key and records the messages it received.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { tellParent } from '../../src/testing/child-process.ts';

interface Received {
  readonly idempotencyKey: string;
  readonly orderingKey?: string | undefined;
  readonly at: number;
}

export interface Receiver extends AsyncDisposable {
  readonly url: string;
  /** First deliveries, in order. */
  readonly effects: readonly Received[];
  readonly repeats: number;
}

/** Sends a message as the processes of these tests do, and reports it to the parent. */
export async function sendTo(url: string, received: Received, signal: AbortSignal): Promise<void> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(received), signal });
  await response.text();
  tellParent('delivered');
}

export async function startReceiver(): Promise<Receiver> {
  const keys = new Set<string>();
  const effects: Received[] = [];
  let repeats = 0;
  const server = createServer((request, response) => void take(request, response));

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const received = JSON.parse(await text(request)) as Received;
      if (keys.has(received.idempotencyKey)) repeats += 1;
      else effects.push(received);
      keys.add(received.idempotencyKey);
      response.end();
    } catch {
      // The sender was killed in the middle of the request.
      response.destroy();
    }
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    effects,
    get repeats() {
      return repeats;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
