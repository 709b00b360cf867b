// Messages as callers enqueue them and as the ledger returns them, with the names of the outbox document.

import type { OutboxJob } from '../contracts/outbox-job.ts';
import type { FailureCause } from '../foundation/failure-cause.ts';

export type OutboxStatus = 'PENDING' | 'CLAIMED' | 'SENT' | 'FAILED' | 'DEAD' | 'DISCARDED';

type Json = Readonly<Record<string, unknown>>;

/** A message for one destination. The combination of stream, event and integration type is unique. */
export interface EnqueueOutboxProps {
  readonly sourceStreamId: string;
  readonly sourceEventId: string;
  /** Chooses the destination: `kafka:payments`, `webhook:partner-x`. */
  readonly integrationType: string;
  /** The meaning of the message: `payment.completed.v1`. */
  readonly eventType: string;
  /** Ids and the data that the receiver needs; no large binary data. */
  readonly payload: Json;
  readonly headers?: Json | undefined;
  readonly correlationId?: string | undefined;
  readonly tenantId?: string | undefined;
  readonly userId?: string | undefined;
  /** Default: now. */
  readonly dueAt?: Date | undefined;
  /** Default: 10. */
  readonly maxAttempts?: number | undefined;
  /** Messages of one destination with the same key are sent one after the other, in order. */
  readonly orderingKey?: string | undefined;
}

export interface OutboxMessage extends Required<Omit<EnqueueOutboxProps, 'dueAt' | 'maxAttempts'>> {
  readonly id: string;
  readonly dueAt: Date;
  /** Failed attempts. */
  readonly attempts: number;
  readonly maxAttempts: number;
  readonly status: OutboxStatus;
  readonly lockedAt: Date | undefined;
  readonly lockedBy: string | undefined;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly sentAt: Date | undefined;
  readonly lastError: string | undefined;
  /**
   * Why the stored payload or headers cannot be read; the payload is then empty. A claim returns such a message, so that
   * it does not stop the others; a dispatcher and a queue worker dead-letter it.
   */
  readonly unreadable?: string | undefined;
  /** The cause of `lastError`, where the message was looked up and its last attempt is stored. */
  readonly cause?: FailureCause | undefined;
  /** Who ended a DISCARDED message, and why; only where the message was looked up. */
  readonly discarded?: Discarded | undefined;
  /** The jobs that carried it through a queue, oldest first; only where the message was looked up. */
  readonly jobs?: readonly OutboxJob[] | undefined;
}

export type OutboxMessageHead = Omit<OutboxMessage, 'headers' | 'payload'>;

export interface Discarded {
  readonly by: string;
  readonly reason: string;
}

/**
 * One attempt to send a message. The ledger stores the attempts of messages that failed at least once: the last 20,
 * without secrets. The first attempt of a message is not stored if it succeeds, because that would be one more write
 * per message.
 */
export interface DeliveryAttempt {
  /** ISO 8601. */
  readonly at: string;
  readonly durationMs: number;
  readonly outcome: 'sent' | 'failed' | 'dead';
  /** The status of an HTTP response. */
  readonly status?: number | undefined;
  /** The headers of the request; values that may be secrets are masked. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The first 2 KiB of the response. */
  readonly answer?: string | undefined;
  readonly error?: string | undefined;
  readonly cause?: FailureCause | undefined;
}

/** Identifies a claim when it is settled. Each claim has a new token. */
export interface OutboxClaim {
  readonly id: string;
  readonly token: string;
}

export interface ClaimedMessage extends OutboxMessage, OutboxClaim {
  /** Claims that were not released, including this one: more than `attempts` if a process died. */
  readonly starts: number;
}
