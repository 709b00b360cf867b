// What an engine brings: bytes in, leased bytes out. Everything that engines have in common (envelopes,
// dead letters, loops, requests) stands above this once, in createBus.
//
// Rules for every call:
// - While the broker cannot be reached it rejects with a retryable `BUS_UNAVAILABLE`, within seconds. It
//   never waits for ever, and reconnects by itself: a later call finds the broker again.
// - What was acknowledged is stored as safely as the engine's settings promise.
// - Subjects are checked already. A subject whose first token begins with `_` is a system subject: a
//   filter takes it only if its own first token is the same text (`matchesFilter`).

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
  /** For dedupe, per subject. */
  readonly id: string;
  readonly data: Uint8Array;
  /** A few hundred ASCII characters beside the data, kept as they are. */
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
  /** Of what somebody else wrote past the bus, in whatever form: some bytes that show it. */
  readonly data: Uint8Array;
  readonly meta: string | undefined;
}

export interface LeasedEntry extends StoredEntry {
  /** Names this delivery of this message; opaque. */
  readonly token: string;
  /** From 1 on. A lease that ran out counts, too. */
  readonly deliveryCount: number;
}

export type Settlement =
  | { readonly kind: 'ack'; readonly token: string }
  /** Available again after the delay; it stays pending (and counts for `maxAckPending`) meanwhile. */
  | { readonly kind: 'nack'; readonly token: string; readonly delayMs: number }
  /** Nobody looked at it: available at once, and the delivery is not counted (`uncountedRelease`). */
  | { readonly kind: 'release'; readonly token: string }
  /** The lease begins anew. */
  | { readonly kind: 'extend'; readonly token: string }
  /** The letter is stored, then it is acked: in one step where the engine can, else in this order. */
  | { readonly kind: 'dead'; readonly token: string; readonly letter: EngineEntry };

export interface GroupSettings {
  readonly name: string;
  /** Two that never take the same subject: the group's pattern, and `_redo.<group>`. */
  readonly filters: readonly string[];
  /** Where a new group begins in streams that are there. Streams that appear later: from their start. */
  readonly start: StartFrom;
  readonly leaseMs: number;
  /** At most so many of the group are under a lease or wait for their delay. */
  readonly maxAckPending: number;
}

export interface FetchRequest {
  readonly limit: number;
  /** How long to wait for the first one; 0: what is there now. */
  readonly waitMs: number;
  /** Ends the wait with `ABORTED`. What was leased by then is given back, or returned. */
  readonly signal: AbortSignal;
}

export interface ReadRequest {
  readonly from: StartFrom;
  /** False: ends behind what was there at the call. */
  readonly isLive: boolean;
  /** Ends it; a wait then rejects with `ABORTED`. */
  readonly signal: AbortSignal;
  /** As many as it gives at once, at most. */
  readonly batchMax: number;
}

export interface BusEngine extends AsyncDisposable {
  readonly capabilities: BusCapabilities;

  /**
   * Stores in the given order (per subject). Each on its own, unless `atomicBatch`: after a rejection
   * some may be stored, and the same ids may be appended again. `isRelaxed`: readers may get them before
   * they are on disk.
   */
  append(
    entries: readonly EngineEntry[],
    options: { readonly dedupeWindowMs: number; readonly isRelaxed: boolean },
  ): Promise<readonly Appended[]>;

  /**
   * Makes the group where it is missing. One of this name with other filters: `BUS_GROUP_CONFLICT`;
   * with another lease or `maxAckPending`: takes the new ones. `start` counts for a new group only.
   */
  ensureGroup(settings: GroupSettings): Promise<void>;

  /**
   * Leases up to `limit` messages to the caller: of a subject always the lowest sequences first, those
   * that wait for redelivery (their delay or lease is over) before newer ones. Never two callers the
   * same while its lease holds. With `maxAckPending` 1 a message is handed out only when everything
   * before it in its subject is settled. The group is gone: `BUS_GROUP_UNKNOWN`.
   */
  fetch(group: GroupSettings, request: FetchRequest): Promise<readonly LeasedEntry[]>;

  /** Each on its own, in the given order. */
  settle(
    group: GroupSettings,
    settlements: readonly Settlement[],
  ): Promise<readonly SettleOutcome[]>;

  /**
   * Reads past all groups, in the order of each subject. Resolves once the place where it begins is
   * fixed: what is stored after that is delivered, also with `from: 'now'`. It goes on by itself when the
   * broker comes back (a live one), and picks up new streams.
   */
  read(pattern: string, request: ReadRequest): Promise<AsyncIterable<readonly StoredEntry[]>>;

  /** Takes single entries out of a stream, whoever has acked them. Returns how many were there. */
  remove(subject: string, sequences: readonly string[]): Promise<number>;

  /** Streams that have messages, or had some, by subject; from behind `after`. */
  streams(
    pattern: string,
    page: { readonly after: string | undefined; readonly limit: number },
  ): Promise<readonly StreamInfo[]>;
  trim(subject: string, order: TrimOrder): Promise<Trimmed>;
  /** False: there was none. */
  deleteStream(subject: string): Promise<boolean>;

  groups(): Promise<readonly GroupInfo[]>;
  /** Oldest first (`pendingList`). */
  pending(group: string, limit: number): Promise<readonly PendingMessage[]>;
  /** What is under a lease is free of it; late acks are stale. Unknown: `BUS_GROUP_UNKNOWN`. */
  seek(group: string, to: StartFrom): Promise<void>;
  /** False: there was none. */
  deleteGroup(group: string): Promise<boolean>;
}

/**
 * Whether a group or a reader with this filter takes the subject. As `matchSubject`, but a system
 * subject (`_dead.…`) is taken only by a filter that names its first token.
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
