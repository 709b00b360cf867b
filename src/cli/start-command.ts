// `millrace start`: runs the product in one process, until it is told to stop.

import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { createTenantDirectory } from '../contracts/tenant.ts';
import type { Platform } from '../platform/create-platform.ts';
import { loadConfig, type MillraceConfig } from '../platform/config/millrace-config.ts';
import { platformRoles, rolesOf } from '../platform/config/platform-role.ts';
import type { Tokens } from '../platform/tokens/open-tokens.ts';
import { tokenState } from '../platform/tokens/token.ts';
import { isLoopback } from '../server/kurrent/listen.ts';
import { exitCodes, readArgs, usage, type Command, type CommandContext } from './command.ts';
import { wholeNumber } from './option-values.ts';
import { packageVersion } from './package-version.ts';
import type { Paint } from './paint.ts';
import { doneWithin, shutdownOption, shutdownTimes } from './shutdown.ts';
import { shownStore, storeOption, storeSections, storeUrl } from './store-option.ts';
import { whenAborted } from './when-aborted.ts';

export const startOptions = {
  ...storeOption,
  config: { type: 'string', value: 'file', summary: 'instead of ./millrace.config.ts' },
  roles: {
    type: 'string',
    value: 'a,b',
    summary: `what this process does: ${platformRoles.join(', ')} (all)`,
  },
  host: { type: 'string', value: 'address', summary: 'where to listen (127.0.0.1)' },
  port: { type: 'string', value: 'N', summary: 'of the HTTP API (7480; 0: any free one)' },
  'kurrent-port': {
    type: 'string',
    value: 'N',
    summary: "for clients of KurrentDB's protocol (2113; 0: any free one)",
  },
  'kurrent-auth': {
    type: 'string',
    value: 'how',
    summary: "whom that protocol lets in: 'tokens', or 'none' asked (none, on this machine only)",
  },
  tenants: {
    type: 'string',
    value: 'a-b,c-d',
    summary: 'tenants whose names hold a hyphen (those of the tokens are known)',
  },
  'no-kurrent': { type: 'boolean', summary: 'does not serve that protocol' },
  'ntfy-port': {
    type: 'string',
    value: 'N',
    summary: "for ntfy's clients, on a port of its own (beside the HTTP API; 0: any free one)",
  },
  'no-ntfy': { type: 'boolean', summary: 'serves no topics' },
  'tls-cert': { type: 'string', value: 'file', summary: 'a certificate, PEM: TLS instead of none' },
  'tls-key': { type: 'string', value: 'file', summary: 'its private key, PEM' },
  ...shutdownOption,
} as const;

const options = {
  ...startOptions,
  json: { type: 'boolean', summary: 'says by one line of JSON where it listens, once it is ready' },
} as const;

export const startCommand: Command = {
  name: 'start',
  summary: 'runs the product in one process, until Ctrl-C',
  usage: 'start [options]',
  options,
  examples: [
    'millrace start',
    'millrace start --port 0 --no-kurrent --json',
    'millrace start --roles dispatcher,workers --store postgres://localhost/shop',
    'millrace start --store postgres://localhost/shop --kurrent-port 2114',
    'millrace start --host 0.0.0.0 --kurrent-auth tokens --tls-cert server.crt --tls-key server.key',
  ],
  sections: storeSections,
  async run(context) {
    const { values, positionals } = readArgs({ name: 'start', args: context.args }, options);
    if (positionals.length > 0) throw usage(`start takes options only, not '${positionals[0]}'`);
    const { json, ...start } = values;
    return runProduct(context, start, { isJson: json === true });
  },
};

type StartValues = ReturnType<typeof readArgs<typeof startOptions>>['values'];

export interface ProductHooks {
  /** Instead of the engines of the configuration, where the command line names none. */
  readonly store?: string;
  /** Everything runs: more lines for whoever started it. Instead of the first token. */
  readonly ready?: (running: RunningProduct) => Promise<readonly ProductLine[]>;
  /** For scripts, instead of lines for people. */
  readonly isJson?: boolean;
}

export interface RunningProduct {
  readonly platform: Platform;
  readonly config: MillraceConfig;
  /** Of the HTTP API. */
  readonly url: string | undefined;
}

/** What it is, and where or how. */
export type ProductLine = readonly [name: string, text: string];

