// What a ledger remembers of the jobs that carried a message through a queue: the queue forgets a job when it
// is done. A worker writes it with the claim that it takes over, so no message costs one more write.

import { deliveryJobId, deliveryQueueName } from './delivery-job.ts';
import type { OutboxMessage } from './outbox-message.ts';

export interface OutboxJob {
  /** As the queue knows it. */
  readonly id: string;
  readonly queue: string;
  /** The first is 1. */
  readonly attempt: number;
  /** When its message was claimed, to be put into the queue. */
  readonly enqueuedAt: Date;
  readonly startedAt: Date;
  readonly finishedAt: Date | undefined;
  /** `lost`: its worker ended, or lost its lease, before it could say what became of it. */
  readonly outcome: 'sent' | 'failed' | 'dead' | 'running' | 'lost';
}

/** As engines keep it, in JSON. `taken` is the token that the worker had; those that put it back leave none. */
export type JobEntry = readonly [
  attempt: number,
  token: number,
  taken: number,
  perTenant: boolean | number,
  claimedMs: number,
  startedMs: number,
  endedMs?: number,
  outcome?: 'sent' | 'failed' | 'dead',
];

/** Of one message, the last ones: whoever replays it for years must not make its row grow. */
export const jobsKept = 20;

/** `tokenOf`: an engine's number as the token of a claim. */
export function outboxJobs(
  entries: readonly JobEntry[],
  message: OutboxMessage,
  tokenOf: (token: number) => string,
): readonly OutboxJob[] {
  const { id: outboxId, status, lockedAt } = message;
  return entries.map((entry) => {
    const [attempt, token, , perTenant, claimedMs, startedMs, endedMs, outcome] = entry;
    // A claim that came after it has another time.
    const isHeld = status === 'CLAIMED' && lockedAt?.getTime() === startedMs;
    return {
      id: deliveryJobId({ outboxId, attempt, token: tokenOf(token) }),
      queue: deliveryQueueName(message, Boolean(perTenant)),
      attempt,
      enqueuedAt: new Date(claimedMs),
      startedAt: new Date(startedMs),
      finishedAt: endedMs === undefined ? undefined : new Date(endedMs),
      outcome: outcome ?? (isHeld ? 'running' : 'lost'),
    };
  });
}
