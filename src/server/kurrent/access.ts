// Access rules: decisions based on an identity and the name and owner of a stream.

import { allowsScope } from '../../platform/tokens/scopes.ts';
import { isKeyStream } from '../../store/erasure.ts';
import type { RecordedEvent } from '../../store/recorded-event.ts';
import type { StreamOwner } from '../../store/stream-owners.ts';
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
  check(identity: KurrentIdentity, stream: string, scope: StreamScope): Promise<void>;
  /** For persistent subscriptions: reading, operating or managing a group of this source. */
  checkGroup(
    identity: KurrentIdentity,
    source: string,
    scope: 'read' | 'operate' | 'admin',
  ): Promise<void>;
  mayRead(identity: KurrentIdentity, stream: string): Promise<boolean>;
  /** A filter for the events of `$all`; undefined: all events are visible. */
  visible(identity: KurrentIdentity): ((event: ReadableEvent) => boolean) | undefined;
}

type StreamScope = 'read' | 'append' | 'delete';
type ReadableEvent = Pick<RecordedEvent, 'stream' | 'tenant'>;

/** Streams that this server itself depends on. */
const ownStreams = /^\$(millrace-|persistentsubscription)/i;

/** The adapter of another Millrace process appends its tokens and its audit. */
const appendedByAdapter = '$millrace-';

const unrestricted: KurrentIdentity = { scopes: ['admin'] };

export function createAccess(
  { authenticate }: Pick<KurrentServerOptions, 'authenticate'>,
  ownerOf: StreamOwner,
): Access {
  /** Whether the stream is one of the identity's tenant, or a system stream of an administrator. */
  const isWithinReach = async (identity: KurrentIdentity, stream: string): Promise<boolean> => {
    if (stream.startsWith('$$')) return isWithinReach(identity, stream.slice(2));
    if (stream.startsWith('$')) return isIndex(stream) || isGlobalAdmin(identity);
    if (isKeyStream(stream)) return isGlobalAdmin(identity);
    return identity.tenant === undefined || (await ownerOf(stream)) === identity.tenant;
  };
  const hasAccess = async (
    identity: KurrentIdentity,
    stream: string,
    scope: StreamScope,
  ): Promise<boolean> => {
    if (stream.startsWith('$$')) {
      // The metadata of a stream can remove all of its events.
      return hasAccess(identity, stream.slice(2), scope === 'read' ? 'read' : 'delete');
    }
    if (!allowsScope(identity.scopes, scope)) return false;
    if (scope !== 'read' && stream.startsWith('$') && !mayWriteSystem(identity, stream, scope)) {
      return false;
    }
    return isWithinReach(identity, stream);
  };
  const mayRead = (identity: KurrentIdentity, stream: string): Promise<boolean> =>
    hasAccess(identity, stream, 'read');
  return {
    async identify(authorization) {
      if (authenticate === undefined) return unrestricted;
      const identity = await authenticate(parseCredentials(authorization));
      if (identity !== undefined && identity.ended?.aborted !== true) return identity;
      throw notAuthenticated('missing or invalid credentials');
    },
    mayRead,
    async check(identity, stream, scope) {
      if (!(await hasAccess(identity, stream, scope))) throw accessDenied();
    },
    async checkGroup(identity, source, scope) {
      // Groups of index streams deliver events of all tenants, and groups of `$all` those of the system.
      const isTenantAllowed = identity.tenant === undefined || !isIndex(source);
      const needed = scope === 'read' && hasSystemEvents(source) ? 'admin' : scope;
      if (!isTenantAllowed || !allowsScope(identity.scopes, needed)) throw accessDenied();
      if (!(await isWithinReach(identity, source))) throw accessDenied();
    },
    visible(identity) {
      if (isGlobalAdmin(identity)) return undefined;
      const { tenant, scopes } = identity;
      const mayReadAny = allowsScope(scopes, 'read');
      return (event) =>
        mayReadAny &&
        (tenant === undefined ? !isSystemOnly(event.stream) : event.tenant === tenant);
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

/** Whether the stream contains system events, such as keys of data subjects. */
function hasSystemEvents(stream: string): boolean {
  if (stream === '$all' || stream.startsWith('$et-$')) return true;
  return stream.startsWith('$ce-') && isKeyStream(`${stream.slice('$ce-'.length)}-`);
}

/** Reads of these streams are filtered by tenant. */
function isIndex(stream: string): boolean {
  return stream === '$all' || stream.startsWith('$ce-') || stream.startsWith('$et-');
}

/** A system stream or a stream of keys, or the metadata of one. */
function isSystemOnly(stream: string): boolean {
  if (isKeyStream(stream)) return true;
  return (stream.startsWith('$$') ? stream.slice(2) : stream).startsWith('$');
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

function isGlobalAdmin({ scopes, tenant }: KurrentIdentity): boolean {
  return tenant === undefined && scopes.includes('admin');
}
