// Runs the product in one process until the signal fires, for `millrace start` and `millrace dev`.

import { readFile } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { MillraceError } from '../foundation/error.ts';
import { systemClock } from '../foundation/clock.ts';
import { whenAborted } from '../foundation/async/when-aborted.ts';
import { withinTime } from '../foundation/async/within-time.ts';
import type { Platform } from '../platform/create-platform.ts';
import type { OperationsEvents } from '../platform/operations-events.ts';
import { loadConfig, type MillraceConfig } from '../platform/config/millrace-config.ts';
import type { Need } from '../platform/engines/resolve-roles.ts';
import { platformRoles, rolesOf, type PlatformRole } from '../platform/config/platform-role.ts';
import { acceptedHosts, isLoopback } from '../server/http/reach.ts';
import type { NtfyHandler } from '../server/topics/index.ts';
import type { Telemetry } from '../telemetry/index.ts';
import { createFirstToken, liveTokens, readKeptToken } from './admin-token.ts';
import { exitCodes, usage, type CommandContext, type Values } from './command.ts';
import {
  configOption,
  defined,
  durationMs,
  flag,
  oneOf,
  option,
  nonNegativeInteger,
} from './options.ts';
import { packageVersion } from './package-version.ts';
import { displayUrl, storeOption, storeUrl } from './stores.ts';
import { rolesTable } from './terminal/roles-table.ts';

export const productOptions = {
  ...storeOption,
  ...configOption,
  roles: option('a,b', `roles of this process: ${platformRoles.join(', ')} (default: all)`),
  host: option('address', 'address to listen on (default: 127.0.0.1)'),
  port: option('N', 'port of the HTTP API (default: 7480; 0 picks a free one)'),
  'kurrent-port': option('N', 'port of the KurrentDB protocol (default: 2113; 0 picks a free one)'),
  'kurrent-auth': option(
    'how',
    'authentication of the KurrentDB protocol: tokens, over TLS, or none (default: tokens)',
  ),
  tenants: option(
    'a-b,c-d',
    'tenants to add to the directory (those of tokens and JWTs are known)',
  ),
  'no-kurrent': flag('does not serve the KurrentDB protocol'),
  'ntfy-port': option(
    'N',
    'separate port for ntfy clients (default: that of the HTTP API; 0 picks a free one)',
  ),
  'no-ntfy': flag('does not serve ntfy topics'),
  'tls-cert': option('file', 'TLS certificate (PEM)'),
  'tls-key': option('file', 'private key of the certificate (PEM)'),
  'shutdown-timeout': option(
    'duration',
    'maximum time for running work to finish after a stop signal (default: 30s)',
  ),
};

/** Certificates and the token of the first start, in the working directory. */
const dataFolder = '.millrace';

const kurrentAuthOf = oneOf(['tokens', 'none']);

export interface ProductHooks {
  /** Event store to use instead of the configured engines, unless `--store` is given. */
  readonly store?: string | undefined;
  /** Runs when everything is started, instead of creating the first token; returns banner lines. */
  readonly ready?: (running: RunningProduct) => Promise<readonly BannerLine[]>;
  /** Which files of `.millrace` keep the admin token of this command. Default: those of `millrace start`. */
  readonly isOwnToken?: (file: string) => boolean;
  /** Prints one line of JSON instead of the banner. */
  readonly isJson?: boolean;
}

export interface RunningProduct {
  readonly platform: Platform;
  readonly config: MillraceConfig;
  /** The URL of the HTTP API. */
  readonly url: string | undefined;
}

export type BannerLine = readonly [name: string, text: string];

