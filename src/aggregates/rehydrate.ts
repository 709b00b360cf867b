// An aggregate's state from its snapshot and the events behind it, or from all of them.

import type { NewCommand } from '../contracts/define-command.ts';
import type { NewEvent } from '../contracts/envelope.ts';
import type { Observer } from '../foundation/observer.ts';
import { subjectHeader } from '../store/erasure.ts';
import type { EventStore } from '../store/event-store.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import type { Aggregate } from './aggregate.ts';
import type { RememberedState, RememberedStates } from './remembered-states.ts';
import type { SnapshotStore } from './snapshot-store.ts';
import { usableSnapshot } from './usable-snapshot.ts';

export interface RehydrateSource<State, Event extends NewEvent, Command extends NewCommand> {
  readonly store: EventStore;
  readonly aggregate: Aggregate<State, Event, Command>;
  readonly snapshots: SnapshotStore | undefined;
  /** Absent: every state is read anew. */
  readonly remembered?: RememberedStates<State> | undefined;
  readonly observer: Observer;
}

export interface RehydrateQuery {
  readonly stream: string;
  /** Stops after this revision; later where retention hides events below it. Default: the end. */
  readonly through?: number;
  /** Reports whether this event was among those read. */
  readonly watchFor?: string | undefined;
  /** An append found the stream elsewhere than the last read did. */
  readonly afterConflict?: boolean;
  readonly signal?: AbortSignal | undefined;
}

export interface Rehydrated<State> {
  readonly state: State;
  /** Of the last event in the state, and its id; −1: nothing has happened yet. */
  readonly revision: number;
  readonly eventId: string | undefined;
  /** Of the snapshot that this began with; −1: with the initial state. */
  readonly snapshotRevision: number;
  /** When that snapshot was taken, or else when the first event was recorded. */
  readonly sinceMs: number | undefined;
  /** Every event since the very first was read; false also when there was nothing to read. */
  readonly complete: boolean;
  readonly sawWatched: boolean;
  /** An event that carries a data subject is part of the state. */
  readonly personal: boolean;
}

export async function rehydrate<State, Event extends NewEvent, Command extends NewCommand>(
  source: RehydrateSource<State, Event, Command>,
  query: RehydrateQuery,
): Promise<Rehydrated<State>> {
  const { store, aggregate, remembered, observer } = source;
  const { stream, through = Number.MAX_SAFE_INTEGER, watchFor, signal } = query;
  const recalled = within(through, remembered?.recall(stream));
  const base = recalled ?? within(through, await snapshotOf(source, stream));
  const from = base?.revision ?? 0;

  let state = base === undefined ? aggregate.initial : base.state;
  let revision = -1;
  let eventId: string | undefined;
  let sinceMs = base?.sinceMs;
  let complete = false;
  let sawWatched = false;
  let personal = false;

  /** False: this is not the history that the snapshot was taken of. */
  const take = (event: RecordedEvent): boolean => {
    const isFirst = revision === -1;
    // The snapshot's own event is read once more: in a stream that was deleted or restored since,
    // another event is there, or none, and the snapshot tells of a history that is gone.
    if (isFirst && base !== undefined && event.eventId !== base.eventId) return false;
    if (event.eventId === watchFor) sawWatched = true;
    if (!isFirst || base === undefined) {
      complete ||= event.revision === 0;
      state = aggregate.evolve(state, event);
      sinceMs ??= Date.parse(event.recordedAt);
      personal ||= event.headers?.[subjectHeader] !== undefined;
    }
    ({ revision, eventId } = event);
    return true;
  };

  const read = store.readStream(stream, {
    from,
    ...(through === Number.MAX_SAFE_INTEGER ? {} : { limit: through - from + 1 }),
    ...(signal === undefined ? {} : { signal }),
  });
  for await (const page of read.pages()) if (!page.every(take)) break;

  if (recalled !== undefined && revision === -1) {
    remembered?.forget(stream);
    return rehydrate({ ...source, remembered: undefined }, query);
  }
  if (base !== undefined && revision === -1) {
    observer.log?.warn({ stream, revision: base.revision }, 'snapshot ignored: its event is gone');
    return rehydrate({ ...source, remembered: undefined, snapshots: undefined }, query);
  }
  if (revision === -1 && query.afterConflict === true) {
    // Nothing to read and yet not at none: retention hides every event there is.
    revision = (await store.streamInfo(stream))?.revision ?? -1;
  }
  return {
    state,
    revision,
    eventId,
    snapshotRevision: base?.snapshotRevision ?? -1,
    sinceMs,
    complete,
    sawWatched,
    personal,
  };
}

async function snapshotOf<State, Event extends NewEvent, Command extends NewCommand>(
  { aggregate, snapshots, observer }: RehydrateSource<State, Event, Command>,
  stream: string,
): Promise<RememberedState<State> | undefined> {
  if (snapshots === undefined) return undefined;
  const found = await usableSnapshot(stream, aggregate.snapshot, { snapshots, observer });
  if (found === undefined) return undefined;
  const { state, revision, eventId, takenAt } = found;
  return { state, revision, eventId, snapshotRevision: revision, sinceMs: Date.parse(takenAt) };
}

function within<State>(
  through: number,
  base: RememberedState<State> | undefined,
): RememberedState<State> | undefined {
  return base !== undefined && base.revision <= through ? base : undefined;
}