/** Runs everything until the signal fires, and then lets it come to its end. */
export async function runProduct(
  context: CommandContext,
  values: StartValues,
  hooks: ProductHooks = {},
): Promise<number> {
  const { stdout, stderr, signal, paint, cwd, env } = context;
  const written = await loadConfig({
    cwd,
    env,
    ...(values.config === undefined ? {} : { file: values.config }),
  });
  const roles = values.roles === undefined ? written.roles : rolesOf(values.roles);
  const isApi = roles?.includes('api') ?? true;
  const isKurrent = isApi && values['no-kurrent'] !== true;
  const isNtfy = isApi && values['no-ntfy'] !== true;
  const ntfyPort = wholeNumber('ntfy-port', values['ntfy-port']);
  const host = values.host ?? written.server?.host ?? '127.0.0.1';
  const tls = await tlsOf(cwd, values['tls-cert'], values['tls-key']);
  const auth = authOf(values['kurrent-auth']);
  const times = shutdownTimes(values['shutdown-timeout']);
  if (isApi && !isLoopback(host)) checkOpenHost(host, { auth: isKurrent ? auth : 'tokens', tls });
  const [{ createPlatform }, { startApi }, { kurrentStoreOptions }, telemetries] =
    await Promise.all([
      import('../platform/create-platform.ts'),
      import('../server/api/start-api.ts'),
      import('../server/kurrent/kurrent-store-options.ts'),
      import('../telemetry/index.ts'),
    ]);
  const { createTelemetry, platformCollectors } = telemetries;
  await using stack = new AsyncDisposableStack();
  // Disposed of last: what happens at the end is told, too.
  const version = packageVersion();
  const telemetry = stack.use(await createTelemetry({ env, version }));
  const { observer } = telemetry;
  const platform = stack.use(
    await createPlatform({
      ...written,
      drainMs: times.workMs,
      usesBus: isNtfy,
      ...(roles === undefined ? {} : { roles }),
      ...enginesOf(context, { given: values.store, own: hooks.store, written }),
      ...(isKurrent ? kurrentStoreOptions : {}),
      observer,
    }),
  );
  telemetry.collect(platformCollectors(platform));
  await platform.start();
  // Before the servers: those end first, and let what is under way come to its end.
  let ntfyUrl: string | undefined;
  const { openNtfy, startNtfyServer } = await import('../server/ntfy/index.ts');
  const ntfy = isNtfy
    ? stack.use(
        await openNtfy(platform, {
          ...(written.notify === undefined ? {} : { settings: written.notify }),
          isLoopback: isLoopback(host),
          cwd,
          url: () => ntfyUrl,
          version,
          observer,
        }),
      )
    : undefined;
  const servers: AsyncDisposable[] = [];
  stack.defer(async () => {
    await Promise.all(servers.map((each) => each[Symbol.asyncDispose]()));
  });
  const { urls } = platform.engines;
  const shown = await shownStore(context, urls.store);
  const facts: Record<string, string> = { store: shown };
  const lines: ProductLine[] = [['events in', paint.cyan(shown)]];
  let url: string | undefined;
  if (isApi) {
    const port = wholeNumber('port', values.port) ?? written.server?.port ?? 7480;
    const limits = { ...written.server?.limits, drainMsMax: times.requestsMs };
    const metrics = (): Promise<string> => telemetry.metrics();
    const listening = { ...written.server, host, port, version, tls, limits, observer, metrics };
    const isBeside = ntfy !== undefined && ntfyPort === undefined;
    const api = await startApi(platform, { ...listening, ...(isBeside ? { beside: ntfy } : {}) });
    servers.push(api);
    ({ url } = api);
    facts['http'] = api.url;
    lines.push(['HTTP', `${paint.cyan(api.url)}  ${paint.dim(`(${api.url}/docs)`)}`]);
    if (isBeside) ntfyUrl = api.url;
  }
  if (ntfy !== undefined && ntfyPort !== undefined) {
    const server = await startNtfyServer(ntfy, { host, port: ntfyPort, tls });
    servers.push(server);
    ntfyUrl = server.url;
    facts['ntfy'] = server.url;
  }
  if (ntfyUrl !== undefined) {
    lines.push([
      'ntfy',
      `${paint.cyan(`${ntfyUrl}/<topic>`)}  ${paint.dim('(its apps, curl -d hi)')}`,
    ]);
  }
  if (isKurrent) {
    const { authenticateByTokens, startKurrentServer } = await import('../server/kurrent/index.ts');
    const given = createTenantDirectory(namesIn(values.tenants));
    const { tokens } = platform;
    const server = await startKurrentServer(platform.engines.store, {
      host,
      port: wholeNumber('kurrent-port', values['kurrent-port']) ?? 2113,
      tenants: { has: (name) => given.has(name) || tokens.tenants.has(name) },
      limits: { stopMsMax: times.requestsMs },
      ...(auth === 'none' ? {} : { authenticate: authenticateByTokens(tokens) }),
      ...(tls === undefined ? {} : { tls }),
    });
    servers.push(server);
    facts['kurrentdb'] = server.url;
    const lets = await whoIsLetIn(auth === 'tokens' ? tokens : undefined, { tls });
    lines.push(
      ['KurrentDB', `${paint.cyan(server.url)}  ${paint.dim('(official clients)')}`],
      ['', paint.dim(lets)],
    );
  }
  if (hooks.ready !== undefined) {
    lines.push(...(await hooks.ready({ platform, config: written, url })));
  } else {
    const first = isApi ? await firstToken(platform.tokens) : undefined;
    if (first !== undefined && 'secret' in first) {
      facts['adminToken'] = first.secret;
      lines.push(['admin token', `${paint.bold(first.secret)}  ${paint.dim('(shown this once)')}`]);
    } else if (first !== undefined) {
      lines.push(['no token', `${first.problem}; make one: millrace token create`]);
    }
    lines.push(['watch events', paint.dim('npm run millrace -- stream tail')]);
  }
  stdout.write(hooks.isJson === true ? `${JSON.stringify(facts)}\n` : greeting(lines, paint));
  await whenAborted(signal);
  const seconds = times.totalMs / 1_000;
  if (hooks.isJson !== true) {
    const text = `Stops: at most ${seconds} s for what is under way; a second signal ends it now.\n`;
    stdout.write(paint.dim(text));
  }
  let problem = `not everything ended within ${seconds} s: its leases run out, and others take over`;
  try {
    if (await doneWithin(stack.disposeAsync(), times.totalMs)) return exitCodes.ok;
  } catch (error) {
    problem = `it stopped, but not well: ${error instanceof Error ? error.message : String(error)}`;
  }
  stderr.write(`${paint.red('millrace:')} ${problem}\n`);
  return exitCodes.failed;
}