/** A failure in any step closes everything that the steps before have opened. */
export async function runProduct(
  context: CommandContext,
  values: Values<typeof productOptions>,
  hooks: ProductHooks = {},
): Promise<number> {
  const settings = await readSettings(context, values, hooks.store);
  await using opened = new AsyncDisposableStack();
  const inner = await openTelemetry(context, opened);
  const operations = await operationsOf(settings, inner);
  const telemetry = operations === undefined ? inner : { ...inner, observer: operations.observer };
  const platform = await startPlatform(settings, { telemetry, operations }, opened);
  const product: Product = { context, settings, telemetry, platform, opened };
  const urls = await startServers(product);
  if (operations !== undefined) {
    const about = { roles: platform.roles, version: packageVersion() };
    opened.use(await operations.start(await platform.engines.bus(), about));
  }
  await printBanner(product, urls, hooks);
  await whenAborted(context.signal).aborted;
  return shutDown(product, hooks);
}

interface Settings {
  readonly config: MillraceConfig;
  readonly roles: readonly PlatformRole[] | undefined;
  readonly serves: { readonly api: boolean; readonly kurrent: boolean; readonly ntfy: boolean };
  readonly host: string;
  readonly tls: Tls | undefined;
  readonly port: number;
  /** Undefined: ntfy shares the port of the HTTP API. */
  readonly ntfyPort: number | undefined;
  readonly kurrentPort: number;
  readonly kurrentAuth: 'tokens' | 'none';
  readonly tenants: readonly string[];
  readonly shutdown: ShutdownTimes;
}

interface Tls {
  readonly cert: string;
  readonly key: string;
}

interface ShutdownTimes {
  readonly totalMs: number;
  /** The time limit of requests, which close first because they may wait for handlers. */
  readonly requestsMs: number;
  /** The time limit of handlers and deliveries; the rest is for checkpoints, outcomes and leases. */
  readonly workMs: number;
}

/** Reads and checks the command line and the configuration before anything is opened. */
async function readSettings(
  context: CommandContext,
  values: Values<typeof productOptions>,
  ownStore: string | undefined,
): Promise<Settings> {
  const { cwd, env } = context;
  const written = await loadConfig({ cwd, env, ...defined({ file: values.config }) });
  const roles = values.roles === undefined ? written.roles : rolesOf(values.roles);
  const api = roles?.includes('api') ?? true;
  const settings: Settings = {
    config: { ...written, ...enginesOf(context, written, values.store, ownStore) },
    roles,
    serves: {
      api,
      kurrent: api && values['no-kurrent'] !== true,
      ntfy: api && values['no-ntfy'] !== true,
    },
    host: values.host ?? written.server?.host ?? '127.0.0.1',
    tls: await readTls(cwd, values['tls-cert'], values['tls-key']),
    port: nonNegativeInteger('port', values.port) ?? written.server?.port ?? 7480,
    ntfyPort: nonNegativeInteger('ntfy-port', values['ntfy-port']),
    kurrentPort: nonNegativeInteger('kurrent-port', values['kurrent-port']) ?? 2113,
    kurrentAuth: kurrentAuthOf('kurrent-auth', values['kurrent-auth'] ?? 'tokens'),
    tenants: values.tenants?.split(',').map((name) => name.trim()) ?? [],
    shutdown: shutdownTimes(values['shutdown-timeout']),
  };
  if (api && !isLoopback(settings.host)) assertSafeHost(settings);
  return settings;
}

/** The store of the command line or of the command; it replaces all configured engines. */
function enginesOf(
  context: CommandContext,
  { engines }: MillraceConfig,
  given: string | undefined,
  own: string | undefined,
): Pick<MillraceConfig, 'engines'> {
  if (given !== undefined) return { engines: { ...engines, store: storeUrl(context, given) } };
  return own === undefined ? {} : { engines: { store: storeUrl(context, own) } };
}

async function readTls(
  cwd: string,
  certFile: string | undefined,
  keyFile: string | undefined,
): Promise<Tls | undefined> {
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile === undefined || keyFile === undefined) {
    throw usage('--tls-cert and --tls-key must be given together');
  }
  const [cert, key] = await Promise.all([readPem(cwd, certFile), readPem(cwd, keyFile)]);
  return { cert, key };
}

async function readPem(cwd: string, file: string): Promise<string> {
  try {
    return await readFile(resolve(cwd, file), 'utf8');
  } catch (error) {
    throw new MillraceError('CONFIG_INVALID', `cannot read '${file}'`, { cause: error });
  }
}

