// What was written down is told: to the log, to the metrics, and of the dead to whoever asked for them.

import type { Clock } from '../foundation/clock.ts';
import type { Observer } from '../foundation/observer.ts';
import { logOutbox } from './observe-outbox.ts';
import type { OutboxOutcome, SettleOutcome } from './outbox-ledger.ts';
import type { ClaimedMessage } from './outbox-message.ts';

/** After a message was written down as dead: for a topic of dead letters. A failure is logged. */
export type OnDead = (message: ClaimedMessage, error: string) => void | Promise<void>;

export interface SettledMessage {
  readonly message: ClaimedMessage;
  readonly outcome: OutboxOutcome;
}

export function tellOutcome(
  { message, outcome }: SettledMessage,
  settled: SettleOutcome | undefined,
  to: {
    readonly source: string;
    readonly observer: Observer;
    readonly onDead: OnDead | undefined;
    /** What is being told, for whoever stops. */
    readonly telling: Set<Promise<void>>;
  },
): void {
  const { source, observer, telling } = to;
  const { integrationType, eventType } = message;
  const attributes = { integrationType, eventType };
  if (outcome.kind === 'released') return;
  const phases = { sent: 'SENT', failed: 'FAILED', dead: 'DEAD' } as const;
  const isSettled = settled === 'settled';
  const phase = isSettled ? phases[outcome.kind] : 'STALE';
  const what = { source, operation: 'OUTBOX_DELIVER', phase } as const;
  const err = 'error' in outcome ? { error: outcome.error } : {};
  logOutbox(observer, what, message, { outboxId: message.id, integrationType, ...err });
  if (!isSettled) return observer.count?.('outbox_stale_total', attributes);
  if (outcome.kind === 'sent') return observer.count?.('outbox_sent_total', attributes);
  if (outcome.kind === 'failed') return observer.count?.('outbox_failed_total', attributes);
  observer.count?.('outbox_dead_total', attributes);
  const told = tellDead(message, outcome.error, to).finally(() => telling.delete(told));
  telling.add(told);
}

async function tellDead(
  message: ClaimedMessage,
  error: string,
  { observer, onDead }: { readonly observer: Observer; readonly onDead: OnDead | undefined },
): Promise<void> {
  try {
    await onDead?.(message, error);
  } catch (failure) {
    observer.log?.error({ outboxId: message.id, err: failure }, 'onDead failed');
  }
}

/** Of the dead that were written down somebody should still hear, if it does not take too long. */
export async function whenTold(
  telling: ReadonlySet<Promise<void>>,
  { clock, drainMs }: { readonly clock: Clock; readonly drainMs: number },
): Promise<void> {
  const told = new AbortController();
  const longEnough = clock.sleep(drainMs, told.signal).catch(() => undefined);
  await Promise.race([Promise.all(telling), longEnough]);
  told.abort();
}

/** Whether the next one of its key may be claimed now. */
export function freesOthers({ message, outcome }: SettledMessage): boolean {
  return message.orderingKey !== undefined && (outcome.kind === 'sent' || outcome.kind === 'dead');
}
