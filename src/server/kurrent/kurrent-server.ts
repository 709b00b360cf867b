// The options, limits and handle of the KurrentDB-compatible server.

import type { EventStoreOptions } from '../../store/event-store.ts';
import type { Observer } from '../../foundation/observer.ts';
import type { TenantLookup } from '../../contracts/tenant.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { AuditLog } from '../../platform/audit-log.ts';
import type { AcceptEvent } from '../../platform/modules/append-rules.ts';
import type { SecretHider } from '../../platform/modules/hide-secrets.ts';
import type { TokenScope } from '../../platform/tokens/scopes.ts';
import type { LeaseStore } from '../../subscriptions/subscription-storage.ts';

export interface KurrentServer extends AsyncDisposable {
  readonly port: number;
  /** The connection string for official clients: `kurrentdb://127.0.0.1:2113?tls=false`. */
  readonly url: string;
}

export interface KurrentServerOptions {
  /**
   * Leases in the database of the store (`db.subscriptions.leases`): several servers elect the one that runs the persistent
   * subscriptions. Default: this server runs them.
   */
  readonly leases?: LeaseStore | undefined;
  /** Default: 127.0.0.1. Addresses other than loopback need `authenticate` and `tls`. */
  readonly host?: string | undefined;
  /** Default: 2113; 0: any free port. */
  readonly port?: number | undefined;
  /** The address that other servers on the same database announce to clients. Default: the listening address. */
  readonly advertise?: { readonly host: string; readonly port: number } | undefined;
  /** Keys and certificates in PEM format. Default: no TLS. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  readonly observer?: Observer | undefined;
  /**
   * Returns the identity of the caller; undefined rejects the call. Default: all callers may do everything except
   * writing to system streams.
   */
  readonly authenticate?:
    | ((
        credentials: KurrentCredentials | undefined,
      ) => KurrentIdentity | undefined | Promise<KurrentIdentity | undefined>)
    | undefined;
  /** The rules of modules for appended events (`createAppendRules`). Default: all events are accepted. */
  readonly accept?: AcceptEvent | undefined;
  /** Hides secret fields of modules (`createSecretHider`). Default: all fields are sent. */
  readonly hider?: SecretHider | undefined;
  /** Finds the end of a tenant that contains a hyphen in the name of a stream. */
  readonly tenants?: TenantLookup | undefined;
  /** Records who deletes streams. Default: deletions are not recorded. */
  readonly audit?: Pick<AuditLog, 'run'> | undefined;
  readonly limits?: Partial<KurrentLimits> | undefined;
  readonly clock?: Clock | undefined;
  /** Stops the server, as its disposal does. */
  readonly signal?: AbortSignal | undefined;
}

/** The `authorization` header of a call. */
export type KurrentCredentials =
  | { readonly kind: 'basic'; readonly username: string; readonly password: string }
  | { readonly kind: 'bearer'; readonly token: string };

export interface KurrentIdentity {
  /** Restricts access to the streams of this tenant. Absent: all tenants. */
  readonly tenant?: string | undefined;
  readonly scopes: readonly TokenScope[];
  /** Shown in the information about persistent subscriptions. */
  readonly name?: string | undefined;
  /** Fires when the credentials are revoked or expire, which ends their calls. */
  readonly ended?: AbortSignal | undefined;
}

export interface KurrentLimits {
  /** The size of data, metadata and types of one append. */
  readonly appendBytesMax: number;
  /** The size of a received gRPC message. */
  readonly messageBytesMax: number;
  /** Concurrent calls per connection. */
  readonly callsPerConnectionMax: number;
  /** Concurrent calls of all connections. */
  readonly callsMax: number;
  /** Events per page of a read from the store. */
  readonly pageEventsMax: number;
  /** The size in memory of a page; a reader that does not read has up to two of them. */
  readonly pageBytesMax: number;
  /** Live subscriptions of all clients, including consumers of persistent subscriptions. */
  readonly subscriptionsMax: number;
  /** Running appends per BatchAppend call; further ones stay unread on the connection. */
  readonly appendsInFlightMax: number;
  /** The size of the running appends per BatchAppend call. */
  readonly appendBytesInFlightMax: number;
  /** Incomplete batches per BatchAppend call. */
  readonly openBatchesMax: number;
  /** The size of the incomplete batches per BatchAppend call. */
  readonly openBatchBytesPerCallMax: number;
  /** The size of the incomplete appends and batches of all calls. */
  readonly openAppendBytesMax: number;
  /** The size of the running appends of all calls; calls with several appends stop reading at half of it. */
  readonly runningAppendBytesMax: number;
  /** An incomplete append or batch that gets no message for this long is rejected. */
  readonly openAppendIdleMsMax: number;
  /** Maximum number of persistent subscription groups. */
  readonly groupsMax: number;
  /** The size of the messages that all groups hold; at this size, each group reads only while it holds none. */
  readonly groupBytesMax: number;
  /** The time until another server takes over the groups of a killed one. */
  readonly groupLeaseMs: number;
  readonly keepaliveIntervalMs: number;
  readonly keepaliveTimeoutMs: number;
  /** The time that `stop` waits for running calls. */
  readonly stopMsMax: number;
}

/**
 * The default limits.
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
  pageBytesMax: 262_144,
  subscriptionsMax: 10_000,
  appendsInFlightMax: 512,
  appendBytesInFlightMax: 16 * 1_048_576,
  openBatchesMax: 64,
  openBatchBytesPerCallMax: 16 * 1_048_576,
  openAppendBytesMax: 64 * 1_048_576,
  runningAppendBytesMax: 128 * 1_048_576,
  openAppendIdleMsMax: 30_000,
  groupsMax: 1_000,
  groupBytesMax: 64 * 1_048_576,
  groupLeaseMs: 6_000,
  keepaliveIntervalMs: 10_000,
  keepaliveTimeoutMs: 10_000,
  stopMsMax: 5_000,
};

/**
 * Options for a store behind this server: any names, and room for binary data, which base64 enlarges by a third.
 *
 * @example
 * import { openSqlite } from 'millrace/engines/sqlite';
 * import { kurrentStoreOptions } from 'millrace/server/kurrent';
 *
 * await using db = await openSqlite('sqlite:.millrace/events.db', kurrentStoreOptions);
 */
export const kurrentStoreOptions = {
  names: 'open',
  payloadBytesMax: 24 * 1_048_576,
} as const satisfies EventStoreOptions;
