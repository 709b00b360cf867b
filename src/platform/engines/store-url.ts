// URLs of engines: the chosen engine, the connection of a store, and how they are shown without passwords.

import { closest } from '../../foundation/closest.ts';
import { MillraceError } from '../../foundation/error.ts';

export type StoreUrl =
  | { readonly engine: 'memory' }
  | { readonly engine: 'sqlite'; readonly path: string }
  | { readonly engine: 'mongodb'; readonly connection: string }
  | { readonly engine: 'kurrentdb'; readonly connection: string }
  | { readonly engine: 'postgres'; readonly connection: string; readonly schema: string };

const schemes = {
  sqlite: ['sqlite'],
  postgres: ['postgres', 'postgresql'],
  mongodb: ['mongodb', 'mongodb+srv'],
  kurrentdb: ['kurrentdb', 'kurrentdb+discover', 'esdb', 'esdb+discover'],
  redis: ['redis', 'rediss', 'redis+cluster', 'rediss+cluster'],
  nats: ['nats', 'nats+tls', 'tls'],
  memory: ['memory'],
} as const;

export type Engine = keyof typeof schemes;

const schemaDefault = 'millrace';
/** Needs no quotes in SQL; PostgreSQL silently truncates longer names. */
const schemaShape = /^[a-z_][a-z0-9_]{0,62}$/;

/** Whether the scheme of a URL belongs to this engine. */
export function isEngine(engine: Engine, url: string): boolean {
  return schemes[engine].some((scheme) => scheme === schemeOf(url));
}

/** The engine of a URL. Quotes only the scheme in its error, because the rest may contain a password. */
export function engineOf<Supported extends Engine>(
  field: string,
  url: string,
  supported: readonly Supported[],
): Supported {
  const found = supported.find((engine) => isEngine(engine, url));
  if (found !== undefined) return found;
  const scheme = schemeOf(url);
  const known = supported.flatMap((engine) => schemes[engine]);
  const list = known.map((name) => `${name}:`).join(', ');
  if (scheme === undefined)
    throw invalid(field, `the URL must start with its engine: one of ${list}`);
  const near = closest(scheme, known);
  const hint = near === undefined ? '' : ` Did you mean ${near}:?`;
  throw invalid(field, `engine '${scheme}:' is not supported; supported: ${list}.${hint}`);
}

function schemeOf(url: string): string | undefined {
  return /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase();
}

export function parseStoreUrl(url: string): StoreUrl {
  const stores = ['sqlite', 'postgres', 'mongodb', 'kurrentdb', 'memory'] as const;
  const engine = engineOf('store', url, stores);
  switch (engine) {
    case 'memory':
      return { engine };
    case 'mongodb':
      return { engine, connection: url };
    case 'kurrentdb':
      // The client warns about the old name of this setting.
      return { engine, connection: url.replace(/^esdb/i, 'kurrentdb') };
    case 'sqlite':
      return { engine, path: sqlitePath(url) };
    default:
      return { engine, ...postgresTarget(url) };
  }
}

/**
 * A store URL for logs: its password is replaced by three stars.
 *
 * @example
 * import { redactStoreUrl } from 'millrace/platform';
 *
 * console.log(redactStoreUrl('postgres://app:secret@db/shop')); // postgres://app:***@db/shop
 */
export function redactStoreUrl(url: string): string {
  // Up to the last @, so that a password that should have been encoded is hidden, too.
  return url
    .replace(/^((?:nats|nats\+tls|tls):\/\/)[^:@]*@/i, '$1***@')
    .replace(/^([^:]+:\/\/)([^:@]*):.*@/s, '$1$2:***@')
    .replace(/([?&][^=&]*(?:password|secret|token)[^=&]*=)[^&]*/gi, '$1***');
}

function sqlitePath(url: string): string {
  const path = url.replace(/^sqlite:(\/\/)?/i, '');
  if (path !== '' && path !== ':memory:') return path;
  throw invalid(
    'store',
    "'sqlite:' needs a file, such as sqlite:.millrace/events.db; memory: keeps nothing",
  );
}

function postgresTarget(url: string): { readonly connection: string; readonly schema: string } {
  // Neither the URL nor a cause is quoted, because the problem may be in the password.
  if (url.includes('#')) throw invalid('store', "a '#' in a PostgreSQL URL must be written as %23");
  const at = url.indexOf('?');
  const address = at === -1 ? url : url.slice(0, at);
  // The driver accepts a URL without a host, for sockets; the parser does not.
  if (!/^[a-z]+:\/\//i.test(url) || !URL.canParse(address.replace('@/', '@localhost/'))) {
    throw invalid(
      'store',
      'a PostgreSQL URL looks like postgres://user:password@host:5432/database, with special characters percent-encoded',
    );
  }
  const parameters = new URLSearchParams(at === -1 ? '' : url.slice(at + 1));
  const schema = parameters.get('schema');
  if (schema === null) return { connection: url, schema: schemaDefault };
  checkSchema(schema);
  parameters.delete('schema');
  const rest = parameters.toString();
  return { connection: rest === '' ? address : `${address}?${rest}`, schema };
}

/** The error does not quote the schema: in a malformed URL this part may be a password. */
export function checkSchema(schema: string): void {
  if (schemaShape.test(schema)) return;
  throw invalid(
    'store',
    'a schema name must have 1 to 63 lower-case letters, digits and underscores',
  );
}

function invalid(field: string, message: string): MillraceError {
  return new MillraceError('CONFIG_INVALID', `${field}: ${message}`, { details: { field } });
}

/** With one database, the rows and the checkpoint are written in one commit. */
export function isSameDatabase(one: string, other: string): boolean {
  const [a, b] = [parseStoreUrl(one), parseStoreUrl(other)];
  if (a.engine === 'sqlite' && b.engine === 'sqlite') return a.path === b.path;
  if (a.engine === 'postgres' && b.engine === 'postgres') return a.connection === b.connection;
  return false;
}
