// The port: where every message for the outside is written down, with what became of it. A claim is a
// lease with a fencing token; whoever comes late changes nothing and is told so.

import type {
  ClaimedMessage,
  EnqueueOutboxProps,
  OutboxClaim,
  OutboxMessage,
  OutboxStatus,
} from './outbox-message.ts';

export interface OutboxCapabilities {
  /** Survives the end of the process. */
  readonly durable: boolean;
  /** Other processes see it, and claim from it. */
  readonly crossProcess: boolean;
  /** `enqueueIn` writes into the caller's own transaction. */
  readonly callerTransaction: boolean;
}

export interface Enqueued {
  readonly id: string;
  /** False: this event had been enqueued for this destination before; nothing was written now. */
  readonly isNew: boolean;
}

/** `stale`: the claim had passed to somebody else, or was settled; nothing was changed. */
export type SettleOutcome = 'settled' | 'stale';

export interface ClaimOptions {
  /** After this, others may claim it again. Default: 60 s. */
  readonly leaseMs?: number;
}

export interface ClaimRequest extends ClaimOptions {
  /** Names the process start, not the machine: two that run at once have two. */
  readonly workerId: string;
  readonly limit: number;
}

export interface RenewRequest extends ClaimOptions {
  readonly workerId: string;
  /** Whether the queue that the jobs came from is one of a tenant's own; told of the message's jobs. */
  readonly perTenant?: boolean;
}

/**
 * `stale`: it had passed to somebody else, or was settled. `paused`: its destination is; it is free again,
 * and is claimed when that is resumed.
 */
export type Renewed = ClaimedMessage | 'stale' | 'paused';

/** What became of a claimed message. */
export type OutboxOutcome =
  | { readonly kind: 'sent'; readonly claim: OutboxClaim }
  /** Counts as an attempt. */
  | {
      readonly kind: 'failed';
      readonly claim: OutboxClaim;
      readonly error: string;
      readonly nextDueAt: Date;
    }
  | { readonly kind: 'dead'; readonly claim: OutboxClaim; readonly error: string }
  /** Nothing was tried: it is free again, at once or at a time. */
  | { readonly kind: 'released'; readonly claim: OutboxClaim; readonly dueAt?: Date | undefined };

export interface OutboxFilter {
  readonly ids?: readonly string[] | undefined;
  readonly status?: OutboxStatus | undefined;
  readonly integrationType?: string | undefined;
  readonly tenantId?: string | undefined;
  /** Enqueued at this time or later; of dead ones, that died then or later. */
  readonly since?: Date | undefined;
}

export interface OutboxPage {
  readonly limit?: number | undefined;
  /** The id of the last one of the page before. */
  readonly after?: string | undefined;
}

/** The event that a message was enqueued for. */
export type OutboxSource = Pick<EnqueueOutboxProps, 'sourceEventId' | 'sourceStreamId'>;

export interface PausedDestination {
  readonly integrationType: string;
  readonly pausedAt: Date;
  readonly pausedBy: string;
}

/**
 * The ledger of everything that is to leave.
 *
 * @example
 * import { memoryOutboxLedger, type OutboxLedger } from 'millrace/outbox';
 *
 * const ledger: OutboxLedger = memoryOutboxLedger();
 * await ledger.enqueue({
 *   sourceStreamId: 'paymenthub.payment.v1-core-p1',
 *   sourceEventId: 'e1',
 *   integrationType: 'webhook:partner-x',
 *   eventType: 'payment.completed.v1',
 *   payload: { paymentId: 'p1' },
 * });
 * for (const claim of await ledger.claimDueBatch('worker-1', 100)) {
 *   console.log(await ledger.markSent(claim)); // settled
 * }
 */
export interface OutboxLedger<Transaction = unknown> extends AsyncDisposable {
  readonly capabilities: OutboxCapabilities;

