// Which events a stream's metadata hides: one set of rules for every engine.

import { softDeleted, type StreamState } from './expected-revision.ts';
import type { RetentionChange, StreamQuery } from './store-engine.ts';

export type RetentionDecision =
  | { readonly kind: 'retain'; readonly truncateBefore: number }
  | { readonly kind: 'conflict'; readonly actual: number }
  | { readonly kind: 'deleted' };

/**
 * Decides a change of a stream's retention, deletion included, by EventStoreDB's rules. New metadata
 * of a deleted stream revives the stream, but none of its deleted events.
 */
export function decideRetention(
  state: StreamState | undefined,
  { values, expected = 'any' }: RetentionChange,
): RetentionDecision {
  if (state?.tombstoned === true) return { kind: 'deleted' };
  const actual = state?.revision ?? -1;
  const soft = state?.truncateBefore === softDeleted;
  if (expected === 'exists' && soft) return { kind: 'deleted' };
  const fits =
    expected === 'any' ||
    (expected === 'exists' && state !== undefined) ||
    (expected === 'none' && (actual === -1 || soft)) ||
    expected === actual;
  if (!fits) return { kind: 'conflict', actual };
  const { truncateBefore = 0 } = values;
  const revives = soft && truncateBefore !== softDeleted;
  return { kind: 'retain', truncateBefore: revives ? actual + 1 : truncateBefore };
}

/** The lowest revision that truncation and count leave visible. */
export function firstVisible(state: StreamState): number {
  const byCount = state.maxCount === undefined ? 0 : state.revision - state.maxCount + 1;
  return Math.max(0, state.truncateBefore, byCount);
}

/** The visible revisions of a query; undefined: none. Rows recorded before `recordedAfterMs` are hidden by age. */
export function visibleRange(
  {
    direction,
    from,
    liveFrom = Number.POSITIVE_INFINITY,
    nowMs,
  }: Pick<StreamQuery, 'direction' | 'from' | 'liveFrom' | 'nowMs'>,
  state: StreamState,
): { readonly low: number; readonly high: number; readonly recordedAfterMs: number } | undefined {
  const first = Math.min(firstVisible(state), liveFrom);
  const low = direction === 'forwards' ? Math.max(first, from) : first;
  const high = direction === 'forwards' ? state.revision : Math.min(from, state.revision);
  const { maxAgeSeconds } = state;
  const isAgeless = maxAgeSeconds === undefined || low >= liveFrom;
  const recordedAfterMs = isAgeless ? -1 : nowMs - maxAgeSeconds * 1_000;
  return low > high ? undefined : { low, high, recordedAfterMs };
}

export function isVisible(
  state: StreamState,
  row: { readonly revision: number; readonly recordedAtMs: number },
  nowMs: number,
): boolean {
  if (row.revision < firstVisible(state)) return false;
  return (
    state.maxAgeSeconds === undefined || row.recordedAtMs > nowMs - state.maxAgeSeconds * 1_000
  );
}
