// The one parser of engine URLs, for the settings of a platform and for handles that are opened by URL. An error names
// the setting, the kind of mistake and an example; it quotes no part of the URL that may contain a password.

import { lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { closest } from '../foundation/closest.ts';
import { MillraceError } from '../foundation/error.ts';
import { parseHostPort, type HostPort } from '../foundation/host-port.ts';

export type EngineName =
  | 'memory'
  | 'sqlite'
  | 'postgres'
  | 'mongodb'
  | 'kurrentdb'
  | 'redis'
  | 'nats';

interface UrlForm {
  readonly schemes: readonly string[];
  /** A URL for error texts and documentation. */
  readonly example: string;
  /** Undefined: no server. */
  readonly portDefault?: number;
  readonly parameters: readonly string[];
  /** Names of parameters are written in any case, with or without `_` and `-`; each needs a value. */
  readonly hasLooseParameters?: boolean;
}

export const urlForms: Readonly<Record<EngineName, UrlForm>> = {
  memory: { schemes: ['memory'], example: 'memory:', parameters: [] },
  sqlite: { schemes: ['sqlite'], example: 'sqlite:.millrace/events.db', parameters: [] },
  postgres: {
    schemes: ['postgres', 'postgresql'],
    example: 'postgres://user:password@host:5432/database',
    portDefault: 5432,
    // Those of the driver, of libpq, and of connection strings that hosting services print.
    parameters: words(`schema host hostaddr port user password dbname application_name
      fallback_application_name options client_encoding replication binary ssl sslmode sslcert sslkey sslpassword
      sslrootcert sslcrl sslnegotiation sslcompression sslsni ssl_min_protocol_version ssl_max_protocol_version
      uselibpqcompat channel_binding enableChannelBinding gssencmode krbsrvname passfile service require_auth
      target_session_attrs load_balance_hosts connect_timeout connectionTimeoutMillis statement_timeout query_timeout
      lock_timeout idle_in_transaction_session_timeout tcp_user_timeout keepalives keepalives_idle keepalives_interval
      keepalives_count keepAlive keepAliveInitialDelayMillis max min idleTimeoutMillis pgbouncer connection_limit
      pool_timeout sslaccept sslidentity socket_timeout statement_cache_size`),
  },
  mongodb: {
    schemes: ['mongodb', 'mongodb+srv'],
    example: 'mongodb://host:27017/database',
    portDefault: 27_017,
    hasLooseParameters: true,
    parameters: words(`appName authMechanism authMechanismProperties authSource autoSelectFamily
      autoSelectFamilyAttemptTimeout compressors connectTimeoutMS
      directConnection enableOverloadRetargeting family fsync heartbeatFrequencyMS ignoreUndefined j journal
      keepAliveInitialDelay loadBalanced localThresholdMS
      maxAdaptiveRetries maxConnecting maxIdleTimeMS maxPoolSize maxStalenessSeconds minHeartbeatFrequencyMS
      minPoolSize monitorCommands noDelay proxyHost proxyPassword proxyPort proxyUsername readConcern
      readConcernLevel readPreference readPreferenceTags replicaSet retryReads retryWrites serverMonitoringMode servername
      serverSelectionTimeoutMS socketTimeoutMS srvMaxHosts srvServiceName ssl timeoutMS tls
      tlsAllowInvalidCertificates tlsAllowInvalidHostnames tlsCAFile tlsCRLFile tlsCertificateKeyFile
      tlsCertificateKeyFilePassword tlsInsecure w waitQueueTimeoutMS writeConcern wtimeout wtimeoutMS zlibCompressionLevel`),
  },
  kurrentdb: {
    schemes: words(
      'kurrentdb kurrentdb+discover kurrent kurrent+discover kdb kdb+discover esdb esdb+discover',
    ),
    example: 'kurrentdb://host:2113?tls=true',
    portDefault: 2113,
    hasLooseParameters: true,
    parameters:
      words(`connectionName defaultDeadline discoveryInterval gossipTimeout keepAliveInterval
      keepAliveTimeout maxDiscoverAttempts nodePreference throwOnAppendFailure tls tlsCAFile tlsVerifyCert
      userCertFile userKeyFile`),
  },
  redis: {
    schemes: ['redis', 'rediss', 'redis+cluster', 'rediss+cluster'],
    example: 'redis://user:password@host:6379/0',
    portDefault: 6379,
    parameters: ['cluster'],
  },
  nats: {
    schemes: ['nats', 'nats+tls', 'tls'],
    example: 'nats://user:password@host:4222',
    portDefault: 4222,
    parameters: [],
  },
};

const names = Object.keys(urlForms) as readonly EngineName[];

export interface UrlParts {
  readonly engine: EngineName;
  /** In lower case. */
  readonly scheme: string;
  /** The part before the @ as it is written. */
  readonly userinfo: string | undefined;
  /** Decoded. */
  readonly user: string | undefined;
  /** Decoded. */
  readonly password: string | undefined;
  readonly hosts: readonly HostPort[];
  /** The database, or the absolute path of a file. */
  readonly path: string;
  readonly parameters: URLSearchParams;
}

/** `setting` is what an error names; `engine` is the only engine that is accepted. */
export function urlParts(
  text: string,
  setting: string,
  engine: EngineName = engineOf(text, setting, names),
): UrlParts {
  engineOf(text, setting, [engine]);
  const url = text.trim();
  const { example, portDefault } = urlForms[engine];
  const fail = (problem: string): MillraceError => invalid(setting, `${problem}, as in ${example}`);
  const scheme = url.slice(0, url.indexOf(':')).toLowerCase();
  const nothing = { userinfo: undefined, user: undefined, password: undefined, hosts: [] };
  const none = { engine, scheme, ...nothing, path: '', parameters: new URLSearchParams() };
  if (engine === 'memory') return none;
  if (engine === 'sqlite') {
    const path = url.slice(scheme.length + 1).replace(/^\/\//, '');
    if (path.includes('?')) throw fail('a SQLite URL has no parameters: write only the file');
    if (path !== '' && path !== ':memory:') return { ...none, path: realPath(resolve(path)) };
    throw fail("'sqlite:' needs a file");
  }
  if (url.includes('#')) throw fail("a '#' must be written as %23");
  // User and password end at the last @ before the parameters.
  const shape = /^[^:]+:\/\/(?:([^?]*)@)?([^/?@]*)(?:\/([^?]*))?(?:\?(.*))?$/s;
  const [isUrl, userinfo, hosts = '', path = '', query = ''] = shape.exec(url) ?? [];
  if (isUrl === undefined) throw fail('the URL needs // and a host after the scheme');
  const parameters = checkedParameters(engine, query.replace(/\/+$/, ''), fail);
  const [user, password] = credentials(engine, userinfo, fail);
  // PostgreSQL: a socket, or the host of the environment.
  if (hosts === '' && engine !== 'postgres') throw fail('the URL names no host');
  const parts = {
    engine,
    scheme,
    userinfo,
    user,
    password,
    hosts: hosts === '' ? [] : hosts.split(',').map((host) => hostOf(host, portDefault ?? 0, fail)),
    path,
    parameters,
  };
  if (engine === 'redis') checkRedis(parts, fail);
  if (path !== '' && (engine === 'nats' || engine === 'kurrentdb')) {
    throw fail('nothing may follow the host and port but parameters');
  }
  return parts;
}

/** A link and its target are one database, even before the first start creates the file. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    const folder = dirname(path);
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    // Opening the file reports every other problem.
    if (!isMissing || folder === path) return path;
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true
      ? realPath(resolve(folder, readlinkSync(path)))
      : join(realPath(folder), basename(path));
  }
}

/** A SQLite or file URL with a relative path starts at the folder. */
export function urlInFolder(url: string, folder: string): string {
  const [, scheme = '', path] = /^(sqlite|file):(?:\/\/)?([^:].*)$/i.exec(url) ?? [];
  return path === undefined ? url : `${scheme}:${resolve(folder, path)}`;
}

/** For the client, which prints a warning for the old name of the scheme. */
export function kurrentdbConnection(url: string): string {
  return url.trim().replace(/^esdb/i, 'kurrentdb');
}

/** Whether a Redis URL names a cluster. */
export function isCluster({ scheme, parameters }: UrlParts): boolean {
  const flag = parameters.get('cluster');
  return scheme.endsWith('+cluster') || (flag !== null && flag !== 'false' && flag !== '0');
}

type Fail = (problem: string) => MillraceError;

function engineOf(url: string, setting: string, from: readonly EngineName[]): EngineName {
  const scheme = /^\s*([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase();
  const found = from.find((name) => urlForms[name].schemes.some((each) => each === scheme));
  if (found !== undefined) return found;
  const schemes = from.flatMap((name) => urlForms[name].schemes);
  const list = schemes.map((each) => `${each}:`).join(', ');
  const example = `for example ${urlForms[from.length === 1 ? (from[0] ?? 'sqlite') : 'sqlite'].example}`;
  if (scheme === undefined) {
    throw invalid(setting, `the URL must start with its engine: one of ${list}; ${example}`);
  }
  const near = closest(scheme, schemes);
  const hint = near === undefined ? '' : ` Did you mean ${near}:?`;
  const nearest = names.find((name) => urlForms[name].schemes.some((each) => each === near));
  const shown = nearest === undefined ? example : `for example ${urlForms[nearest].example}`;
  throw invalid(
    setting,
    `engine '${scheme}:' is not supported; supported: ${list}.${hint} (${shown})`,
  );
}

function checkedParameters(engine: EngineName, query: string, fail: Fail): URLSearchParams {
  const { parameters: known, hasLooseParameters = false } = urlForms[engine];
  const spelled = (name: string): string =>
    hasLooseParameters ? name.toLowerCase().replace(/[_-]/g, '') : name;
  const found = new URLSearchParams(query);
  for (const [name, value] of found) {
    if (!known.some((each) => spelled(each) === spelled(name))) {
      const near = closest(name, known);
      const list = known.length === 0 ? 'the URL takes none' : `known: ${known.join(', ')}`;
      const hint = near === undefined ? list : `did you mean '${near}'?`;
      // A password with an unencoded question mark looks like a parameter.
      const shown = query.includes('@') ? '' : ` '${name.slice(0, 40)}'`;
      throw fail(`unknown parameter${shown}: ${hint}`);
    }
    if (hasLooseParameters && value === '') throw fail(`the parameter '${name}' has no value`);
  }
  return found;
}

function credentials(
  engine: EngineName,
  userinfo: string | undefined,
  fail: Fail,
): readonly [user: string | undefined, password: string | undefined] {
  if (userinfo === undefined) return [undefined, undefined];
  const wrong = (): MillraceError =>
    fail('in user and password, the characters : / ? # @ and % must be percent-encoded');
  // The driver of PostgreSQL accepts an @.
  if (userinfo.includes('/') || (userinfo.includes('@') && engine !== 'postgres')) throw wrong();
  const [user = '', ...rest] = userinfo.split(':');
  if (engine === 'kurrentdb' && (rest.length !== 1 || rest[0] === '')) throw wrong();
  try {
    return [
      user === '' ? undefined : decodeURIComponent(user),
      rest.length === 0 ? undefined : decodeURIComponent(rest.join(':')),
    ];
  } catch {
    // The error of the decoder quotes the password.
    if (engine !== 'postgres') throw wrong();
    return [undefined, undefined];
  }
}

function hostOf(text: string, portDefault: number, fail: Fail): HostPort {
  const parsed = parseHostPort(text, portDefault);
  if (parsed !== undefined) return parsed;
  if (text === '' || text.startsWith(':')) throw fail('the URL names no host');
  throw fail('each host is a name or an address, with a port from 1 to 65535');
}

function checkRedis(parts: UrlParts, fail: Fail): void {
  const { hosts, path } = parts;
  if (hosts.length > 1 && !isCluster(parts)) {
    throw fail('several hosts need the cluster scheme, redis+cluster:; a single one is written');
  }
  if (!/^\d{0,4}$/.test(path)) throw fail('the database must be a number');
  if (isCluster(parts) && Number(path) !== 0) throw fail('a cluster has only database 0');
}

function words(text: string): readonly string[] {
  return text.split(/\s+/);
}

/** The error of a setting. */
export function invalid(setting: string, problem: string): MillraceError {
  return new MillraceError('CONFIG_INVALID', `${setting}: ${problem}`, {
    details: { field: setting },
  });
}
