// The port of the ledger of all outgoing messages and their outcomes. A claim is a lease with a fencing token; settling
// with an old token changes nothing and returns `stale`.

import type { Forgotten } from '../store/erasure.ts';
import type {
  ClaimedMessage,
  DeliveryAttempt,
  Discarded,
  EnqueueOutboxProps,
  OutboxClaim,
  OutboxMessage,
  OutboxMessageHead,
  OutboxStatus,
} from './outbox-message.ts';

export interface OutboxCapabilities {
  /** Messages survive a restart of the process. */
  readonly durable: boolean;
  /** Several processes share the ledger. */
  readonly crossProcess: boolean;
  /** `enqueueIn` writes into the transaction of the caller. */
  readonly callerTransaction: boolean;
}

export interface Enqueued {
  readonly id: string;
  /** True: the event was already enqueued for this destination, and nothing was written. */
  readonly isDuplicate: boolean;
}

/** The stored message: the new one, or the one that was enqueued before. */
export type EnqueuedMessage = OutboxMessage & Enqueued;

/** `stale`: another process has the claim, or it is settled; nothing was changed. */
export type SettleOutcome = 'settled' | 'stale';

export interface ClaimOptions {
  /** After this, another process may claim the message. Default: 15 s. */
  readonly leaseMs?: number | undefined;
}

export interface RenewRequest extends ClaimOptions {
  readonly workerId: string;
  /** Whether the jobs came from a queue per tenant; stored with the jobs of the message. */
  readonly perTenant?: boolean | undefined;
}

/**
 * `stale`: another process has the claim, or it is settled. `paused`: the destination is paused; the claim was
 * released, and the message is claimed again after the destination is resumed.
 */
export type Renewed = ClaimedMessage | 'stale' | 'paused';

/** The outcome of a claimed message. */
export type OutboxOutcome =
  | {
      readonly kind: 'sent';
      readonly claim: OutboxClaim;
      readonly attempt?: DeliveryAttempt | undefined;
    }
  /** Counts as an attempt. */
  | {
      readonly kind: 'failed';
      readonly claim: OutboxClaim;
      readonly error: string;
      readonly nextDueAt: Date;
      readonly attempt?: DeliveryAttempt | undefined;
    }
  | {
      readonly kind: 'dead';
      readonly claim: OutboxClaim;
      readonly error: string;
      readonly attempt?: DeliveryAttempt | undefined;
    }
  /** Nothing was attempted: the message may be claimed again, immediately or at a time. */
  | { readonly kind: 'released'; readonly claim: OutboxClaim; readonly dueAt?: Date | undefined };

export interface OutboxFilter {
  readonly ids?: readonly string[] | undefined;
  readonly status?: OutboxStatus | undefined;
  readonly integrationType?: string | undefined;
  readonly tenantId?: string | undefined;
  /** Enqueued at this time or later; for dead and discarded messages: ended at this time or later. */
  readonly since?: Date | undefined;
}

export interface OutboxPage {
  readonly limit?: number | undefined;
  /** The id of the last message of the previous page. */
  readonly after?: string | undefined;
  /** Default: newest first. */
  readonly oldestFirst?: boolean | undefined;
  /** The page ends with the message whose payload and headers reach this number of characters. Default: no limit. */
  readonly charsMax?: number | undefined;
}

/** The event that a message was enqueued for. */
export type OutboxSource = Pick<EnqueueOutboxProps, 'sourceEventId' | 'sourceStreamId'>;

export interface PausedDestination {
  readonly integrationType: string;
  readonly pausedAt: Date;
  readonly pausedBy: string;
}

