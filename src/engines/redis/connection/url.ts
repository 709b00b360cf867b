// Parses the URL of one Redis server or of the nodes of a cluster.

import { MillraceError } from '../../../foundation/error.ts';
import { parseHostPort, type HostPort } from '../../../foundation/host-port.ts';

export interface RedisAddress {
  readonly cluster: boolean;
  readonly tls: boolean;
  readonly nodes: readonly HostPort[];
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly db: number;
}

const portDefault = 6379;

/** `redis://user:password@host:6379/0`, `rediss:` with TLS, `redis+cluster://a:6379,b:6379` or `?cluster`. */
export function parseRedisUrl(url: string): RedisAddress {
  const parts =
    /^redis(?<tls>s)?(?<cluster>\+cluster)?:\/\/(?:(?<user>[^@]*)@)?(?<hosts>[^@/?#]+)(?:\/(?<db>[^?#]*))?(?:\?(?<query>[^#]*))?$/i.exec(
      url,
    )?.groups;
  if (parts === undefined) throw invalid(shape);
  const query = new URLSearchParams(parts['query'] ?? '');
  for (const name of query.keys()) {
    if (name !== 'cluster') throw invalid('the only supported parameter is ?cluster');
  }
  const cluster = parts['cluster'] !== undefined || isOn(query.get('cluster'));
  const nodes = (parts['hosts'] ?? '').split(',').map(nodeOf);
  if (nodes.length > 1 && !cluster)
    throw invalid('several hosts need the cluster scheme: redis+cluster://…');
  const db = parts['db'] ?? '';
  if (!/^\d{0,4}$/.test(db)) throw invalid('the database must be a number: redis://host:6379/0');
  if (cluster && Number(db) !== 0) throw invalid('a cluster has only database 0');
  return {
    cluster,
    tls: parts['tls'] !== undefined,
    nodes,
    ...credentials(parts['user']),
    db: Number(db),
  };
}

const shape =
  'expected redis://user:password@host:6379/0 (rediss: with TLS, redis+cluster: for a cluster), with special characters percent-encoded';

function isOn(flag: string | null): boolean {
  return flag !== null && flag !== 'false' && flag !== '0';
}

function nodeOf(text: string): HostPort {
  const parsed = parseHostPort(text, portDefault);
  if (parsed === undefined) throw invalid(shape);
  return { host: parsed.host.replaceAll(/[[\]]/g, ''), port: parsed.port };
}

function credentials(text: string | undefined): Pick<RedisAddress, 'username' | 'password'> {
  if (text === undefined || text === '') return { username: undefined, password: undefined };
  const [username = '', ...rest] = text.split(':');
  return {
    username: username === '' ? undefined : decoded(username),
    password: rest.length === 0 ? undefined : decoded(rest.join(':')),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid(shape);
  }
}

/** The error does not quote the URL, which may contain a password. */
function invalid(reason: string): MillraceError {
  return new MillraceError('CONFIG_INVALID', `invalid Redis URL: ${reason}`, {
    details: { field: 'redis' },
  });
}
