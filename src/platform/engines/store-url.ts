// Store URLs: the chosen engine, its connection, and how they are shown without passwords.

import { closest } from '../../foundation/closest.ts';
import { MillraceError } from '../../foundation/error.ts';

export type StoreUrl =
  | { readonly engine: 'memory' }
  | { readonly engine: 'sqlite'; readonly path: string }
  | { readonly engine: 'mongodb'; readonly connection: string }
  | { readonly engine: 'kurrentdb'; readonly connection: string }
  | { readonly engine: 'postgres'; readonly connection: string; readonly schema: string };

const known = [
  'sqlite',
  'postgres',
  'postgresql',
  'mongodb',
  'mongodb+srv',
  'kurrentdb',
  'kurrentdb+discover',
  'esdb',
  'esdb+discover',
  'memory',
] as const;

const schemaDefault = 'millrace';
/** Needs no quotes in SQL; PostgreSQL silently truncates longer names. */
const schemaShape = /^[a-z_][a-z0-9_]{0,62}$/;

export function parseStoreUrl(url: string): StoreUrl {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase();
  switch (scheme) {
    case 'memory':
      return { engine: 'memory' };
    case 'mongodb':
    case 'mongodb+srv':
      return { engine: 'mongodb', connection: url };
    case 'kurrentdb':
    case 'kurrentdb+discover':
    case 'esdb':
    case 'esdb+discover':
      // The client warns about the old name of this setting.
      return { engine: 'kurrentdb', connection: url.replace(/^esdb/i, 'kurrentdb') };
    case 'sqlite':
      return { engine: 'sqlite', path: sqlitePath(url) };
    case 'postgres':
    case 'postgresql':
      return { engine: 'postgres', ...postgresTarget(url) };
    default:
      throw unknownScheme(scheme);
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
    "'sqlite:' needs a file, such as sqlite:.millrace/events.db; memory: keeps nothing",
  );
}

function postgresTarget(url: string): { readonly connection: string; readonly schema: string } {
  // Neither the URL nor a cause is quoted, because the problem may be in the password.
  if (url.includes('#')) throw invalid("a '#' in a PostgreSQL URL must be written as %23");
  const at = url.indexOf('?');
  const address = at === -1 ? url : url.slice(0, at);
  // The driver accepts a URL without a host, for sockets; the parser does not.
  if (!/^[a-z]+:\/\//i.test(url) || !URL.canParse(address.replace('@/', '@localhost/'))) {
    throw invalid(
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

/** Not quoted in the message, because a malformed URL may contain anything here. */
export function checkSchema(schema: string): void {
  if (schemaShape.test(schema)) return;
  throw invalid('a schema is up to 63 lower-case letters, digits and underscores');
}

function unknownScheme(scheme: string | undefined): MillraceError {
  const list = known.map((name) => `${name}:`).join(', ');
  if (scheme === undefined) {
    return invalid(
      `a store URL starts with its engine: one of ${list} (sqlite:.millrace/events.db)`,
    );
  }
  const near = closest(scheme, known);
  const hint = near === undefined ? '' : ` Did you mean ${near}:?`;
  return invalid(`unknown store engine '${scheme}:'; known: ${list}.${hint}`);
}

function invalid(message: string): MillraceError {
  return new MillraceError('CONFIG_INVALID', message, { details: { field: 'store' } });
}

/** Then rows and checkpoint are one commit. */
export function isSameDatabase(one: string, other: string): boolean {
  const [a, b] = [parseStoreUrl(one), parseStoreUrl(other)];
  if (a.engine === 'sqlite' && b.engine === 'sqlite') return a.path === b.path;
  if (a.engine === 'postgres' && b.engine === 'postgres') return a.connection === b.connection;
  return false;
}