  enqueue(item: EnqueueOutboxProps): Promise<Enqueued>;
  /** All or none, in order. An outage rejects; only a duplicate is told as one. */
  enqueueMany(items: readonly EnqueueOutboxProps[]): Promise<readonly Enqueued[]>;
  /** As `enqueueMany`, committed by the caller (`callerTransaction`). */
  enqueueIn(
    transaction: Transaction,
    items: readonly EnqueueOutboxProps[],
  ): Promise<readonly Enqueued[]>;

  /** PENDING and FAILED ones that are due, and those whose lease ran out; each tenant gets its share. */
  claimDueBatch(
    workerId: string,
    limit: number,
    options?: ClaimOptions,
  ): Promise<readonly ClaimedMessage[]>;
  markSent(claim: OutboxClaim): Promise<SettleOutcome>;
  markFailed(claim: OutboxClaim, error: string, nextDueAt: Date): Promise<SettleOutcome>;
  deadLetter(claim: OutboxClaim, error: string): Promise<SettleOutcome>;
  release(claim: OutboxClaim, dueAt?: Date): Promise<SettleOutcome>;
  /** The batch form of the four: one commit; each is decided on its own. */
  settle(outcomes: readonly OutboxOutcome[]): Promise<readonly SettleOutcome[]>;
  /** Settles and claims in one round trip. */
  exchange(
    outcomes: readonly OutboxOutcome[],
    claim: ClaimRequest,
  ): Promise<{
    readonly settled: readonly SettleOutcome[];
    readonly claimed: readonly ClaimedMessage[];
  }>;
  /**
   * Takes claims over from whoever made them: each has a new token and a new lease, and whoever comes with
   * the old token is late. A claim that is a whole message is not read again. Each is a job that begins.
   */
  renew(
    claims: readonly (OutboxClaim | ClaimedMessage)[],
    request: RenewRequest,
  ): Promise<readonly Renewed[]>;
  /** Lengthens the leases of claims that wait for their turn; tokens stay. Returns how many still hold. */
  extend(claims: readonly OutboxClaim[], options?: ClaimOptions): Promise<number>;
  /**
   * Resolves when there may be something to claim: told by whoever enqueued, or after `pollMs`.
   * Rejects when the signal fires.
   */
  whenDue(pollMs: number, signal: AbortSignal): Promise<void>;

  find(id: string): Promise<OutboxMessage | undefined>;
  /** Oldest first. */
  list(filter: OutboxFilter, page?: OutboxPage): Promise<readonly OutboxMessage[]>;
  /** Everything that was enqueued for these events, oldest first: up to 1,000 of either. */
  bySource(sources: readonly OutboxSource[], limit?: number): Promise<readonly OutboxMessage[]>;
  /** Exact, but for SENT on PostgreSQL above 100,000 messages: then by the database's statistics. */
  counts(): Promise<Readonly<Record<OutboxStatus, number>>>;
  /** DEAD ones become PENDING, with all their attempts ahead. Returns how many. */
  replay(filter: Omit<OutboxFilter, 'status'>, limit?: number): Promise<number>;
  /** Forgets up to so many SENT ones, and with them that their events were enqueued. Returns how many. */
  purge(sentBefore: Date, limit?: number): Promise<number>;
  /**
   * Hands up to so many SENT ones over, those that were sent first before others, and purges them once
   * `keep` has resolved. Whoever is killed in between hands them over again. Returns how many.
   */
  archive(
    sentBefore: Date,
    keep: (messages: readonly OutboxMessage[]) => Promise<void>,
    limit?: number,
  ): Promise<number>;
  /** Its messages are not claimed any more; those that are out come to their end. False: it was paused. */
  pause(integrationType: string, by: string): Promise<boolean>;
  resume(integrationType: string): Promise<boolean>;
  paused(): Promise<readonly PausedDestination[]>;
}

/** A store whose database also holds an outbox, over the connections that it has anyway. */
export interface OutboxHost {
  /** Closed before the store. */
  openOutbox(): OutboxLedger;
}
