// One attempt, from the claimed message to what the ledger is to write down: the same whether the dispatcher
// sends by itself or a worker behind a queue does.

import type { CallDeadlines } from '../foundation/call-deadlines.ts';
import type { Clock } from '../foundation/clock.ts';
import type { Observer } from '../foundation/observer.ts';
import { decideDelivery, killsItsProcess, type RetrySchedule } from './decide-delivery.ts';
import { deliverMessage, type Deliver } from './deliver-message.ts';
import { logOutbox } from './observe-outbox.ts';
import type { OutboxOutcome } from './outbox-ledger.ts';
import type { ClaimedMessage } from './outbox-message.ts';

export interface AttemptContext {
  readonly deliver: Deliver;
  readonly schedule: RetrySchedule | undefined;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly timeoutMs: number;
  /** Of calls that may take so long, and no longer than the process may wait. */
  readonly deadlines: CallDeadlines;
  readonly leaseMs: number;
  readonly source: string;
  readonly operation: 'OUTBOX_DIRECT_SEND' | 'OUTBOX_DELIVER';
}

export function attemptDelivery(
  message: ClaimedMessage,
  /** Before the lease was asked for: it is over no earlier than its length after this. */
  leasedAtMs: number,
  context: AttemptContext,
): Promise<OutboxOutcome> {
  const { schedule, clock, observer, timeoutMs, leaseMs, source, operation } = context;
  const claim = { id: message.id, token: message.token };
  const startMs = clock.now();
  // A send that could outlive its lease would meet the next owner's.
  if (startMs + timeoutMs > leasedAtMs + leaseMs) {
    return Promise.resolve({ kind: 'released', claim });
  }
  if (killsItsProcess(message)) {
    const error = `started ${message.starts} times without an end: it seems to end its process`;
    return Promise.resolve({ kind: 'dead', claim, error });
  }
  const { integrationType, eventType } = message;
  const what = { source, operation, phase: 'START' } as const;
  logOutbox(observer, what, message, { outboxId: message.id, integrationType });
  return deliverMessage(message, context, (result) => {
    const nowMs = clock.now();
    const attributes = { integrationType, eventType, outcome: result.kind };
    observer.record?.('outbox_delivery_duration_ms', nowMs - startMs, attributes);
    return decideDelivery(message, result, { nowMs, schedule });
  });
}
