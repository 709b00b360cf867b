// Reports a stored outcome: to the log, to the metrics, and a dead message to `onDead`.

import type { Clock } from '../foundation/clock.ts';
import type { Observer } from '../foundation/observer.ts';
import { withinTime } from '../foundation/async/within-time.ts';
import type { EndedItem } from '../loops/claim-loop.ts';
import { logOutbox } from './observe-outbox.ts';
import type { OutboxOutcome, SettleOutcome } from './outbox-ledger.ts';
import type { ClaimedMessage } from './outbox-message.ts';

/** Called after a message was stored as dead, for example to publish it to a dead-letter topic. A failure is logged. */
export type OnDead = (message: ClaimedMessage, error: string) => void | Promise<void>;

export type SettledMessage = EndedItem<ClaimedMessage, OutboxOutcome>;

/** Whether the next message of the same ordering key can be claimed now. */
export function freesOrderingKey({ item, outcome }: SettledMessage): boolean {
  return item.orderingKey !== undefined && (outcome.kind === 'sent' || outcome.kind === 'dead');
}

export function reportOutcome(
  { item: message, outcome }: SettledMessage,
  settled: SettleOutcome | undefined,
  to: {
    readonly source: string;
    readonly observer: Observer;
    readonly onDead: OnDead | undefined;
    /** Calls of `onDead` that have not ended; a stop waits for them. */
    readonly reports: Set<Promise<void>>;
  },
): void {
  const { source, observer, reports } = to;
  const { integrationType, eventType, correlationId } = message;
  const attributes = { integrationType, eventType, correlationId };
  if (outcome.kind === 'released') return;
  const phases = { sent: 'SENT', failed: 'FAILED', dead: 'DEAD' } as const;
  const isSettled = settled === 'settled';
  const phase = isSettled ? phases[outcome.kind] : 'STALE';
  const what = { source, operation: 'OUTBOX_DELIVER', phase } as const;
  const failure = loggedFailure(outcome);
  logOutbox(observer, what, message, { outboxId: message.id, integrationType, ...failure });
  if (!isSettled) return observer.count?.('outbox_stale_total', attributes);
  if (outcome.kind === 'sent') return observer.count?.('outbox_sent_total', attributes);
  if (outcome.kind === 'failed') return observer.count?.('outbox_failed_total', attributes);
  observer.count?.('outbox_dead_total', attributes);
  const report = reportDead(message, outcome.error, to).finally(() => reports.delete(report));
  reports.add(report);
}

/** The answer of a receiver may quote the message, so only the ledger has its text. */
function loggedFailure(outcome: OutboxOutcome): object {
  if (!('error' in outcome)) return {};
  const { error, attempt } = outcome;
  if (attempt?.status === undefined) return { error };
  return { error: `status ${attempt.status}`, answerChars: attempt.answer?.length };
}

async function reportDead(
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

/** Waits for the running attempts, and cancels them after `drainMs`. */
export async function drained(
  allSent: Promise<void>,
  {
    clock,
    drainMs,
    cancelling,
  }: { readonly clock: Clock; readonly drainMs: number; readonly cancelling: AbortController },
): Promise<void> {
  const late = (): Promise<void> => {
    cancelling.abort();
    return allSent;
  };
  await withinTime(allSent, { ms: drainMs, late, clock });
}

/** Waits for the running calls of `onDead`, at most `drainMs`. */
export async function whenReported(
  reports: ReadonlySet<Promise<void>>,
  { clock, drainMs }: { readonly clock: Clock; readonly drainMs: number },
): Promise<void> {
  await withinTime(Promise.all(reports), { ms: drainMs, late: () => undefined, clock });
}
