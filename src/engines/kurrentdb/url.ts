// Checks a connection string before the client parses it: the client would print an unknown parameter with the whole
// URL, password included.

import { closest } from '../../foundation/closest.ts';
import { MillraceError } from '../../foundation/error.ts';

export interface KurrentdbUrl {
  /** For the client: with the current name of the scheme, because it prints a warning for each `esdb:` client. */
  readonly connection: string;
  /** Only if user or password are percent-encoded: the client's bridge does not decode them. */
  readonly credentials: { readonly username: string; readonly password: string } | undefined;
}

/** The parameters of the client; it ignores case, `_` and `-`. */
const parameters = [
  'connectionName',
  'defaultDeadline',
  'discoveryInterval',
  'gossipTimeout',
  'keepAliveInterval',
  'keepAliveTimeout',
  'maxDiscoverAttempts',
  'nodePreference',
  'throwOnAppendFailure',
  'tls',
  'tlsCAFile',
  'tlsVerifyCert',
  'userCertFile',
  'userKeyFile',
] as const;

const known = new Set(parameters.map(flat));
/** User and password end at the last @ before the parameters: an unencoded @ in a password is then an error here. */
const shape =
  /^(?<scheme>[a-z]+(?:\+discover)?):\/\/(?:(?<user>[^?]*)@)?(?<hosts>[^?@]*)(?:\?(?<query>.*))?$/is;
const schemes = /^(?:esdb|kurrentdb|kurrent|kdb)(?:\+discover)?$/i;

export function parseKurrentdbUrl(url: string): KurrentdbUrl {
  const { scheme = '', user, hosts = '', query = '' } = shape.exec(url.trim())?.groups ?? {};
  if (!schemes.test(scheme) || hosts === '') throw invalid('its form is wrong');
  for (const pair of query === '' ? [] : query.replace(/\/+$/, '').split('&')) checkParameter(pair);
  return {
    connection: url.trim().replace(/^esdb/i, 'kurrentdb'),
    credentials: user === undefined ? undefined : encodedCredentials(user),
  };
}

function checkParameter(pair: string): void {
  const [name = '', value = ''] = pair.split('=');
  if (!known.has(flat(name))) {
    const near = closest(name, parameters);
    const hint = near === undefined ? `known: ${parameters.join(', ')}` : `did you mean '${near}'?`;
    throw invalid(`unknown parameter '${name.slice(0, 40)}': ${hint}`);
  }
  if (value === '') throw invalid(`parameter '${name}' has no value`);
}

function encodedCredentials(user: string): KurrentdbUrl['credentials'] {
  const [username = '', password = '', ...rest] = user.split(':');
  if (password === '' || rest.length > 0 || user.includes('@')) {
    throw invalid('write user and password as user:password, with : / @ and % percent-encoded');
  }
  if (!user.includes('%')) return undefined;
  try {
    return { username: decodeURIComponent(username), password: decodeURIComponent(password) };
  } catch {
    // The error of the decoder quotes the password.
    throw invalid('user or password has an invalid percent-encoding: write % as %25');
  }
}

function flat(name: string): string {
  return name.trim().toLowerCase().replace(/[_-]/g, '');
}

/** Quotes nothing of the URL that may contain a password. */
export function invalid(reason: string): MillraceError {
  return new MillraceError(
    'CONFIG_INVALID',
    `invalid KurrentDB URL: ${reason}; use kurrentdb://user:password@host:2113?tls=true`,
    { details: { reason } },
  );
}
