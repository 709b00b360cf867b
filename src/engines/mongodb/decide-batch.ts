// Decides a batch of appends in order on one known state: the documents to write, and the outcome of every append.
// The function is pure: committing to the log shows whether the state was current.

import { decideAppend, isRejected, softDeleted } from '../../store/expected-revision.ts';
import { decideRetention } from '../../store/retention.ts';
import type { StreamWrite, WriteOutcome } from '../../store/store-engine.ts';
import { toDocument } from './event-document.ts';
import type { EventDocument, StoredRetention } from './collections.ts';
import { freshState, type MongodbStreamState, type StreamStateMap } from './stream-states.ts';

/** An event that is stored in its stream, without its payload. */
export interface KnownEvent {
  readonly eventId: string;
  readonly revision: number;
  readonly position: number;
}

export interface KnownStreams {
  readonly states: StreamStateMap;
  /** Finds an appended id among the stored events of the stream. */
  eventById(stream: string, eventId: string): KnownEvent | undefined;
  eventAt(stream: string, revision: number): KnownEvent | undefined;
}

export interface DecidedBatch {
  readonly outcomes: readonly (readonly WriteOutcome[])[];
  readonly events: readonly EventDocument[];
  readonly states: StreamStateMap;
  /** False if at least one append is a duplicate, a conflict or rejected. */
  readonly isAllAppended: boolean;
}

interface Draft {
  state: MongodbStreamState | undefined;
  readonly byId: Map<string, KnownEvent>;
  readonly byRevision: Map<number, KnownEvent>;
}

type Drafts = Map<string, Draft>;

export function decideBatch(
  units: readonly (readonly StreamWrite[])[],
  known: KnownStreams,
  { position, recordedAt }: { readonly position: number; readonly recordedAt: Date },
): DecidedBatch {
  const drafts: Drafts = new Map();
  const events: EventDocument[] = [];
  let isAllAppended = true;

  const draftOf = (within: Drafts, stream: string): Draft => {
    const found = within.get(stream);
    if (found !== undefined) return found;
    const draft = copyOf(drafts.get(stream)) ?? {
      state: known.states.get(stream),
      byId: new Map(),
      byRevision: new Map(),
    };
    within.set(stream, draft);
    return draft;
  };

  const decide = (within: Drafts, write: StreamWrite, written: EventDocument[]): WriteOutcome => {
    const { stream, rows, retention } = write;
    let retained: StoredRetention | undefined;
    if (retention !== undefined) {
      const decision = decideRetention(draftOf(within, retention.of).state, retention);
      if (decision.kind !== 'retain') return decision;
      retained = { ...retention.values, truncateBefore: decision.truncateBefore };
    }
    const draft = draftOf(within, stream);
    const eventAt = (revision: number): KnownEvent | undefined =>
      draft.byRevision.get(revision) ?? known.eventAt(stream, revision);
    const eventById = (id: string): KnownEvent | undefined =>
      draft.byId.get(id) ?? known.eventById(stream, id);
    const decision = decideAppend(
      draft.state,
      write.expected,
      rows.map(({ eventId }) => eventId),
      {
        idsFrom: (revision, count) =>
          Array.from({ length: count }, (_, index) => eventAt(revision + index)?.eventId ?? ''),
        revisionOf: (id) => eventById(id)?.revision,
      },
    );
    if (isRejected(decision)) return decision;
    if (decision.kind === 'duplicate') {
      const { revision } = decision;
      const byId = rows.map(({ eventId }) => eventById(eventId));
      const last = eventAt(revision) ?? byId.find((event) => event?.revision === revision);
      return { kind: 'duplicate', revision, sequence: last?.position ?? 0 };
    }
    const before = draft.state ?? freshState;
    const revived = before.revived || decision.revives;
    const truncateBefore = decision.revives ? decision.firstRevision : before.truncateBefore;
    const lastRow = rows.length - 1;
    for (const [index, row] of rows.entries()) {
      const revision = decision.firstRevision + index;
      const at = position + events.length + written.length;
      const location = { stream, revision, position: at, recordedAt };
      const added: KnownEvent = { eventId: row.eventId, revision, position: at };
      draft.byId.set(row.eventId, added);
      draft.byRevision.set(revision, added);
      written.push({
        ...toDocument(row, location),
        ...(index < lastRow ? {} : marksOf(write, { retained, revived, truncateBefore })),
      });
    }
    const revision = decision.firstRevision + lastRow;
    const tombstoned = write.tombstone === true;
    draft.state = { ...before, revision, truncateBefore, tombstoned, revived };
    if (retention !== undefined && retained !== undefined) {
      const target = draftOf(within, retention.of);
      const { revision: last, tombstoned: ended } = target.state ?? freshState;
      target.state = { ...retained, revision: last, tombstoned: ended, revived: false };
    }
    return { kind: 'appended', revision, sequence: position + events.length + written.length - 1 };
  };

  const outcomes = units.map((writes): WriteOutcome[] => {
    // A single write changes the drafts or not; several writes need separate drafts that can be dropped.
    const within: Drafts = writes.length === 1 ? drafts : new Map();
    const written: EventDocument[] = [];
    const results = writes.map((write) => decide(within, write, written));
    isAllAppended &&= results.every(({ kind }) => kind === 'appended');
    if (!results.some(isRejected)) {
      for (const [stream, draft] of within) drafts.set(stream, draft);
      events.push(...written);
    }
    return results;
  });

  const states = new Map([...drafts].map(([stream, { state }]) => [stream, state]));
  return { outcomes, events, states, isAllAppended };
}

/** The changes of the stream state that the last event of an append records. */
function marksOf(
  { tombstone }: StreamWrite,
  {
    retained,
    revived,
    truncateBefore,
  }: {
    readonly retained: StoredRetention | undefined;
    readonly revived: boolean;
    readonly truncateBefore: number;
  },
): Partial<EventDocument> {
  return {
    ...(tombstone === true ? { tombstone } : {}),
    ...(retained === undefined ? {} : { retention: retained }),
    ...(revived && truncateBefore !== softDeleted ? { truncateBefore } : {}),
  };
}

function copyOf(draft: Draft | undefined): Draft | undefined {
  if (draft === undefined) return undefined;
  const { state, byId, byRevision } = draft;
  return { state, byId: new Map(byId), byRevision: new Map(byRevision) };
}
