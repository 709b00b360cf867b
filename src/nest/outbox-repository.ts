// The abstract class of the outbox document, which providers inject by type.

import type { ClaimedMessage, EnqueueOutboxProps, OutboxClaim } from '../outbox/outbox-message.ts';
import type {
  ClaimOptions,
  Enqueued,
  EnqueuedMessage,
  OutboxCapabilities,
  OutboxLedger,
  SettleOutcome,
} from '../outbox/outbox-ledger.ts';

type Ledger = OutboxLedger;

/**
 * The outbox ledger of the module as a class, so Nest can inject it by type. A claim is settled by its token, where the
 * document uses an id only.
 *
 * @example
 * import { Injectable } from '@nestjs/common';
 * import { OutboxRepository } from 'millrace/nest';
 *
 * @Injectable()
 * export class Refunds {
 *   constructor(private readonly outbox: OutboxRepository) {}
 *
 *   async announce(refundId: string): Promise<void> {
 *     await this.outbox.enqueue({
 *       sourceStreamId: `refunds-${refundId}`,
 *       sourceEventId: `${refundId}-made`,
 *       integrationType: 'webhook:partner-x',
 *       eventType: 'refund.made.v1',
 *       payload: { refundId },
 *     });
 *   }
 * }
 */
export abstract class OutboxRepository<Transaction = unknown> implements OutboxLedger<Transaction> {
  abstract readonly capabilities: OutboxCapabilities;
  /** Only declared: a field would hide the accessor of a subclass. */
  declare readonly database?: string | undefined;
  abstract enqueue(item: EnqueueOutboxProps): Promise<EnqueuedMessage>;
  abstract enqueueMany(items: readonly EnqueueOutboxProps[]): Promise<readonly Enqueued[]>;
  abstract enqueueIn(
    transaction: Transaction,
    items: readonly EnqueueOutboxProps[],
  ): Promise<readonly Enqueued[]>;
  abstract claimDueBatch(
    workerId: string,
    limit: number,
    options?: ClaimOptions,
  ): Promise<readonly ClaimedMessage[]>;
  abstract markSent(claim: OutboxClaim): Promise<SettleOutcome>;
  abstract markFailed(claim: OutboxClaim, error: string, nextDueAt: Date): Promise<SettleOutcome>;
  abstract deadLetter(claim: OutboxClaim, error: string): Promise<SettleOutcome>;
  abstract release(claim: OutboxClaim, dueAt?: Date): Promise<SettleOutcome>;
  abstract settle(...given: Parameters<Ledger['settle']>): ReturnType<Ledger['settle']>;
  abstract renew(...given: Parameters<Ledger['renew']>): ReturnType<Ledger['renew']>;
  abstract extend(...given: Parameters<Ledger['extend']>): ReturnType<Ledger['extend']>;
  abstract whenDue(...given: Parameters<Ledger['whenDue']>): ReturnType<Ledger['whenDue']>;
  abstract find(...given: Parameters<Ledger['find']>): ReturnType<Ledger['find']>;
  abstract getAttempts(id: string): Promise<number>;
  abstract attemptLog(id: string): ReturnType<Ledger['attemptLog']>;
  abstract bySource(...given: Parameters<Ledger['bySource']>): ReturnType<Ledger['bySource']>;
  abstract erase(...given: Parameters<Ledger['erase']>): ReturnType<Ledger['erase']>;
  abstract list(...given: Parameters<Ledger['list']>): ReturnType<Ledger['list']>;
  abstract counts(): ReturnType<Ledger['counts']>;
  abstract replay(...given: Parameters<Ledger['replay']>): ReturnType<Ledger['replay']>;
  abstract retryNow(ids: readonly string[]): Promise<readonly string[]>;
  abstract discard(...given: Parameters<Ledger['discard']>): ReturnType<Ledger['discard']>;
  abstract purge(...given: Parameters<Ledger['purge']>): ReturnType<Ledger['purge']>;
  abstract archive(...given: Parameters<Ledger['archive']>): ReturnType<Ledger['archive']>;
  abstract pause(...given: Parameters<Ledger['pause']>): ReturnType<Ledger['pause']>;
  abstract resume(...given: Parameters<Ledger['resume']>): ReturnType<Ledger['resume']>;
  abstract paused(): ReturnType<Ledger['paused']>;
  abstract [Symbol.asyncDispose](): Promise<void>;
}
