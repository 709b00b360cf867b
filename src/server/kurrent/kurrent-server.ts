// What the facade is started with, and what the starter gets back.

import type { Observer } from '../../foundation/observer.ts';
import type { TenantLookup } from '../../contracts/tenant.ts';
import type { Clock } from '../../foundation/clock.ts';

export interface KurrentServer extends AsyncDisposable {
  readonly port: number;
  /** What official clients connect with: `kurrentdb://127.0.0.1:2113?tls=false`. */
  readonly url: string;
}

export interface KurrentServerOptions {
  /** Default: 127.0.0.1. Any other than a loopback address needs `authenticate` and `tls`. */
  readonly host?: string;
  /** Default: 2113; 0 takes a free one. */
  readonly port?: number;
  /** Where clients of other servers over the same database are told to find it. Default: as it listens. */
  readonly advertise?: { readonly host: string; readonly port: number };
  /** PEM texts. Default: no TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
  readonly observer?: Observer;
  /**
   * Who calls; undefined refuses the call. Default: everybody may do everything, but for the records
   * that tokens are kept in.
   */
  readonly authenticate?: (
    credentials: KurrentCredentials | undefined,
  ) => KurrentIdentity | undefined | Promise<KurrentIdentity | undefined>;
  /** Tells where a tenant with a hyphen ends in a stream's name. */
  readonly tenants?: TenantLookup;
  readonly limits?: Partial<KurrentLimits>;
  readonly clock?: Clock;
  /** Stops the server like its disposal. */
  readonly signal?: AbortSignal;
}

/** As the `authorization` header of a call carries them. */
export type KurrentCredentials =
  | { readonly kind: 'basic'; readonly username: string; readonly password: string }
  | { readonly kind: 'bearer'; readonly token: string };

export interface KurrentIdentity {
  /** Bound to this tenant's streams; absent: not bound. */
  readonly tenant?: string;
  readonly mayRead: boolean;
  readonly mayWrite: boolean;
  /** May also read and write system streams and manage persistent subscriptions. */
  readonly isAdmin: boolean;
  /** Shown in the information about persistent subscriptions. */
  readonly name?: string;
  /** Fires when it no longer holds (revoked, expired): calls that it was let in for end. */
  readonly ended?: AbortSignal;
}

export interface KurrentLimits {
  /** Data, metadata and types of one append together. */
  readonly appendBytesMax: number;
  /** One gRPC message that comes in. */
  readonly messageBytesMax: number;
  /** Calls at a time on one connection. */
  readonly callsPerConnectionMax: number;
  /** Calls at a time on all connections together. */
  readonly callsMax: number;
  /** Events that are read from the store in one go for one reader. */
  readonly pageEventsMax: number;
  /** Live subscriptions of all clients together, persistent ones included. */
  readonly subscriptionsMax: number;
  /** Appends of one BatchAppend call that wait for the store; more are not read from the wire. */
  readonly appendsInFlightMax: number;
  /** The same, counted in bytes. */
  readonly appendBytesInFlightMax: number;
  /** Batches of one BatchAppend call that have begun and not ended. */
  readonly openBatchesMax: number;
  /** Persistent subscription groups. */
  readonly groupsMax: number;
  /** How long after its death another server over the same database takes over its groups. */
  readonly groupLeaseMs: number;
  readonly keepaliveIntervalMs: number;
  readonly keepaliveTimeoutMs: number;
  /** How long a stop waits for calls under way. */
  readonly stopMsMax: number;
}

/**
 * The bounds that hold unless `limits` says otherwise.
 *
 * @example
 * import { kurrentLimits } from 'millrace/server/kurrent';
 *
 * console.log(kurrentLimits.appendBytesMax); // 1048576
 */
export const kurrentLimits: KurrentLimits = {
  appendBytesMax: 1_048_576,
  messageBytesMax: 17 * 1_048_576,
  callsPerConnectionMax: 1_000,
  callsMax: 20_000,
  pageEventsMax: 200,
  subscriptionsMax: 10_000,
  appendsInFlightMax: 512,
  appendBytesInFlightMax: 16 * 1_048_576,
  openBatchesMax: 64,
  groupsMax: 1_000,
  groupLeaseMs: 6_000,
  keepaliveIntervalMs: 10_000,
  keepaliveTimeoutMs: 10_000,
  stopMsMax: 5_000,
};
