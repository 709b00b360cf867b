// The configuration of a deployment: a file, the environment, or both. It is validated once at startup; an error names
// the field.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { urlInFolder } from '../../contracts/engine-url.ts';
import type { RateLimit } from '../../delivery/rate-limit.ts';
import { MillraceError } from '../../foundation/error.ts';
import type { Platform, PlatformConfig } from '../create-platform.ts';
import { urlFields } from '../engines/engine-table.ts';
import { archiveKeysOf } from '../engines/open-cold-storage.ts';
import { checkSettings } from './check-settings.ts';
import type { NotifySettings } from './notify-settings.ts';
import { readOutboxEnvironment } from './outbox-environment.ts';
import { localUrlDefault, storeUrlDefault, type EngineUrls } from '../engines/resolve-roles.ts';
import { rolesOf } from './platform-role.ts';

/** How tokens of an identity provider are verified. */
export interface JwtSettings {
  /** HS256: a shared secret of at least 32 bytes. */
  readonly secret?: string | undefined;
  /** RS256, ES256: the URL of the provider's key set. */
  readonly jwksUrl?: string | undefined;
  readonly audience: string;
  readonly issuer?: string | undefined;
  /** Tolerated clock difference to the issuer. Default: 30 s. */
  readonly clockSkewSeconds?: number | undefined;
  /** The claim with the tenant. Default: `tenant`. */
  readonly tenantClaim?: string | undefined;
}

export interface ServerSettings {
  /** Default: 127.0.0.1. */
  readonly host?: string | undefined;
  /**
   * The names by which clients reach a server on a loopback address, such as the public name of a proxy; `*`: any.
   * Requests for other names are refused. Default: the names of this machine.
   */
  readonly hosts?: readonly string[] | undefined;
  /** Default: 7480. */
  readonly port?: number | undefined;
  /**
   * Masks the values of payloads, documents, results and error messages for credentials without the scope `admin`.
   * Default: false.
   */
  readonly maskPayloads?: boolean | undefined;
  /** Origins that browsers may call from. Default: none. */
  readonly corsOrigins?: readonly string[] | undefined;
  /** Accepts tokens of an identity provider in addition to API keys. */
  readonly jwt?: JwtSettings | undefined;
  /** Rate limits per caller. Default: 1,000 requests a second with credentials, 50 without. */
  readonly rateLimits?: { readonly known: RateLimit; readonly unknown: RateLimit } | undefined;
  /** Limits of one request. Default: a body of 1 MiB, 30 s to receive it, 60 s to respond. */
  readonly limits?: {
    readonly bodyBytesMax?: number;
    readonly receiveMsMax?: number;
    readonly answerMsMax?: number;
    readonly connectionsMax?: number;
    /** Default: a fifth of `connectionsMax`. A proxy needs more: all its connections have one address. */
    readonly connectionsPerAddressMax?: number;
    /** Default: 30 s without progress of a client that does not read. */
    readonly unreadMsMax?: number;
  };
}

export type SampleLine = readonly [name: string, text: string];

export interface MillraceConfig extends Omit<
  PlatformConfig,
  'clock' | 'drainMs' | 'names' | 'observer' | 'version'
