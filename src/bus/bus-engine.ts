// The port of an engine, which stores and leases bytes. `createBus` adds everything that the engines share: envelopes,
// dead letters, consumer loops and requests.
//
// Rules for every call:
// - While the broker is unreachable, a call rejects within seconds with a retryable `BUS_UNAVAILABLE`. The engine
//   reconnects by itself, so a later call succeeds.
// - An acknowledged write is as durable as the settings of the engine promise.
// - Subjects are already validated. A subject whose first token begins with `_` is a system subject: a filter matches
//   it only with the same literal first token (`matchesFilter`).

import { matchSubject } from '../contracts/subject-match.ts';
import type {
  BusCapabilities,
  GroupInfo,
  PendingMessage,
  StartFrom,
  StreamInfo,
  Trimmed,
  TrimOrder,
} from './bus.ts';
import type { SettleOutcome } from './bus-message.ts';

/** One message to store. */
export interface EngineEntry {
  readonly subject: string;
  /** Identifies duplicates within the subject. */
  readonly id: string;
  readonly data: Uint8Array;
  /** A few hundred ASCII characters, stored unchanged with the data. */
  readonly meta?: string | undefined;
}

export interface Appended {
  readonly sequence: string;
  readonly isDuplicate: boolean;
}

export interface StoredEntry {
  readonly subject: string;
  readonly sequence: string;
  readonly position: string | undefined;
  /** By the broker's clock. */
  readonly storedAtMs: number;
  /** For an entry that another program wrote without an envelope: bytes that represent it. */
  readonly data: Uint8Array;
  readonly meta: string | undefined;
}

export interface LeasedEntry extends StoredEntry {
  /** Identifies this delivery of this message; opaque. */
  readonly token: string;
  /** Starts at 1; includes deliveries whose lease expired. */
  readonly deliveryCount: number;
  /** Why the data cannot be read: no handler gets it. */
  readonly unreadable?: string | undefined;
}

export type Settlement =
  | { readonly kind: 'ack'; readonly token: string }
  /** Available again after the delay; until then it is pending and counts for `maxAckPending`. */
  | { readonly kind: 'nack'; readonly token: string; readonly delayMs: number }
  /** No handler has started: available at once, and the delivery is not counted (`uncountedRelease`). */
  | { readonly kind: 'release'; readonly token: string }
  /** Renews the lease of the message. */
  | { readonly kind: 'extend'; readonly token: string }
  /** Stores the dead letter and acks the message: atomically if the engine can, otherwise in this order. */
  | { readonly kind: 'dead'; readonly token: string; readonly letter: EngineEntry };

export interface GroupSettings {
  readonly name: string;
  /** The pattern of the group and `_redo.<group>`; no subject matches both. */
  readonly filters: readonly string[];
  /** Where a new group starts in existing streams. It reads later streams from their start. */
  readonly from: StartFrom;
  readonly leaseMs: number;
  /** The maximum number of messages of the group that are leased or delayed. */
  readonly maxAckPending: number;
}

export interface FetchRequest {
  readonly limit: number;
  /** How long to wait for the first message; 0: do not wait. */
  readonly waitMs: number;
  /** Ends the wait with `ABORTED`. Messages leased by then are released or returned. */
  readonly signal: AbortSignal;
}

export interface ReadRequest {
  readonly from: StartFrom;
  /** False: ends after the last message that existed at the call. */
  readonly isLive: boolean;
  /** Ends the read; a wait then rejects with `ABORTED`. */
  readonly signal: AbortSignal;
  /** The maximum size of a batch. */
  readonly batchMax: number;
}

export interface BusEngine extends AsyncDisposable {
  readonly capabilities: BusCapabilities;

  /**
   * Stores in the given order (per subject). Without `atomicBatch` some entries may be stored after a rejection;
   * the caller repeats the append with the same ids.
   */
  append(
    entries: readonly EngineEntry[],
    options: { readonly dedupeWindowMs: number },
  ): Promise<readonly Appended[]>;

  /**
   * Creates the group if it does not exist. Rejects with `BUS_GROUP_CONFLICT` if it has other filters; updates its
   * lease and `maxAckPending`. `start` applies to a new group only.
   */
  ensureGroup(settings: GroupSettings): Promise<void>;

  /**
   * Leases up to `limit` messages: per subject the lowest sequences first, and redeliveries (whose delay or lease has
   * ended) before newer messages. A leased message is never delivered to another caller. With `maxAckPending` 1 a
   * message is delivered only when all earlier ones of its subject are settled. Rejects with `BUS_GROUP_UNKNOWN` if
   * the group does not exist.
   */
  fetch(group: GroupSettings, request: FetchRequest): Promise<readonly LeasedEntry[]>;

  /** Settles deliveries one by one, in the given order. */
  settle(
    group: GroupSettings,
    settlements: readonly Settlement[],
  ): Promise<readonly SettleOutcome[]>;

  /**
   * Reads without a group, in the order of each subject. Resolves when the start position is fixed: every message
   * stored after that is delivered, also with `from: 'end'`. A live read includes new streams, and continues by itself
   * after an outage of the broker.
   */
  read(pattern: string, request: ReadRequest): Promise<AsyncIterable<readonly StoredEntry[]>>;

  /** Removes single entries from a stream, acked or not. Returns how many existed. */
  remove(subject: string, sequences: readonly string[]): Promise<number>;

  /** Streams that have or had messages, ordered by subject, after `after`. */
  streams(
    pattern: string,
    page: { readonly after: string | undefined; readonly limit: number },
  ): Promise<readonly StreamInfo[]>;
  trim(subject: string, order: TrimOrder): Promise<Trimmed>;
  /** False: the stream or group does not exist. */
  deleteStream(subject: string): Promise<boolean>;

  groups(): Promise<readonly GroupInfo[]>;
  /** Oldest first (`pendingList`). */
  pending(group: string, limit: number): Promise<readonly PendingMessage[]>;
  /** Ends all leases; late acks are stale. Rejects with `BUS_GROUP_UNKNOWN` if the group does not exist. */
  seek(group: string, to: StartFrom): Promise<void>;
  /** False: the stream or group does not exist. */
  deleteGroup(group: string): Promise<boolean>;
}

/**
 * Whether a group or reader with this filter gets messages of the subject. Like `matchSubject`, but a system subject
 * (`_dead.…`) matches only a filter that begins with `_`.
 *
 * @example
 * import { matchesFilter } from 'millrace/bus';
 *
 * console.log(matchesFilter('>', '_dead.monitors')); // false
 * console.log(matchesFilter('_dead.>', '_dead.monitors')); // true
 */
export function matchesFilter(filter: string, subject: string): boolean {
  if (subject.startsWith('_') && !filter.startsWith('_')) return false;
  return matchSubject(filter, subject);
}