function shutdownTimes(text: string | undefined): ShutdownTimes {
  const totalMs = durationMs('shutdown-timeout', text) ?? 30_000;
  if (totalMs < 1_000) throw usage('--shutdown-timeout must be at least 1s');
  return { totalMs, requestsMs: totalMs * 0.5, workMs: totalMs * 0.4 };
}

/** Other machines can reach this host: it needs authentication and TLS. */
function assertSafeHost({ host, serves, kurrentAuth, tls }: Settings): void {
  const isOpen = serves.kurrent && kurrentAuth === 'none';
  if (!isOpen && tls !== undefined) return;
  const problem = isOpen
    ? 'would accept connections without authentication: create a token (millrace token create) and remove --kurrent-auth none'
    : 'would send secrets over the network in plain text: pass --tls-cert and --tls-key, or listen on 127.0.0.1 behind a TLS proxy';
  throw new MillraceError('CONFIG_INVALID', `--host ${host} ${problem}`, {
    details: { field: isOpen ? 'kurrent-auth' : 'tls-cert', host },
  });
}

/** Telemetry is opened first and closed last, so that it also reports the shutdown. */
async function openTelemetry(
  { env }: CommandContext,
  opened: AsyncDisposableStack,
): Promise<Telemetry> {
  const { createTelemetry } = await import('../telemetry/index.ts');
  return opened.use(await createTelemetry({ env, version: packageVersion() }));
}

async function operationsOf(
  { config }: Settings,
  { observer }: Telemetry,
): Promise<OperationsEvents | undefined> {
  if (config.operationsEvents !== true) return undefined;
  const { createOperationsEvents } = await import('../platform/operations-events.ts');
  return createOperationsEvents(observer, systemClock);
}

async function startPlatform(
  { config, roles, serves, shutdown, tenants }: Settings,
  {
    telemetry,
    operations,
  }: { readonly telemetry: Telemetry; readonly operations: OperationsEvents | undefined },
  opened: AsyncDisposableStack,
): Promise<Platform> {
  const { createPlatform } = await import('../platform/create-platform.ts');
  const { kurrentStoreOptions } = await import('../server/kurrent/kurrent-server.ts');
  const { platformCollectors } = await import('../telemetry/index.ts');
  const platform = opened.use(
    await createPlatform({
      ...config,
      modules: [
        ...(config.modules ?? []),
        ...(operations === undefined ? [] : [operations.module]),
      ],
      drainMs: shutdown.workMs,
      version: packageVersion(),
      tenants: [...(config.tenants ?? []), ...tenants],
      usesBus: serves.ntfy ? busNeed(config) : undefined,
      ...defined({ roles }),
      ...(serves.kurrent ? kurrentStoreOptions : {}),
      observer: telemetry.observer,
    }),
  );
  telemetry.collect(platformCollectors(platform));
  await platform.start();
  return platform;
}

/** Topics without settings are off if no engine has a bus. */
export function busNeed({ notify }: MillraceConfig): Need {
  return notify === undefined ? 'optional' : 'required';
}

interface Product {
  readonly context: CommandContext;
  readonly settings: Settings;
  readonly telemetry: Telemetry;
  readonly platform: Platform;
  readonly opened: AsyncDisposableStack;
}

interface ServerUrls {
  http?: string;
  ntfy?: string;
  kurrent?: string;
}

interface Server extends AsyncDisposable {
  readonly url: string;
}

