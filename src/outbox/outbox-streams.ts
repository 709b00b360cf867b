// The port of stream mode, for destinations that want order and volume: a message is written once, and a
// batch is settled by moving the cursor of its lane. A lane has one owner at a time; whoever was it before
// is told by its epoch.

import type { ClaimedMessage } from './outbox-message.ts';

export interface StreamDestination {
  readonly integrationType: string;
  readonly lanes: number;
}

/** The right to a lane, until somebody else has a higher epoch. */
export interface LaneClaim {
  readonly integrationType: string;
  readonly lane: number;
  readonly epoch: number;
}

export interface LaneMessage {
  readonly message: ClaimedMessage;
  readonly position: number;
  /** It had been put aside, below the cursor. */
  readonly isParked: boolean;
  /** Not to be sent now: it is due later, or others of its key that wait come before it. */
  readonly mustWait: boolean;
}

export interface LaneBatch {
  readonly claim: LaneClaim;
  /** Of this lane, told with the outcome: what is told twice counts once. */
  readonly number: number;
  /** In the order in which they go out. */
  readonly items: readonly LaneMessage[];
}

/** What becomes of a message that is not simply sent with its batch. */
export type LaneChange =
  /** One that was parked. */
  | { readonly kind: 'sent'; readonly position: number }
  | { readonly kind: 'dead'; readonly position: number; readonly error: string }
  /** Counts as an attempt; those of its key wait behind it. */
  | {
      readonly kind: 'failed';
      readonly position: number;
      readonly error: string;
      readonly nextDueAt: Date;
    }
  /** Was not tried: until a time, or until those of its key before it are gone. */
  | { readonly kind: 'waits'; readonly position: number; readonly dueAt?: Date | undefined };

export interface LaneOutcome {
  readonly claim: LaneClaim;
  /** Of the batch. */
  readonly number: number;
  /** Everything up to here is sent, except for the changes. Undefined: nothing is decided. */
  readonly upTo?: number | undefined;
  readonly changes: readonly LaneChange[];
}

export interface AcquireRequest {
  readonly workerId: string;
  /** None: this relay leaves. */
  readonly integrationTypes: readonly string[];
  readonly leaseMs: number;
  readonly giveBack: readonly LaneClaim[];
}

export interface OwnedLane extends LaneClaim {
  /** How many lanes of this destination the relay should have, so that others have as many. */
  readonly share: number;
}

export interface LaneFetch {
  readonly lanes: readonly { readonly claim: LaneClaim; readonly limit: number }[];
  readonly bytesMax: number;
  readonly leaseMs: number;
}

export interface LanesExchanged {
  /** One for each outcome; `stale`: the lane has another owner, and nothing was changed. */
  readonly settled: readonly ('settled' | 'stale')[];
  readonly batches: readonly LaneBatch[];
  /** Somebody has enqueued and not committed: what came after that is not given out yet. */
  readonly isHeldBack: boolean;
  /** When the next one that was put aside is due. */
  readonly nextDueAt: Date | undefined;
}

export interface OutboxStreams {
  /**
   * From now on, messages for it go in lanes. False: they do already. Rejects with OUTBOX_STREAM_BUSY
   * while messages of the other mode wait.
   */
  declare(integrationType: string, options?: { readonly lanes?: number }): Promise<boolean>;
  /** Back to single claims, once everything is sent or dead. False: it was in that mode. */
  retire(integrationType: string): Promise<boolean>;
  declared(): Promise<readonly StreamDestination[]>;
  /** Says that a relay is there, takes free lanes up to its share, and renews those that it has. */
  acquire(request: AcquireRequest): Promise<readonly OwnedLane[]>;
  /** Settles batches and fetches the next ones, in one round trip. */
  exchange(outcomes: readonly LaneOutcome[], fetch?: LaneFetch): Promise<LanesExchanged>;
}
