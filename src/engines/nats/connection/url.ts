// Parses the URL of a NATS server or cluster.

import { MillraceError } from '../../../foundation/error.ts';
import { parseHostPort } from '../../../foundation/host-port.ts';

export interface NatsAddress {
  readonly tls: boolean;
  /** Each `host:port`; any of them leads to the rest of the cluster. */
  readonly servers: readonly string[];
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly token: string | undefined;
}

const portDefault = 4222;

/** `nats://user:password@host:4222`, `nats://token@host`, several hosts with commas; `tls:` or `nats+tls:`. */
export function parseNatsUrl(url: string): NatsAddress {
  const parts =
    /^(?<scheme>nats|tls|nats\+tls):\/\/(?:(?<user>[^@]*)@)?(?<hosts>[^@/?#]+)\/?$/i.exec(
      url,
    )?.groups;
  if (parts === undefined) throw invalid();
  const [user = '', ...rest] = (parts['user'] ?? '').split(':');
  const hasPassword = rest.length > 0;
  return {
    tls: parts['scheme']?.toLowerCase() !== 'nats',
    servers: (parts['hosts'] ?? '').split(',').map(serverOf),
    user: hasPassword ? decoded(user) : undefined,
    password: hasPassword ? decoded(rest.join(':')) : undefined,
    token: !hasPassword && user !== '' ? decoded(user) : undefined,
  };
}

function serverOf(text: string): string {
  const parsed = parseHostPort(text, portDefault);
  if (parsed === undefined) throw invalid();
  return `${parsed.host}:${parsed.port}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid();
  }
}

/** The error does not quote the URL, which may contain a password. */
function invalid(): MillraceError {
  return new MillraceError(
    'CONFIG_INVALID',
    'invalid NATS URL: use nats://user:password@host:4222 (nats+tls: for TLS), with special characters percent-encoded',
    { details: { field: 'nats' } },
  );
}