/** All servers close at the same time, and before everything that was opened earlier. */
async function startServers(product: Product): Promise<Readonly<ServerUrls>> {
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

async function printBanner(
  product: Product,
  urls: Readonly<ServerUrls>,
  { ready, isJson, isOwnToken }: ProductHooks,
): Promise<void> {
  const { context, settings, platform } = product;
  const { cwd, stdout, paint, isTTY } = context;
  const { http, ntfy, kurrent } = urls;
  const { roleReport } = await import('../platform/engines/role-report.ts');
  const roles = roleReport(platform.engines.roles);
  const store = await displayUrl(context, roles[0]?.url ?? '');
  const lines: BannerLine[] = [
    ['event store', paint.cyan(store)],
    ...roles
      .flatMap(({ warning }) => warning ?? [])
      .map((warning): BannerLine => ['warning', paint.yellow(warning)]),
  ];
  if (http !== undefined) {
    lines.push(['HTTP', `${paint.cyan(http)}  ${paint.dim(`(${http}/docs)`)}`]);
  }
  if (ntfy !== undefined) {
    const { defaultAccessOf } = await import('../server/topics/index.ts');
    const { host, config } = settings;
    const access = defaultAccessOf({ host, hosts: config.server?.hosts, settings: config.notify });
    lines.push(
      ['ntfy', `${paint.cyan(`${ntfy}/<topic>`)}  ${paint.dim('(ntfy apps, curl -d hi)')}`],
      ['', paint.dim(`topics without an access rule, without credentials: ${access}`)],
    );
  }
  const folder = resolve(cwd, dataFolder);
  const ownLines = await ready?.({ platform, config: settings.config, url: http });
  const isFirst = ready === undefined && settings.serves.api;
  const failed = isFirst ? await createFirstToken(platform.tokens, folder) : undefined;
  const token = await readKeptToken(platform.tokens, folder, isOwnToken);
  if (kurrent !== undefined) {
    const { kurrentLines } = await import('./kurrent-protocol.ts');
    const { kurrentAuth } = settings;
    const tokens = await liveTokens(platform.tokens);
    lines.push(
      ...kurrentLines(context, { url: kurrent, kurrentAuth, token, tokens: tokens.length }),
    );
  }
  if (failed !== undefined) {
    lines.push(['no token', `${failed.problem}; create one with millrace token create`]);
  } else if (token !== undefined) {
    const text = isTTY ? `${paint.bold(token.secret)}  ` : '';
    lines.push(['admin token', `${text}${paint.dim(`in ${relative(cwd, token.file)}`)}`]);
  }
  if (http !== undefined) {
    const { consoleLine } = await import('./console-link.ts');
    lines.push(await consoleLine(context, { url: http, token, tokens: platform.tokens }));
  }
  lines.push(...(ownLines ?? [['watch events', paint.dim('npm run millrace -- stream tail')]]));
  const ownNtfy = settings.ntfyPort === undefined ? undefined : ntfy;
  stdout.write(
    isJson === true
      ? `${JSON.stringify({ store, http, ntfy: ownNtfy, kurrentdb: kurrent, adminTokenFile: token?.file })}\n`
      : bannerText(lines, await rolesTable(context, roles), context),
  );
}

function bannerText(
  lines: readonly BannerLine[],
  engines: string,
  { paint }: CommandContext,
): string {
  const width = Math.max(...lines.map(([name]) => name.length));
  return [
    `${paint.bold('Millrace')} is running: append an event once, and everything else follows.`,
    '',
    ...lines.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`),
    '',
    engines,
    paint.dim('Press Ctrl-C to stop.'),
    '',
  ].join('\n');
}

async function shutDown(
  { context, settings, opened }: Product,
  { isJson }: ProductHooks,
): Promise<number> {
  const { stdout, stderr, paint } = context;
  const { totalMs } = settings.shutdown;
  const seconds = totalMs / 1_000;
  if (isJson !== true) {
    const text = `Stopping: running work has ${seconds} s to finish; a second signal ends it immediately.\n`;
    stdout.write(paint.dim(text));
  }
  let problem = `shutdown timed out after ${seconds} s; other processes take over when the leases expire`;
  try {
    const isDone = await withinTime(
      opened.disposeAsync().then(() => true),
      { ms: totalMs, late: () => false },
    );
    if (isDone) return exitCodes.ok;
  } catch (error) {
    problem = `shutdown failed: ${error instanceof Error ? error.message : String(error)}`;
  }
  stderr.write(`${paint.red('millrace:')} ${problem}\n`);
  return exitCodes.failed;
}
