// Access rules: decisions based on an identity and the name of a stream.

import type { TenantLookup } from '../../contracts/tenant.ts';
import { tenantOfStream } from '../../contracts/stream-name.ts';
import type {
  KurrentCredentials,
  KurrentIdentity,
  KurrentServerOptions,
} from './kurrent-server.ts';
import { accessDenied, notAuthenticated } from './rpc-error.ts';

export interface Access {
  /** The identity of the `authorization` header; throws an RpcError for invalid credentials. */
  identify(authorization: string | undefined): Promise<KurrentIdentity>;
  checkRead(identity: KurrentIdentity, stream: string): void;
  checkWrite(identity: KurrentIdentity, stream: string): void;
  /** For persistent subscriptions: reading or managing a group of this source. */
  checkGroup(identity: KurrentIdentity, source: string, what: 'read' | 'manage'): void;
  mayRead(identity: KurrentIdentity, stream: string): boolean;
  /** A filter for the events of `$all`; undefined: all events are visible. */
  visible(identity: KurrentIdentity): ((event: { readonly stream: string }) => boolean) | undefined;
}

/** Internal streams of Millrace, such as the one of tokens. */
const ownPrefix = '$millrace-';

const unrestricted: KurrentIdentity = { mayRead: true, mayWrite: true, isAdmin: true };

export function createAccess(
  options: Pick<KurrentServerOptions, 'authenticate' | 'tenants'>,
): Access {
  const { authenticate, tenants } = options;
  const mayRead = (identity: KurrentIdentity, stream: string): boolean =>
    identity.mayRead && hasAccess(identity, stream, tenants, 'read');
  return {
    async identify(authorization) {
      if (authenticate === undefined) return unrestricted;
      const identity = await authenticate(parseCredentials(authorization));
      if (identity !== undefined && identity.ended?.aborted !== true) return identity;
      throw notAuthenticated('missing or invalid credentials');
    },
    mayRead,
    checkRead(identity, stream) {
      if (!mayRead(identity, stream)) throw accessDenied();
    },
    checkWrite(identity, stream) {
      if (!identity.mayWrite || !hasAccess(identity, stream, tenants, 'write'))
        throw accessDenied();
    },
    checkGroup(identity, source, what) {
      // Groups of index streams deliver events of all tenants, and groups of `$all` those of the system.
      const isTenantAllowed = identity.tenant === undefined || !isIndex(source);
      const isScopeAllowed = (what === 'read' && !hasSystemEvents(source)) || identity.isAdmin;
      if (!isTenantAllowed || !isScopeAllowed || !mayRead(identity, source)) throw accessDenied();
    },
    visible(identity) {
      if (identity.isAdmin && identity.tenant === undefined) return undefined;
      return ({ stream }) => mayRead(identity, stream);
    },
  };
}

/** Undefined: absent or not supported. */
export function parseCredentials(
  authorization: string | undefined,
): KurrentCredentials | undefined {
  const match = /^(basic|bearer) +(\S+)$/i.exec(authorization ?? '');
  if (match === null) return undefined;
  const [, scheme = '', value = ''] = match;
  if (scheme.toLowerCase() === 'bearer') return { kind: 'bearer', token: value };
  const text = Buffer.from(value, 'base64').toString('utf8');
  const at = text.indexOf(':');
  if (at === -1) return undefined;
  return { kind: 'basic', username: text.slice(0, at), password: text.slice(at + 1) };
}

/** Whether the stream contains system events. */
function hasSystemEvents(stream: string): boolean {
  return stream === '$all' || stream.startsWith('$et-$');
}

/** Reads of these streams are filtered by tenant. */
function isIndex(stream: string): boolean {
  return stream === '$all' || stream.startsWith('$ce-') || stream.startsWith('$et-');
}

function hasAccess(
  identity: KurrentIdentity,
  stream: string,
  tenants: TenantLookup | undefined,
  what: 'read' | 'write',
): boolean {
  if (stream.startsWith('$$')) return hasAccess(identity, stream.slice(2), tenants, what);
  if (stream.startsWith('$')) {
    if (isIndex(stream)) return what === 'read';
    // Without authentication no caller may create a token.
    if (stream.startsWith(ownPrefix) && what === 'write' && identity === unrestricted) return false;
    return identity.isAdmin && identity.tenant === undefined;
  }
  return identity.tenant === undefined || tenantOfStream(stream, tenants) === identity.tenant;
}
