// Access rules: decisions based on an identity and the name of a stream.

import type { TenantLookup } from '../../contracts/tenant.ts';
import { tenantOfStream } from '../../contracts/stream-name.ts';
import { allowsScope } from '../../platform/tokens/scopes.ts';
import type {
  KurrentCredentials,
  KurrentIdentity,
  KurrentServerOptions,
} from './kurrent-server.ts';
import { accessDenied, notAuthenticated } from './rpc-error.ts';

export interface Access {
  /** The identity of the `authorization` header; throws an RpcError for invalid credentials. */
  identify(authorization: string | undefined): Promise<KurrentIdentity>;
  /** Throws unless the identity has this scope and may use it on this stream. */
  check(identity: KurrentIdentity, stream: string, scope: StreamScope): void;
  /** For persistent subscriptions: reading, operating or managing a group of this source. */
  checkGroup(identity: KurrentIdentity, source: string, scope: 'read' | 'operate' | 'admin'): void;
  mayRead(identity: KurrentIdentity, stream: string): boolean;
  /** A filter for the events of `$all`; undefined: all events are visible. */
  visible(identity: KurrentIdentity): ((event: { readonly stream: string }) => boolean) | undefined;
}

type StreamScope = 'read' | 'append' | 'delete';

/** Streams that this server itself depends on. */
const ownStreams = /^\$(millrace-|persistentsubscription)/i;

/** The adapter of another Millrace process appends its tokens and its audit. */
const appendedByAdapter = '$millrace-';

const unrestricted: KurrentIdentity = { scopes: ['admin'] };

export function createAccess(
  options: Pick<KurrentServerOptions, 'authenticate' | 'tenants'>,
): Access {
  const { authenticate, tenants } = options;
  const mayRead = (identity: KurrentIdentity, stream: string): boolean =>
    hasAccess(identity, stream, tenants, 'read');
  return {
    async identify(authorization) {
      if (authenticate === undefined) return unrestricted;
      const identity = await authenticate(parseCredentials(authorization));
      if (identity !== undefined && identity.ended?.aborted !== true) return identity;
      throw notAuthenticated('missing or invalid credentials');
    },
    mayRead,
    check(identity, stream, scope) {
      if (!hasAccess(identity, stream, tenants, scope)) throw accessDenied();
    },
    checkGroup(identity, source, scope) {
      // Groups of index streams deliver events of all tenants, and groups of `$all` those of the system.
      const isTenantAllowed = identity.tenant === undefined || !isIndex(source);
      const needed = scope === 'read' && hasSystemEvents(source) ? 'admin' : scope;
      const isScopeAllowed = allowsScope(identity.scopes, needed);
      const isReachable = isWithinReach(identity, source, tenants);
      if (!isTenantAllowed || !isScopeAllowed || !isReachable) throw accessDenied();
    },
    visible(identity) {
      if (isGlobalAdmin(identity)) return undefined;
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
  scope: StreamScope,
): boolean {
  if (stream.startsWith('$$')) {
    // The metadata of a stream can remove all of its events.
    return hasAccess(identity, stream.slice(2), tenants, scope === 'read' ? 'read' : 'delete');
  }
  if (!allowsScope(identity.scopes, scope)) return false;
  if (scope !== 'read' && stream.startsWith('$') && !mayWriteSystem(identity, stream, scope)) {
    return false;
  }
  return isWithinReach(identity, stream, tenants);
}

/** System streams of the server are never removed, and without authentication no caller writes one. */
function mayWriteSystem(
  identity: KurrentIdentity,
  stream: string,
  scope: 'append' | 'delete',
): boolean {
  if (isIndex(stream) || identity === unrestricted) return false;
  return !ownStreams.test(stream) || (scope === 'append' && stream.startsWith(appendedByAdapter));
}

/** Whether the stream is one of the identity's tenant, or a system stream of an administrator. */
function isWithinReach(
  identity: KurrentIdentity,
  stream: string,
  tenants: TenantLookup | undefined,
): boolean {
  if (stream.startsWith('$$')) return isWithinReach(identity, stream.slice(2), tenants);
  if (stream.startsWith('$')) return isIndex(stream) || isGlobalAdmin(identity);
  return identity.tenant === undefined || tenantOfStream(stream, tenants) === identity.tenant;
}

function isGlobalAdmin({ scopes, tenant }: KurrentIdentity): boolean {
  return tenant === undefined && scopes.includes('admin');
}
