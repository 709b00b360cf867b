// Serves ntfy's API on a separate port.

import type { IncomingMessage } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { http } from '../../foundation/http.ts';
import { MillraceError } from '../../foundation/error.ts';
import { acceptedHosts, acceptsHost, rejectUpgrade } from '../http/reach.ts';
import type { NtfyHandler } from './ntfy-handler.ts';

export interface NtfyServerOptions {
  /** Default: 127.0.0.1. */
  readonly host?: string | undefined;
  /** The names by which clients reach a server on a loopback address, in addition to those of this machine. */
  readonly hosts?: readonly string[] | undefined;
  /** Default: any free port. */
  readonly port?: number | undefined;
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  readonly connectionsMax?: number | undefined;
}

export interface NtfyServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
}

const receiveMsMax = 60_000;
const drainMsMax = 5_000;

/**
 * Serves a handler until the server is disposed.
 *
 * @example
 * import { openTopics } from 'millrace/topics';
 * import { openSqlite } from 'millrace/engines/sqlite';
 * import { createNtfyHandler, startNtfyServer } from 'millrace/server/topics';
 *
 * await using db = await openSqlite('sqlite:.millrace/events.db');
 * await using topics = await openTopics(db.bus);
 * await using handler = createNtfyHandler(topics);
 * await using server = await startNtfyServer(handler, { port: 2586 });
 * console.log(await (await fetch(`${server.url}/alerts`, { method: 'POST', body: 'hello' })).json());
 */
export async function startNtfyServer(
  handler: NtfyHandler,
  { host = '127.0.0.1', port = 0, tls, connectionsMax = 10_000, hosts }: NtfyServerOptions = {},
): Promise<NtfyServer> {
  const accepted = acceptedHosts({ host, hosts });
  const settings = {
    keepAliveTimeout: 65_000,
    connectionsCheckingInterval: 5_000,
    requestTimeout: receiveMsMax,
    headersTimeout: 30_000,
    shouldUpgradeCallback: (request: IncomingMessage) =>
      request.headers.upgrade?.toLowerCase() === 'websocket',
  };
  const server =
    tls === undefined ? http.createServer(settings) : createTlsServer({ ...settings, ...tls });
  server.maxConnections = connectionsMax;
  server.on('request', (request, response) => {
    if (acceptsHost(accepted, request.headers.host)) void handler.serve(request, response);
    else response.writeHead(421).end();
  });
  server.on('upgrade', (request, socket, head) => {
    if (acceptsHost(accepted, request.headers.host)) void handler.upgrade(request, socket, head);
    else rejectUpgrade(socket);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => {
      const text = `cannot listen on ${host}:${port}: ${error.message}`;
      reject(new MillraceError('SERVER_UNAVAILABLE', text, { cause: error }));
    });
    server.listen(port, host, resolve);
  });
  const { port: bound } = server.address() as AddressInfo;
  const shown = host.includes(':') ? `[${host}]` : host;
  return {
    port: bound,
    url: `${tls === undefined ? 'http' : 'https'}://${shown}:${bound}`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      handler.stop();
      server.closeIdleConnections();
      const timer = setTimeout(() => server.closeAllConnections(), drainMsMax);
      await closed;
      clearTimeout(timer);
    },
  };
}