> {
  readonly server?: ServerSettings | undefined;
  /** Publishes processes, errors, sign-ins and admin actions on the bus, below `gbe.events`. Default: false. */
  readonly operationsEvents?: boolean | undefined;
  /** Topics, compatible with ntfy. */
  readonly notify?: NotifySettings | undefined;
  /**
   * Sample data, for `millrace dev` on a new store. Repeated after an interruption, so its commands need idempotency
   * keys. The returned lines are shown once, for example tokens of sample users.
   */
  readonly samples?: ((platform: Platform) => Promise<readonly SampleLine[] | void>) | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const fileNames = ['millrace.config.ts', 'millrace.config.js', 'millrace.config.mjs'];
const taskFileNames = ['millrace.tasks.yaml', 'tasks.yaml'];

/**
 * Types a configuration: the default export of `millrace.config.ts`.
 *
 * @example
 * import { defineConfig, defineModule } from 'millrace/platform';
 *
 * export default defineConfig({
 *   engines: { store: 'postgres://localhost/shop', keys: 'redis://localhost:6379' },
 *   modules: [defineModule({ name: 'shop' })],
 *   server: { port: 7480 },
 * });
 */
export function defineConfig(config: MillraceConfig): MillraceConfig {
  return config;
}

/**
 * Loads the configuration of a folder: `millrace.config.ts` and `millrace.tasks.yaml` (or `tasks.yaml`), if they
 * exist, and the environment, which has precedence.
 *
 * @example
 * import { createPlatform, loadConfig } from 'millrace/platform';
 *
 * const config = await loadConfig({ cwd: process.cwd(), env: process.env });
 * await using platform = await createPlatform(config);
 */
export async function loadConfig(from: {
  readonly cwd: string;
  readonly env: Environment;
  /** A path instead of the default file names. */
  readonly file?: string | undefined;
}): Promise<MillraceConfig> {
  const { cwd, env, file } = from;
  const found =
    file === undefined
      ? fileNames.map((name) => resolve(cwd, name)).find((path) => existsSync(path))
      : resolve(cwd, file);
  const written = found === undefined ? {} : await readFile(found);
  const taskTypesFile = taskFileNames.find((name) => existsSync(resolve(cwd, name)));
  const config = taskTypesFile === undefined ? written : { taskTypesFile, ...written };
  return withEnvironment(config, { cwd, env });
}

async function readFile(path: string): Promise<MillraceConfig> {
  let exported: { readonly default?: unknown };
  try {
    exported = (await import(pathToFileURL(path).href)) as { readonly default?: unknown };
  } catch (error) {
    const reason = error instanceof Error ? error.message.split('\n')[0] : String(error);
    throw invalid('config', `${path} cannot be loaded: ${reason ?? ''}`, error);
  }
  const config = exported.default;
  if (typeof config !== 'object' || config === null) {
    throw invalid('config', `${path} has no default export: export default defineConfig({ … })`);
  }
  checkSettings(config, path);
  return config;
}

/** Pure: the environment has precedence over the file. */
export function withEnvironment(
  config: MillraceConfig,
  { cwd, env }: { readonly cwd: string; readonly env: Environment },
): MillraceConfig {
  const text = (name: string): string | undefined => (env[name] === '' ? undefined : env[name]);
  const roles = text('MILLRACE_ROLES');
  const port = text('MILLRACE_PORT');
  const busArchive = text('MILLRACE_ARCHIVE') ?? config.busArchive;
  const taskTypesFile = text('MILLRACE_TASK_TYPES') ?? config.taskTypesFile;
  return {
    ...config,
    busArchive: busArchive && urlInFolder(busArchive, cwd),
    busArchiveKeys: archiveKeysOf(env) ?? config.busArchiveKeys,
    taskTypesFile: taskTypesFile && resolve(cwd, taskTypesFile),
    outbox: readOutboxEnvironment(env),
    engines: enginesOf(config.engines ?? {}, text, cwd),
    isProduction: config.isProduction ?? env['NODE_ENV'] === 'production',
    localUrl: urlInFolder(config.localUrl ?? localUrlDefault, cwd),
    roles: roles === undefined ? config.roles : rolesOf(roles),
    server: {
      ...config.server,
      host: text('MILLRACE_HOST') ?? config.server?.host,
      port: port === undefined ? config.server?.port : portOf(port),
      jwt: jwtOf(text, config.server?.jwt),
    },
  };
}

type Text = (name: string) => string | undefined;

function enginesOf(written: EngineUrls, text: Text, cwd: string): EngineUrls {
  const store = text('ESDB_CONNECTION_STRING') ?? written.store ?? storeUrlDefault;
  const fallbacks: EngineUrls = { ...written, store };
  return Object.fromEntries(
    urlFields.map((field) => {
      const url = text(`MILLRACE_${field.toUpperCase()}`) ?? fallbacks[field];
      return [field, url && urlInFolder(url, cwd)];
    }),
  );
}

/** A key of the environment replaces both keys of the file. */
function jwtOf(text: Text, written: JwtSettings | undefined): JwtSettings | undefined {
  const secret = text('MILLRACE_JWT_SECRET');
  const jwksUrl = text('MILLRACE_JWT_JWKS_URL');
  if (secret === undefined && jwksUrl === undefined) return written;
  const audience = text('MILLRACE_JWT_AUDIENCE') ?? written?.audience;
  if (audience === undefined) {
    throw invalid('MILLRACE_JWT_AUDIENCE', 'JWTs need an audience: set MILLRACE_JWT_AUDIENCE');
  }
  const issuer = text('MILLRACE_JWT_ISSUER') ?? written?.issuer;
  return { ...written, audience, secret, jwksUrl, issuer };
}

function portOf(value: string): number {
  const port = Number(value);
  if (/^\d{1,5}$/.test(value) && port <= 65_535) return port;
  throw invalid('MILLRACE_PORT', `'${value}' is not a port`);
}

function invalid(field: string, message: string, cause?: unknown): MillraceError {
  return new MillraceError('CONFIG_INVALID', message, { cause, details: { field } });
}
