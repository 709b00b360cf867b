// A temporary HTTP server in the process of the test: stores requests and responds as the test wants.

import { createServer as createHttpServer, type RequestListener } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { reservePort } from './reserve-port.ts';

export interface ReceivedRequest {
  readonly method: string;
  /** The path with its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export type AnswerRequest = (request: ReceivedRequest, response: ServerResponse) => void;

export interface HttpReceiverOptions {
  /** The first response. Default: 204. */
  readonly answer?: AnswerRequest | undefined;
  /** Listens with TLS. */
  readonly tls?: { readonly key: string; readonly cert: string } | undefined;
}

export interface HttpReceiver extends AsyncDisposable {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  readonly port: number;
  /** All complete requests so far, oldest first. */
  readonly requests: readonly ReceivedRequest[];
  /** The number of connections opened so far. */
  readonly connections: number;
  /** Changes the response; calling the result restores the previous one. */
  answer(answer: AnswerRequest): () => void;
  /** Closes all connections and stops listening, until the result listens again on the same port. */
  away(): Promise<() => Promise<void>>;
}

/**
 * Starts an HTTP server for a test.
 *
 * @example
 * import { startHttpReceiver } from 'millrace/testing';
 *
 * await using receiver = await startHttpReceiver();
 * const back = receiver.answer((_request, response) => response.writeHead(503).end());
 * console.log((await fetch(receiver.url, { method: 'POST', body: '{}' })).status); // 503
 * back();
 * console.log(receiver.requests.length); // 1
 */
export async function startHttpReceiver(options: HttpReceiverOptions = {}): Promise<HttpReceiver> {
  const requests: ReceivedRequest[] = [];
  let connections = 0;
  let current: AnswerRequest =
    options.answer ?? ((_request, response) => response.writeHead(204).end());

  async function receive(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = incoming;
    const request = { method, path: url, headers, body: (await buffer(incoming)).toString() };
    requests.push(request);
    current(request, response);
  }
  const listener: RequestListener = (incoming, response) => {
    // Many tests disconnect in the middle of a request.
    receive(incoming, response).catch(() => response.destroy());
  };
  const server =
    options.tls === undefined
      ? createHttpServer(listener)
      : createHttpsServer(options.tls, listener);
  server.on('connection', () => {
    connections += 1;
  });

  const reserved = await reservePort();
  const { host, port } = reserved;
  const listen = (): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, () => {
        server.off('error', reject);
        resolve();
      });
    });
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  await listen();

  return {
    url: `${options.tls === undefined ? 'http' : 'https'}://${host}:${port}`,
    port,
    requests,
    get connections() {
      return connections;
    },
    answer(answer) {
      const before = current;
      current = answer;
      return () => {
        current = before;
      };
    },
    async away() {
      await close();
      return listen;
    },
    async [Symbol.asyncDispose]() {
      if (server.listening) await close();
      await reserved[Symbol.asyncDispose]();
    },
  };
}
