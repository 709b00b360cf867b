// Whether a snapshot is worth taking: a pure decision that the handler carries out.

import type { SnapshotPolicy } from './aggregate.ts';

export interface SinceSnapshot {
  /** How many events the next load would have to read. */
  readonly events: number;
  /** When the last snapshot was taken; without one, when the first of these events happened. */
  readonly sinceMs: number | undefined;
  readonly nowMs: number;
}

export function isSnapshotDue(
  { every, afterMs }: Pick<SnapshotPolicy<never>, 'every' | 'afterMs'>,
  { events, sinceMs, nowMs }: SinceSnapshot,
): boolean {
  if (events < 1) return false;
  if (events >= every) return true;
  return afterMs !== undefined && sinceMs !== undefined && nowMs - sinceMs >= afterMs;
}
