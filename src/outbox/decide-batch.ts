// What follows from a batch of a lane: pure decisions that the relay carries out.

import { backoffMs, type BackoffPolicy } from '../foundation/backoff.ts';
import { decideDelivery, type DeliveryResult, type RetrySchedule } from './decide-delivery.ts';
import type { LaneBatch, LaneChange, LaneMessage, LaneOutcome } from './outbox-streams.ts';

/** How long a lane waits when nothing of a batch could be sent: the destination may be down. */
const holdBackoff: BackoffPolicy = {
  initialMs: 100,
  factor: 2,
  capMs: 30_000,
  jitterMs: 50,
  attemptsMax: Number.POSITIVE_INFINITY,
};

/** Those that may be sent now: behind one of its key that waits, a message waits too. */
export function sendable(items: readonly LaneMessage[]): readonly LaneMessage[] {
  const waiting = new Set<string>();
  return items.filter(({ mustWait, message: { orderingKey } }) => {
    const waits = mustWait || (orderingKey !== undefined && waiting.has(orderingKey));
    if (waits && orderingKey !== undefined) waiting.add(orderingKey);
    return !waits;
  });
}

export interface BatchContext {
  readonly nowMs: number;
  /** How many batches of this lane before it came to nothing. */
  readonly failures: number;
  readonly schedule?: RetrySchedule | undefined;
  /** In [0, 1). */
  readonly random?: number;
}

export interface BatchDecision {
  readonly outcome: LaneOutcome;
  readonly failures: number;
  /** Before the lane is asked for more. */
  readonly holdMs: number;
}

/**
 * A failed message is put aside with those of its key that follow, and the cursor goes past them: no other
 * key waits. But where nothing of a batch was sent, the destination may be down, and to put everything
 * aside would cost every message its attempts: the lane holds, and tries with a single message then.
 */
export function decideBatch(
  { claim, number, items }: LaneBatch,
  results: ReadonlyMap<LaneMessage, DeliveryResult>,
  { nowMs, failures, schedule, random = Math.random() }: BatchContext,
): BatchDecision {
  const all = [...results.values()];
  const isSent = all.some(({ kind }) => kind !== 'retry');
  // What had been put aside has failed before: that says nothing about the destination.
  const isDown = !isSent && [...results.keys()].some(({ isParked }) => !isParked);
  const isTried = all.some((result) => result.kind !== 'retry' || result.attempted !== false);
  const nothing = { claim, number, changes: [] };
  if (isDown && !isTried) {
    const askedMs = all.map((result) => ('afterMs' in result ? (result.afterMs ?? 0) : 0));
    const holdMs = Math.max(backoffMs(holdBackoff, 1, random), ...askedMs);
    return { outcome: nothing, failures, holdMs: Math.min(holdMs, holdBackoff.capMs) };
  }
  const holdMs = isDown ? backoffMs(holdBackoff, failures + 1, random) : 0;
  if (isDown && all.length > 1) return { outcome: nothing, failures: failures + 1, holdMs };

  const changes: LaneChange[] = [];
  const waiting = new Set<string>();
  for (const item of items) {
    const { message, position, isParked } = item;
    const key = message.orderingKey;
    const result = results.get(item);
    const isBehind = key !== undefined && waiting.has(key);
    // What was sent is sent, whatever came before it; what failed behind another did not have its turn.
    const decided =
      result === undefined || (isBehind && result.kind === 'retry')
        ? undefined
        : decideDelivery(message, result, { nowMs, schedule, random });
    if (decided?.kind === 'sent') {
      if (isParked) changes.push({ kind: 'sent', position });
      continue;
    }
    if (decided?.kind === 'dead') {
      changes.push({ kind: 'dead', position, error: decided.error });
      continue;
    }
    if (key !== undefined) waiting.add(key);
    if (decided?.kind === 'failed') {
      const { error, nextDueAt } = decided;
      changes.push({ kind: 'failed', position, error, nextDueAt });
    } else changes.push({ kind: 'waits', position, dueAt: decided?.dueAt });
  }
  const upTo = items.findLast(({ isParked }) => !isParked)?.position;
  const failuresNow = isDown ? failures + 1 : failures;
  return { outcome: { claim, number, upTo, changes }, failures: isSent ? 0 : failuresNow, holdMs };
}
