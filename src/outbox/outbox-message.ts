// What is enqueued, and what the ledger tells of it: the outbox document's names and statuses.

import type { OutboxJob } from './outbox-job.ts';

export type OutboxStatus = 'PENDING' | 'CLAIMED' | 'SENT' | 'FAILED' | 'DEAD';

type Json = Readonly<Record<string, unknown>>;

/** A message for one destination. Together, its stream, event and integration type are unique. */
export interface EnqueueOutboxProps {
  readonly sourceStreamId: string;
  readonly sourceEventId: string;
  /** Chooses the destination: `kafka:payments`, `webhook:partner-x`. */
  readonly integrationType: string;
  /** What it means: `payment.completed.v1`. */
  readonly eventType: string;
  /** Identifiers and what the receiver needs; no blobs. */
  readonly payload: Json;
  readonly headers?: Json | undefined;
  readonly correlationId?: string | undefined;
  readonly tenantId?: string | undefined;
  readonly userId?: string | undefined;
  /** Default: now. */
  readonly dueAt?: Date | undefined;
  /** Default: 10. */
  readonly maxAttempts?: number | undefined;
  /** Messages of one destination that have the same key go out one after the other, in order. */
  readonly orderingKey?: string | undefined;
}

export interface OutboxMessage {
  readonly id: string;
  readonly sourceStreamId: string;
  readonly sourceEventId: string;
  readonly integrationType: string;
  readonly eventType: string;
  readonly payload: Json;
  readonly headers: Json | undefined;
  readonly tenantId: string | undefined;
  readonly userId: string | undefined;
  readonly correlationId: string | undefined;
  readonly orderingKey: string | undefined;
  readonly dueAt: Date;
  /** Those that failed. */
  readonly attempts: number;
  readonly maxAttempts: number;
  readonly status: OutboxStatus;
  readonly lockedAt: Date | undefined;
  readonly lockedBy: string | undefined;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly sentAt: Date | undefined;
  readonly lastError: string | undefined;
  /** Of one that went through a queue, where it was looked up: its jobs that workers began, oldest first. */
  readonly jobs?: readonly OutboxJob[];
}

/** What a claim is settled by. The token is that of one claim: the next one has another. */
export interface OutboxClaim {
  readonly id: string;
  readonly token: string;
}

export interface ClaimedMessage extends OutboxMessage, OutboxClaim {
  /** Claims that were not released, this one included: more than attempts where owners died. */
  readonly starts: number;
}
