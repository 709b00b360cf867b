// Optimistic concurrency and idempotent append, decided in one place: EventStoreDB's rules.

/**
 * What a writer believes about the stream: its last revision, that it has none (`none`), that it
 * has some (`exists`), or nothing at all (`any`).
 */
export type ExpectedRevision = number | 'none' | 'exists' | 'any';

/** What an engine knows of a stream while it holds the right to write to it. */
export interface StreamState {
  /** The last event's revision; −1 while only metadata exists. */
  readonly revision: number;
  /** Events below it are hidden; `softDeleted` hides all there are. */
  readonly truncateBefore: number;
  readonly maxCount?: number;
  readonly maxAgeSeconds?: number;
  readonly tombstoned: boolean;
}

/** The truncate-before of a stream that was deleted but may come back. */
export const softDeleted = Number.MAX_SAFE_INTEGER;

export type AppendDecision =
  | { readonly kind: 'append'; readonly firstRevision: number; readonly revives: boolean }
  /** The same events are there already; the last of them has this revision. */
  | { readonly kind: 'repeated'; readonly revision: number }
  | { readonly kind: 'conflict'; readonly actual: number }
  | { readonly kind: 'deleted' };

/** Looks up what is stored, only where the decision needs it. */
export interface KnownEvents {
  /** Event ids at these revisions of the stream, in order; shorter where the stream ends. */
  idsFrom(revision: number, count: number): readonly string[];
  /** The revision of the event with this id in the stream. */
  revisionOf(eventId: string): number | undefined;
}

/**
 * Decides an append of `ids` to a stream. At an exact revision, the same ids in the same slots are
 * a repeat and other ids a conflict; with `any` and `exists`, ids that are all known are a repeat,
 * a first id that is unknown is new, and a mixture is a conflict. `follows` is the id that the event at
 * the exact revision must have: whoever decided on what was read before asks for it, as a stream that
 * was deleted meanwhile is at the same revision still.
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
    const isBehind =
      follows === undefined || (state !== undefined && isLast(state, follows, known));
    return isBehind ? append : { kind: 'conflict', actual: revision };
  }
  if (exact > revision) return { kind: 'conflict', actual: revision };
  const stored = known.idsFrom(exact + 1, ids.length);
  if (ids.every((id, index) => stored[index] === id)) {
    return { kind: 'repeated', revision: exact + ids.length };
  }
  // A soft-deleted stream counts as none and goes on where it was, but not for a late repeat.
  if (expected === 'none' && revives && stored[0] !== ids[0]) return append;
  return { kind: 'conflict', actual: revision };
}

/** Whether readers of the stream find this event at its end; by its age, only they can tell. */
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
  return { kind: 'repeated', revision: last };
}
