// The URL of an engine for a setting: what its driver gets, the identity of its database, and its form without secrets.

import {
  invalid,
  kurrentdbConnection,
  urlForms,
  urlParts,
  type EngineName,
  type UrlParts,
} from '../../contracts/engine-url.ts';
import { urlFields } from './engine-table.ts';

export interface EngineUrl {
  readonly engine: EngineName;
  /** For the driver: without our own parameters. */
  readonly connection: string;
  /** PostgreSQL: the schema of the tables, if the URL names one. */
  readonly schema?: string | undefined;
}

/** Needs no quotes in SQL; PostgreSQL silently truncates longer names. */
const schemaShape = /^[a-z_][a-z0-9_]{0,62}$/;

/** `field` is the setting that an error names. */
export function parseEngineUrl(text: string, field: string): EngineUrl {
  const isField = urlFields.some((each) => each === field);
  const setting = isField ? `${field} (MILLRACE_${field.toUpperCase()})` : field;
  const parts = urlParts(text, setting);
  const url = text.trim();
  const { engine, path } = parts;
  switch (engine) {
    case 'memory':
      return { engine, connection: 'memory:' };
    case 'sqlite':
      return { engine, connection: `sqlite:${path}` };
    case 'postgres':
      checkNamesDatabase(parts, setting);
      return { engine, ...withoutSchema(url, parts, setting) };
    case 'kurrentdb':
      return { engine, connection: kurrentdbConnection(url) };
    case 'mongodb':
      checkNamesDatabase(parts, setting);
      return { engine, connection: url };
    default:
      return { engine, connection: url };
  }
}

/** Without a name, the driver would choose a database by itself, such as that of the user. */
function checkNamesDatabase({ engine, path }: UrlParts, setting: string): void {
  if (path !== '') return;
  const { example } = urlForms[engine];
  throw invalid(setting, `the URL names no database: write it after the host, as in ${example}`);
}

/** Roles of one database share a connection, and commit together if the engine has transactions. */
export function isSameDatabase(one: EngineUrl, other: EngineUrl): boolean {
  if (one.engine !== other.engine || identityOf(one) !== identityOf(other)) return false;
  return one.schema === undefined || other.schema === undefined || one.schema === other.schema;
}

/** The connection without what has no effect: the case of the host, the default port, database 0 of Redis. */
function identityOf({ engine, connection }: EngineUrl): string {
  const url = URL.parse(connection);
  // Several hosts and socket paths are compared as they are written.
  if (url === null || url.host === '') return connection;
  const { protocol, username, password, hostname, port, pathname, search } = url;
  const usualPort = urlForms[engine].portDefault;
  const path = pathname.replace(engine === 'redis' ? /^\/0?$/ : /^\/$/, '');
  const scheme = protocol.replace('postgresql:', 'postgres:');
  const host = `${hostname.toLowerCase()}:${port === '' ? usualPort : port}`;
  return JSON.stringify([scheme, username, password, host, path, search]);
}

/**
 * A URL for logs: its password is replaced by three stars.
 *
 * @example
 * import { redactUrl } from 'millrace/platform';
 *
 * console.log(redactUrl('postgres://app:secret@db/shop')); // postgres://app:***@db/shop
 */
export function redactUrl(url: string): string {
  // Up to the last @, so that a password that should have been encoded is hidden, too.
  return url
    .replace(/^((?:nats|nats\+tls|tls):\/\/)[^:@]*@/i, '$1***@')
    .replace(/^([^:]+:\/\/)([^:@]*):.*@/s, '$1$2:***@')
    .replace(/([?&][^=&]*(?:password|secret|token)[^=&]*=)[^&]*/gi, '$1***');
}

function withoutSchema(
  url: string,
  { parameters }: UrlParts,
  setting: string,
): Omit<EngineUrl, 'engine'> {
  const schema = parameters.get('schema');
  if (schema === null) return { connection: url };
  if (!schemaShape.test(schema)) {
    throw invalid(
      setting,
      `a schema name must have 1 to 63 lower-case letters, digits and underscores, as in ${urlForms.postgres.example}?schema=shop`,
    );
  }
  parameters.delete('schema');
  const rest = parameters.size === 0 ? '' : `?${parameters.toString()}`;
  return { connection: `${url.slice(0, url.indexOf('?'))}${rest}`, schema };
}
