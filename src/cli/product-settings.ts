// The settings of the product: the command line over the configuration file and the environment, checked before anything is
// opened.

import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { MillraceError } from '../foundation/error.ts';
import { loadConfig, type MillraceConfig } from '../platform/config/millrace-config.ts';
import { platformRoles, rolesOf, type PlatformRole } from '../platform/config/platform-role.ts';
import type { Need } from '../platform/engines/resolve-roles.ts';
import { isLoopback } from '../server/http/reach.ts';
import { usage, type CommandContext, type Values } from './command.ts';
import { configOption, durationMs, flag, oneOf, option, nonNegativeInteger } from './options.ts';
import { storeOption, storeUrl } from './stores.ts';

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

const kurrentAuthOf = oneOf(['tokens', 'none']);

export interface Settings {
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
export async function readSettings(
  context: CommandContext,
  values: Values<typeof productOptions>,
  ownStore: string | undefined,
): Promise<Settings> {
  const { cwd, env } = context;
  const written = await loadConfig({ cwd, env, file: values.config });
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

/** Topics without settings are off if no engine has a bus. */
export function busNeed({ notify }: MillraceConfig): Need {
  return notify === undefined ? 'optional' : 'required';
}
