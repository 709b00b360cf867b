/** A job that carried an outbox message through a queue. */
export interface OutboxJob {
  /** The id in the queue. */
  readonly id: string;
  readonly queue: string;
  /** Counts from 1. */
  readonly attempt: number;
  /** When the message was claimed. */
  readonly enqueuedAt: Date;
  readonly startedAt: Date;
  readonly finishedAt: Date | undefined;
  /** `lost`: the worker stopped, or lost its lease, before it stored an outcome. */
  readonly outcome: 'sent' | 'failed' | 'dead' | 'running' | 'lost';
}