function greeting(lines: readonly ProductLine[], paint: Paint): string {
  const width = Math.max(...lines.map(([name]) => name.length));
  return [
    `${paint.bold('Millrace')} runs: append an event once, and everything else follows.`,
    '',
    ...lines.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`),
    '',
    paint.dim('Ctrl-C stops it.'),
    '',
  ].join('\n');
}

/** What the command line says, else what is this command's own, which stands by itself. */
function enginesOf(
  context: CommandContext,
  {
    given,
    own,
    written,
  }: {
    readonly given: string | undefined;
    readonly own: string | undefined;
    readonly written: MillraceConfig;
  },
): Pick<MillraceConfig, 'engines'> {
  if (given !== undefined) {
    return { engines: { ...written.engines, store: storeUrl(context, given) } };
  }
  return own === undefined ? {} : { engines: { store: storeUrl(context, own) } };
}

/** Nobody could ask for anything, or make a token over HTTP, without a first one. */
async function firstToken(
  tokens: Tokens,
): Promise<{ readonly secret: string } | { readonly problem: string } | undefined> {
  const nowMs = Date.now();
  const isKnown = (await tokens.list()).some((token) => tokenState(token, nowMs) === 'live');
  if (isKnown) return undefined;
  try {
    return await tokens.create({ name: 'admin', scopes: ['admin'], by: 'millrace start' });
  } catch (error) {
    // Another process that started with this one was faster.
    if (hasCode(error, 'TOKEN_EXISTS')) return undefined;
    // A KurrentDB lets only its own administrators write streams of the system.
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

function authOf(text: string | undefined): 'tokens' | 'none' {
  if (text === undefined || text === 'none') return 'none';
  if (text === 'tokens') return text;
  throw usage(`--kurrent-auth takes tokens or none, not '${text}'`);
}

/** Said before anything is opened, in the words of the command line. */
function checkOpenHost(
  host: string,
  { auth, tls }: { readonly auth: 'tokens' | 'none'; readonly tls: object | undefined },
): void {
  const problem =
    auth === 'none'
      ? 'would be open to everybody who reaches it: make a token (millrace token create) and start with --kurrent-auth tokens'
      : tls === undefined
        ? 'would take secrets over the network in clear: pass --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy that has TLS'
        : undefined;
  if (problem === undefined) return;
  throw new MillraceError('CONFIG_INVALID', `--host ${host} ${problem}`, {
    details: { field: auth === 'none' ? 'kurrent-auth' : 'tls-cert', host },
  });
}

function namesIn(list: string | undefined): readonly string[] {
  return list === undefined ? [] : list.split(',').map((name) => name.trim());
}

async function whoIsLetIn(
  tokens: Pick<Tokens, 'list'> | undefined,
  { tls }: { readonly tls: object | undefined },
): Promise<string> {
  if (tokens === undefined)
    return 'everybody on this machine (--kurrent-auth tokens asks who it is)';
  const nowMs = Date.now();
  const live = (await tokens.list()).filter((token) => tokenState(token, nowMs) === 'live');
  const note = tls === undefined ? '; official clients send credentials over TLS only' : '';
  if (live.length > 0) return `whoever has one of ${live.length} tokens${note}`;
  return 'nobody yet: make a token with npm run millrace -- token create <name> --scope admin';
}

async function tlsOf(
  cwd: string,
  certFile: string | undefined,
  keyFile: string | undefined,
): Promise<{ readonly cert: string; readonly key: string } | undefined> {
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile === undefined || keyFile === undefined) {
    throw usage('start: --tls-cert and --tls-key go together');
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
