// The servers of the product: HTTP API, ntfy clients and the KurrentDB protocol.

import { resolve } from 'node:path';
import { acceptedHosts } from '../server/http/reach.ts';
import type { Platform } from '../platform/create-platform.ts';
import type { NtfyHandler } from '../server/topics/index.ts';
import type { Telemetry } from '../telemetry/index.ts';
import type { CommandContext } from './command.ts';
import { packageVersion } from './package-version.ts';
import type { Settings } from './product-settings.ts';

/** Certificates and the token of the first start, in the working directory. */
export const dataFolder = '.millrace';

/** What the parts of a running product share. */
export interface Product {
  readonly context: CommandContext;
  readonly settings: Settings;
  readonly telemetry: Telemetry;
  readonly platform: Platform;
  readonly opened: AsyncDisposableStack;
}

export interface ServerUrls {
  http?: string;
  ntfy?: string;
  kurrent?: string;
}

interface Server extends AsyncDisposable {
  readonly url: string;
}

/** All servers close at the same time, and before everything that was opened earlier. */
export async function startServers(product: Product): Promise<Readonly<ServerUrls>> {
  const { settings, opened } = product;
  const { serves, ntfyPort } = settings;
  const urls: ServerUrls = {};
  const hasTopics = serves.ntfy && product.platform.engines.has('bus');
  const ntfy = hasTopics ? opened.use(await openNtfyHandler(product, urls)) : undefined;
  const servers: AsyncDisposable[] = [];
  opened.defer(async () => {
    await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()));
  });
  const keep = (server: Server): string => {
    servers.push(server);
    return server.url;
  };
  if (serves.api) {
    const shared = ntfyPort === undefined ? ntfy : undefined;
    urls.http = keep(await startHttpApi(product, shared));
    if (shared !== undefined) urls.ntfy = urls.http;
  }
  if (ntfy !== undefined && ntfyPort !== undefined) {
    const { startNtfyServer } = await import('../server/topics/index.ts');
    const { host, tls } = settings;
    const options = { host, hosts: hostsOf(settings), port: ntfyPort, tls };
    urls.ntfy = keep(await startNtfyServer(ntfy, options));
  }
  if (serves.kurrent) {
    const { startKurrentProtocol } = await import('./kurrent-protocol.ts');
    const folder = resolve(product.context.cwd, dataFolder);
    urls.kurrent = keep(await startKurrentProtocol(product.platform, settings, folder));
  }
  return urls;
}

/** The names of this server in the `Host` headers of clients. */
function hostsOf({ host, config: { server, notify } }: Settings): readonly string[] {
  const { behindProxy, baseUrl } = notify ?? {};
  return acceptedHosts({ host, hosts: server?.hosts, behindProxy, baseUrl });
}

async function openNtfyHandler(
  { context, settings, telemetry, platform }: Product,
  urls: Readonly<ServerUrls>,
): Promise<NtfyHandler> {
  const { openNtfy } = await import('../server/topics/index.ts');
  return openNtfy(platform, {
    settings: settings.config.notify,
    host: settings.host,
    hosts: settings.config.server?.hosts,
    corsOrigins: settings.config.server?.corsOrigins,
    cwd: context.cwd,
    url: () => urls.ntfy,
    version: packageVersion(),
    observer: telemetry.observer,
  });
}

async function startHttpApi(
  { settings, telemetry, platform }: Product,
  ntfy: NtfyHandler | undefined,
): Promise<Server> {
  const { startApi } = await import('../server/api/start-api.ts');
  const { config, host, port, tls, shutdown } = settings;
  return startApi(platform, {
    ...config.server,
    host,
    hosts: hostsOf(settings),
    port,
    tls,
    limits: { ...config.server?.limits, drainMsMax: shutdown.requestsMs },
    version: packageVersion(),
    observer: telemetry.observer,
    metrics: (format) => telemetry.metrics(format),
    fallbackHandler: ntfy,
  });
}
