// The port between dispatchers and queue workers: a queue that may lose jobs, because the ledger has all messages.
// If it delivers a job twice, the ledger rejects the second claim.

import type { ClaimedMessage, OutboxClaim } from './outbox-message.ts';

export interface DeliveryJob {
  readonly outboxId: string;
  /** The token of its claim. */
  readonly token: string;
  /** The first is 1. */
  readonly attempt: number;
  readonly integrationType: string;
  readonly eventType: string;
  readonly tenantId: string | undefined;
  readonly correlationId: string | undefined;
  /** The message, if the dispatcher puts small ones into the job. */
  readonly message?: ClaimedMessage | undefined;
}

/** `full`: the queue has reached `waitingMax`, and the job was not taken. */
export type Offered = 'taken' | 'full';

export interface WorkOptions {
  /** `webhook:partner-x`, or a pattern: `webhook:*`. Matching new queues are found while it runs. */
  readonly types: readonly string[];
  /** Per queue. */
  readonly concurrency: number;
  /** Stops the work. */
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
  /** Whether each tenant of a type has a separate queue. */
  readonly perTenant: boolean;
  /** In order. A job that is already waiting is taken once. Rejects if it is unknown which jobs were taken. */
  offer(
    jobs: readonly DeliveryJob[],
    options: { readonly waitingMax: number },
  ): Promise<readonly Offered[]>;
  /**
   * Passes jobs to the handler until the signal fires, and resolves when the running handlers have ended. A job
   * is removed when its handler resolves; after a crash of the process it may be delivered again.
   */
  work(handle: (job: DeliveryJob) => Promise<void>, options: WorkOptions): Promise<void>;
  /** Jobs that no worker has started, queue by queue. */
  waiting(): AsyncIterable<WaitingJobs>;
  /** Notifies dispatchers, also in other processes, that messages may be due. It may get lost. */
  nudge(): void;
  /** The returned function removes the listener. */
  onNudge(listener: () => void): () => void;
}
