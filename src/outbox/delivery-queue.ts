// The port between those who claim and those who send: a queue that may lose everything, as the ledger
// remembers. What it hands out twice, the ledger refuses the second time.

import type { ClaimedMessage, OutboxClaim } from './outbox-message.ts';

export interface DeliveryJob {
  readonly outboxId: string;
  /** Of the claim that it stands for. */
  readonly token: string;
  /** The first is 1. */
  readonly attempt: number;
  readonly integrationType: string;
  readonly eventType: string;
  readonly tenantId: string | undefined;
  readonly correlationId: string | undefined;
  /** All of it, where the dispatcher sends small ones along. */
  readonly message?: ClaimedMessage | undefined;
}

/** `full`: as many wait there as may wait; it was not taken. */
export type Offered = 'taken' | 'full';

export interface WorkOptions {
  /** `webhook:partner-x`, or a pattern: `webhook:*`. New queues that fit are found while it runs. */
  readonly types: readonly string[];
  /** Of each queue. */
  readonly concurrency: number;
  /** Ends the work. */
  readonly signal: AbortSignal;
}

export interface WaitingJobs {
  /** The queue's name. */
  readonly queue: string;
  readonly claims: readonly OutboxClaim[];
}

/**
 * Queues of jobs, one for each integration type, or for each type and tenant.
 *
 * @example
 * import { memoryDeliveryQueue, type DeliveryQueue } from 'millrace/outbox';
 *
 * await using queue: DeliveryQueue = memoryDeliveryQueue();
 * for await (const { queue: name, claims } of queue.waiting()) console.log(name, claims.length);
 */
export interface DeliveryQueue extends AsyncDisposable {
  /** There is a queue for each tenant of a type. */
  readonly perTenant: boolean;
  /** In order. A job that waits already is taken once. Rejects when nobody knows what was taken. */
  offer(
    jobs: readonly DeliveryJob[],
    options: { readonly waitingMax: number },
  ): Promise<readonly Offered[]>;
  /**
   * Hands jobs out until the signal fires, and resolves when those that were handed out are done. A job is
   * gone when its handler resolves; one whose process died may be handed out again.
   */
  work(handle: (job: DeliveryJob) => Promise<void>, options: WorkOptions): Promise<void>;
  /** What nobody has begun yet, queue by queue. */
  waiting(): AsyncIterable<WaitingJobs>;
  /** Tells dispatchers, in other processes too, that there may be something to claim. May get lost. */
  nudge(): void;
  /** The result ends it. */
  onNudge(listener: () => void): () => void;
}
