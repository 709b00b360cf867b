// The jobs that carried a message through a queue, as the ledger stores them, because a queue removes ended jobs. A
// worker stores its job together with the claim that it takes over, so it costs no additional write.

import type { OutboxJob } from '../contracts/outbox-job.ts';
import { deliveryJobId, deliveryQueueName } from './delivery-job.ts';
import type { OutboxMessage } from './outbox-message.ts';

/** The JSON form that engines store. `taken` is the worker's token. */
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

/** The last jobs of a message, so that repeated replays do not make its row grow. */
export const jobsKept = 20;

/** `tokenOf`: converts an engine's number to the token of a claim. */
export function outboxJobs(
  entries: readonly JobEntry[],
  message: OutboxMessage,
  tokenOf: (token: number) => string,
): readonly OutboxJob[] {
  const { id: outboxId, status, lockedAt } = message;
  return entries.map((entry) => {
    const [attempt, token, , perTenant, claimedMs, startedMs, endedMs, outcome] = entry;
    // A later claim has another time.
    const isClaimed = status === 'CLAIMED' && lockedAt?.getTime() === startedMs;
    return {
      id: deliveryJobId({ outboxId, attempt, token: tokenOf(token) }),
      queue: deliveryQueueName(message, Boolean(perTenant)),
      attempt,
      enqueuedAt: new Date(claimedMs),
      startedAt: new Date(startedMs),
      finishedAt: endedMs === undefined ? undefined : new Date(endedMs),
      outcome: outcome ?? (isClaimed ? 'running' : 'lost'),
    };
  });
}
