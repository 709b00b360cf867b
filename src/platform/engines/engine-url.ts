// The URL of an engine: one parser for all schemes, the identity of its database, and its form without secrets. Errors
// quote only the scheme, because the rest may contain a password.

import { resolve } from 'node:path';
import { closest } from '../../foundation/closest.ts';
import { MillraceError } from '../../foundation/error.ts';
import { engineTable, type EngineName } from './engine-table.ts';

export interface EngineUrl {
  readonly engine: EngineName;
  /** For the driver: without our own parameters. */
  readonly connection: string;
  /** PostgreSQL: the schema of the tables, if the URL names one. */
  readonly schema?: string | undefined;
}

/** Needs no quotes in SQL; PostgreSQL silently truncates longer names. */
const schemaShape = /^[a-z_][a-z0-9_]{0,62}$/;

const names = Object.keys(engineTable) as readonly EngineName[];

/** `field` is the setting that an error names. */
export function parseEngineUrl(url: string, field: string): EngineUrl {
  const engine = engineOf(url, field);
  switch (engine) {
    case 'memory':
      return { engine, connection: 'memory:' };
    case 'sqlite':
      return { engine, connection: `sqlite:${sqlitePath(url, field)}` };
    case 'postgres':
      return { engine, ...postgresTarget(url, field) };
    case 'kurrentdb':
      // The client warns about the old name of the scheme.
      return { engine, connection: url.replace(/^esdb/i, 'kurrentdb') };
    case 'mongodb':
      checkNamesDatabase(engine, url, field);
      return { engine, connection: url };
    default:
      return { engine, connection: url };
  }
}

/** Without a name, the driver would choose a database by itself, such as that of the user. */
function checkNamesDatabase(engine: EngineName, url: string, field: string): void {
  if (/^[^?]*:\/\/[^?]*\/[^/?]+(?:\?|$)/.test(url)) return;
  const { example } = engineTable[engine];
  throw invalid(field, `the URL names no database: write it after the host, as in ${example}`);
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
  const usualPort = URL.parse(engineTable[engine].example)?.port;
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

function engineOf(url: string, field: string): EngineName {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase();
  const schemes = names.flatMap((name) => schemesOf(name));
  const found = names.find((name) => schemesOf(name).some((each) => each === scheme));
  if (found !== undefined) return found;
  const list = schemes.map((each) => `${each}:`).join(', ');
  if (scheme === undefined)
    throw invalid(field, `the URL must start with its engine: one of ${list}`);
  const near = closest(scheme, schemes);
  const hint = near === undefined ? '' : ` Did you mean ${near}:?`;
  throw invalid(field, `engine '${scheme}:' is not supported; supported: ${list}.${hint}`);
}

function schemesOf(name: EngineName): readonly string[] {
  return engineTable[name].schemes;
}

function sqlitePath(url: string, field: string): string {
  const path = url.replace(/^sqlite:(\/\/)?/i, '');
  if (path !== '' && path !== ':memory:') return resolve(path);
  throw invalid(
    field,
    "'sqlite:' needs a file, such as sqlite:.millrace/events.db; memory: keeps nothing",
  );
}

function postgresTarget(url: string, field: string): Omit<EngineUrl, 'engine'> {
  if (url.includes('#')) throw invalid(field, "a '#' in a PostgreSQL URL must be written as %23");
  const at = url.indexOf('?');
  const address = at === -1 ? url : url.slice(0, at);
  // The driver accepts a URL without a host, for sockets; the parser does not.
  if (!/^[a-z]+:\/\//i.test(url) || !URL.canParse(address.replace('@/', '@localhost/'))) {
    throw invalid(
      field,
      'a PostgreSQL URL looks like postgres://user:password@host:5432/database, with special characters percent-encoded',
    );
  }
  checkNamesDatabase('postgres', url, field);
  const parameters = new URLSearchParams(at === -1 ? '' : url.slice(at + 1));
  const schema = parameters.get('schema');
  if (schema === null) return { connection: url };
  if (!schemaShape.test(schema)) {
    throw invalid(
      field,
      'a schema name must have 1 to 63 lower-case letters, digits and underscores',
    );
  }
  parameters.delete('schema');
  const rest = parameters.toString();
  return { connection: rest === '' ? address : `${address}?${rest}`, schema };
}

function invalid(field: string, message: string): MillraceError {
  return new MillraceError('CONFIG_INVALID', `${field}: ${message}`, { details: { field } });
}