/**
 * The ledger of all outgoing messages.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import type { OutboxLedger } from 'millrace/outbox';
 *
 * const ledger: OutboxLedger = openMemory().outbox;
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
  /** Identifies the database: checkpoints with the same value commit together with the messages. */
  readonly database?: string | undefined;

  /** Returns the stored message. `enqueueMany` needs one query less. */
  enqueue(item: EnqueueOutboxProps): Promise<EnqueuedMessage>;
  /** All or none, in order. Rejects during an outage; a duplicate is returned as such. */
  enqueueMany(items: readonly EnqueueOutboxProps[]): Promise<readonly Enqueued[]>;
  /** Like `enqueueMany`, but committed by the caller (`callerTransaction`). */
  enqueueIn(
    transaction: Transaction,
    items: readonly EnqueueOutboxProps[],
  ): Promise<readonly Enqueued[]>;

  /**
   * Due PENDING and FAILED messages, and those whose lease expired; each tenant gets a fair share. `workerId` is
   * unique for each start of a process.
   */
  claimDueBatch(
    workerId: string,
    limit: number,
    options?: ClaimOptions,
  ): Promise<readonly ClaimedMessage[]>;
  markSent(claim: OutboxClaim): Promise<SettleOutcome>;
  markFailed(claim: OutboxClaim, error: string, nextDueAt: Date): Promise<SettleOutcome>;
  deadLetter(claim: OutboxClaim, error: string): Promise<SettleOutcome>;
  release(claim: OutboxClaim, dueAt?: Date): Promise<SettleOutcome>;
  /** The batch form of these four: one commit; each outcome is decided separately. */
  settle(outcomes: readonly OutboxOutcome[]): Promise<readonly SettleOutcome[]>;
  /**
   * Takes over claims: each gets a new token and a new lease, and the old token becomes stale. Each renewal is stored
   * as a job of its message.
   */
  renew(claims: readonly OutboxClaim[], request: RenewRequest): Promise<readonly Renewed[]>;
  /** Extends leases; tokens stay. Returns whether each claim is still valid. */
  extend(claims: readonly OutboxClaim[], options?: ClaimOptions): Promise<readonly boolean[]>;
  /**
   * Resolves when messages may be due: after an enqueue, or after `pollMs`.
   * Rejects when the signal fires.
   */
  whenDue(pollMs: number, signal: AbortSignal): Promise<void>;

  find(id: string): Promise<OutboxMessage | undefined>;
  /** The failed attempts of a message. Throws `OUTBOX_UNKNOWN` for an unknown id. */
  getAttempts(id: string): Promise<number>;
  /** The stored attempts, oldest first; see `DeliveryAttempt`. Empty for an unknown id. */
  attemptLog(id: string): Promise<readonly DeliveryAttempt[]>;
  /** Newest first, by the order of enqueuing. */
  list(filter: OutboxFilter, page?: OutboxPage): Promise<readonly OutboxMessage[]>;
  /** All messages of these events, without payloads, oldest first: up to 1,000 of either. */
  bySource(sources: readonly OutboxSource[], limit?: number): Promise<readonly OutboxMessageHead[]>;
  /** Replaces the payload of all messages of these events and removes their headers, errors and attempts. */
  erase(sources: readonly OutboxSource[], forgotten: Forgotten): Promise<void>;
  /** Exact, except SENT on PostgreSQL above 100,000 messages: then an estimate of the database. */
  counts(): Promise<Readonly<Record<OutboxStatus, number>>>;
  /** DEAD messages become PENDING, with all attempts again. Returns how many. */
  replay(filter: Omit<OutboxFilter, 'status'>, limit?: number): Promise<number>;
  /**
   * Makes messages due that wait for a later time. Attempts and order stay. Returns the ids of the changed messages:
   * claimed, due, paused and ended ones are left alone.
   */
  retryNow(ids: readonly string[]): Promise<readonly string[]>;
  /**
   * PENDING, FAILED and DEAD messages become DISCARDED, and the next message of the key follows. Returns the ids of the
   * changed messages: claimed, sent and discarded ones are left alone.
   */
  discard(ids: readonly string[], discarded: Discarded): Promise<readonly string[]>;
  /** Removes up to `limit` SENT messages; their events can then be enqueued again. Returns how many. */
  purge(sentBefore: Date, limit?: number): Promise<number>;
  /**
   * Passes up to `limit` SENT messages, oldest first, to `keep`, and removes them after it has resolved. If the
   * process dies in between, they are passed again. Returns how many.
   */
  archive(
    sentBefore: Date,
    keep: (messages: readonly OutboxMessage[]) => Promise<void>,
    limit?: number,
  ): Promise<number>;
  /** Messages of the destination are no longer claimed; running attempts finish. False: already paused. */
  pause(integrationType: string, by: string): Promise<boolean>;
  resume(integrationType: string): Promise<boolean>;
  paused(): Promise<readonly PausedDestination[]>;
}
