// Optimistic concurrency and idempotent appends, by EventStoreDB's rules.

import { MillraceError } from '../foundation/error.ts';

/**
 * The state that a writer expects: the last revision, no stream (`none`), an existing stream
 * (`exists`), or no expectation (`any`).
 */
export type ExpectedRevision = number | 'none' | 'exists' | 'any';

/** The state of a stream, read under the engine's write lock. */
export interface StreamState {
  /** The last event's revision; −1 while only metadata exists. */
  readonly revision: number;
  /** Events below this revision are hidden; `softDeleted` hides all. */
  readonly truncateBefore: number;
  readonly maxCount?: number | undefined;
  readonly maxAgeSeconds?: number | undefined;
  readonly tombstoned: boolean;
}

/** The `truncateBefore` of a deleted stream that an append may revive. */
export const softDeleted = Number.MAX_SAFE_INTEGER;

export type AppendDecision =
  | { readonly kind: 'append'; readonly firstRevision: number; readonly revives: boolean }
  /** The events are already stored; the last one has this revision. */
  | { readonly kind: 'duplicate'; readonly revision: number }
  | { readonly kind: 'conflict'; readonly actual: number }
  | { readonly kind: 'deleted' };

/** Whether the append was rejected, so that nothing was written. */
export function isRejected<Outcome extends { readonly kind: string }>(
  outcome: Outcome,
): outcome is Extract<Outcome, { readonly kind: 'conflict' | 'deleted' }> {
  return outcome.kind === 'conflict' || outcome.kind === 'deleted';
}

/** Lookups of stored events, called only if the decision needs them. */
export interface KnownEvents {
  /** Event ids at these revisions of the stream, in order; fewer at the end of the stream. */
  idsFrom(revision: number, count: number): readonly string[];
  /** The revision of the event with this id in the stream. */
  revisionOf(eventId: string): number | undefined;
}

/**
 * Decides an append of `ids` to a stream. At an exact revision, the same ids at the same revisions are
 * a duplicate and other ids a conflict. With `any` and `exists`, ids that are all known are a duplicate,
 * an unknown first id is new, and a mixture is a conflict. `follows` is the id that the event at the
 * exact revision must have: it detects a stream that was deleted since the caller read it, which still
 * has the same revision.
 */
export function decideAppend(
  state: StreamState | undefined,
  expected: ExpectedRevision,
  ids: readonly string[],
  known: KnownEvents,
  follows?: string,
): AppendDecision {
  if (state?.tombstoned === true) return { kind: 'deleted' };
  const revision = state?.revision ?? -1;
  const revives = state?.truncateBefore === softDeleted;
  const append: AppendDecision = { kind: 'append', firstRevision: revision + 1, revives };
  if (expected === 'any' || expected === 'exists') {
    if (expected === 'exists' && state === undefined) return { kind: 'conflict', actual: -1 };
    if (expected === 'exists' && revives) return { kind: 'deleted' };
    return decideByIds(append, revision, ids, known);
  }
  const exact = expected === 'none' ? -1 : expected;
  if (exact === revision) {
    const isNext = follows === undefined || (state !== undefined && isLast(state, follows, known));
    return isNext ? append : { kind: 'conflict', actual: revision };
  }
  if (exact > revision) return { kind: 'conflict', actual: revision };
  const stored = known.idsFrom(exact + 1, ids.length);
  if (ids.every((id, index) => stored[index] === id)) {
    return { kind: 'duplicate', revision: exact + ids.length };
  }
  // A soft-deleted stream counts as none and continues its revisions, except for a late duplicate.
  if (expected === 'none' && revives && stored[0] !== ids[0]) return append;
  return { kind: 'conflict', actual: revision };
}

/** Whether this is the last visible event; with `maxAgeSeconds` that is unknown, so false. */
function isLast(state: StreamState, eventId: string, known: KnownEvents): boolean {
  const { revision, truncateBefore, maxAgeSeconds } = state;
  return (
    revision >= truncateBefore &&
    maxAgeSeconds === undefined &&
    known.idsFrom(revision, 1)[0] === eventId
  );
}

function decideByIds(
  append: AppendDecision,
  revision: number,
  ids: readonly string[],
  known: KnownEvents,
): AppendDecision {
  let last = -1;
  for (const [index, id] of ids.entries()) {
    const found = known.revisionOf(id);
    if (found === undefined) return index === 0 ? append : { kind: 'conflict', actual: revision };
    last = Math.max(last, found);
  }
  return { kind: 'duplicate', revision: last };
}

export function versionConflict(
  { stream, expected }: { readonly stream: string; readonly expected: ExpectedRevision },
  actual: number,
): MillraceError {
  return new MillraceError(
    'VERSION_CONFLICT',
    `stream '${stream}' was expected at ${expected}, but is at ${actual === -1 ? 'none' : actual}`,
    { details: { stream, expected, actual } },
  );
}

export function streamDeleted(stream: string): MillraceError {
  return new MillraceError('STREAM_DELETED', `stream '${stream}' was deleted`, {
    details: { stream },
  });
}
