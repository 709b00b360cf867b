// Who may do what: pure decisions on an identity and a stream's name.

import type { TenantLookup } from '../../contracts/tenant.ts';
import { tenantOfStream } from './events/event-place.ts';
import type {
  KurrentCredentials,
  KurrentIdentity,
  KurrentServerOptions,
} from './kurrent-server.ts';
import { accessDenied, notAuthenticated } from './refusal.ts';

export interface Access {
  /** Who calls, by the `authorization` header; refuses whom nobody knows. */
  identify(authorization: string | undefined): Promise<KurrentIdentity>;
  checkRead(identity: KurrentIdentity, stream: string): void;
  checkWrite(identity: KurrentIdentity, stream: string): void;
  /** Of persistent subscriptions: who may read, or make and change, a group of this source. */
  checkGroup(identity: KurrentIdentity, source: string, what: 'read' | 'manage'): void;
  mayRead(identity: KurrentIdentity, stream: string): boolean;
  /** Which events of all it sees; undefined: every one. */
  visible(identity: KurrentIdentity): ((event: { readonly stream: string }) => boolean) | undefined;
}

/** Streams of Millrace's own, such as those of tokens. */
const ownPrefix = '$millrace-';

const everybody: KurrentIdentity = { mayRead: true, mayWrite: true, isAdmin: true };

export function createAccess(
  options: Pick<KurrentServerOptions, 'authenticate' | 'tenants'>,
): Access {
  const { authenticate, tenants } = options;
  const mayRead = (identity: KurrentIdentity, stream: string): boolean =>
    identity.mayRead && reaches(identity, stream, tenants, 'read');
  return {
    async identify(authorization) {
      if (authenticate === undefined) return everybody;
      const identity = await authenticate(parseCredentials(authorization));
      if (identity !== undefined && identity.ended?.aborted !== true) return identity;
      throw notAuthenticated('the credentials were not accepted');
    },
    mayRead,
    checkRead(identity, stream) {
      if (!mayRead(identity, stream)) throw accessDenied();
    },
    checkWrite(identity, stream) {
      if (!identity.mayWrite || !reaches(identity, stream, tenants, 'write')) throw accessDenied();
    },
    checkGroup(identity, source, what) {
      // A group over many streams delivers all tenants' events, and one over all those of the system.
      const whole = identity.tenant === undefined || !isIndex(source);
      const may = (what === 'read' && !holdsSystem(source)) || identity.isAdmin;
      if (!whole || !may || !mayRead(identity, source)) throw accessDenied();
    },
    visible(identity) {
      if (identity.isAdmin && identity.tenant === undefined) return undefined;
      return ({ stream }) => mayRead(identity, stream);
    },
  };
}

/** Undefined: none, or none that we can read. */
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

/** Events of the system come through these, with whatever they tell. */
function holdsSystem(stream: string): boolean {
  return stream === '$all' || stream.startsWith('$et-$');
}

/** `$all`, `$ce-` and `$et-` are read through a filter by tenant. */
function isIndex(stream: string): boolean {
  return stream === '$all' || stream.startsWith('$ce-') || stream.startsWith('$et-');
}

function reaches(
  identity: KurrentIdentity,
  stream: string,
  tenants: TenantLookup | undefined,
  what: 'read' | 'write',
): boolean {
  if (stream.startsWith('$$')) return reaches(identity, stream.slice(2), tenants, what);
  if (stream.startsWith('$')) {
    if (isIndex(stream)) return what === 'read';
    // Where nobody is asked who he is, nobody may give himself a key for later.
    if (stream.startsWith(ownPrefix) && what === 'write' && identity === everybody) return false;
    return identity.isAdmin && identity.tenant === undefined;
  }
  return identity.tenant === undefined || tenantOfStream(stream, tenants) === identity.tenant;
}
