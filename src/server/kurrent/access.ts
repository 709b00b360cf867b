// Access rules: decisions based on an identity and the name and owner of a stream.

import type { StreamOwner } from '../../store/stream-owners.ts';
import type {
  KurrentCredentials,
  KurrentIdentity,
  KurrentServerOptions,
} from './kurrent-server.ts';
import type { RecordedEvent } from '../../store/recorded-event.ts';
import { accessDenied, notAuthenticated } from './rpc-error.ts';

export interface Access {
  /** The identity of the `authorization` header; throws an RpcError for invalid credentials. */
  identify(authorization: string | undefined): Promise<KurrentIdentity>;
  checkRead(identity: KurrentIdentity, stream: string): Promise<void>;
  checkWrite(identity: KurrentIdentity, stream: string): Promise<void>;
  /** For persistent subscriptions: reading or managing a group of this source. */
  checkGroup(identity: KurrentIdentity, source: string, what: 'read' | 'manage'): Promise<void>;
  mayRead(identity: KurrentIdentity, stream: string): Promise<boolean>;
  /** A filter for the events of `$all`; undefined: all events are visible. */
  visible(identity: KurrentIdentity): ((event: ReadableEvent) => boolean) | undefined;
}

type ReadableEvent = Pick<RecordedEvent, 'stream' | 'tenant'>;

/** Internal streams of Millrace, such as the one of tokens. */
const ownPrefix = '$millrace-';

const unrestricted: KurrentIdentity = { mayRead: true, mayWrite: true, isAdmin: true };

export function createAccess(
  { authenticate }: Pick<KurrentServerOptions, 'authenticate'>,
  ownerOf: StreamOwner,
): Access {
  const hasAccess = async (
    identity: KurrentIdentity,
    stream: string,
    what: 'read' | 'write',
  ): Promise<boolean> => {
    const target = stream.startsWith('$$') ? stream.slice(2) : stream;
    if (target.startsWith('$')) return hasSystemAccess(identity, target, what);
    return identity.tenant === undefined || (await ownerOf(target)) === identity.tenant;
  };
  const mayRead = async (identity: KurrentIdentity, stream: string): Promise<boolean> =>
    identity.mayRead && hasAccess(identity, stream, 'read');
  return {
    async identify(authorization) {
      if (authenticate === undefined) return unrestricted;
      const identity = await authenticate(parseCredentials(authorization));
      if (identity !== undefined && identity.ended?.aborted !== true) return identity;
      throw notAuthenticated('missing or invalid credentials');
    },
    mayRead,
    async checkRead(identity, stream) {
      if (!(await mayRead(identity, stream))) throw accessDenied();
    },
    async checkWrite(identity, stream) {
      if (!identity.mayWrite || !(await hasAccess(identity, stream, 'write'))) throw accessDenied();
    },
    async checkGroup(identity, source, what) {
      // Groups of index streams deliver events of all tenants, and groups of `$all` those of the system.
      const isTenantAllowed = identity.tenant === undefined || !isIndex(source);
      const isScopeAllowed = (what === 'read' && !hasSystemEvents(source)) || identity.isAdmin;
      if (!isTenantAllowed || !isScopeAllowed) throw accessDenied();
      if (!(await mayRead(identity, source))) throw accessDenied();
    },
    visible(identity) {
      if (identity.isAdmin && identity.tenant === undefined) return undefined;
      const { tenant } = identity;
      return (event) =>
        identity.mayRead &&
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

/** Whether the stream contains system events. */
function hasSystemEvents(stream: string): boolean {
  return stream === '$all' || stream.startsWith('$et-$');
}

/** Reads of these streams are filtered by tenant. */
function isIndex(stream: string): boolean {
  return stream === '$all' || stream.startsWith('$ce-') || stream.startsWith('$et-');
}

/** A system stream, or the metadata of one. */
function isSystemOnly(stream: string): boolean {
  return (stream.startsWith('$$') ? stream.slice(2) : stream).startsWith('$');
}

function hasSystemAccess(
  identity: KurrentIdentity,
  stream: string,
  what: 'read' | 'write',
): boolean {
  if (isIndex(stream)) return what === 'read';
  // Without authentication no caller may create a token.
  if (stream.startsWith(ownPrefix) && what === 'write' && identity === unrestricted) return false;
  return identity.isAdmin && identity.tenant === undefined;
}
