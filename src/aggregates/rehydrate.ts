// Loads an aggregate's state: from a cached state or a snapshot and the events after it, or from all events.

import type { NewCommand } from '../contracts/define-command.ts';
import type { NewEvent } from '../contracts/envelope.ts';
import type { Observer } from '../foundation/observer.ts';
import { subjectOf } from '../store/erasure.ts';
import type { EventStore } from '../store/event-store.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import type { Aggregate } from './define-aggregate.ts';
import type { RememberedState, RememberedStates } from './remembered-states.ts';
import type { SnapshotStore } from './snapshot-store.ts';
import { usableSnapshot, type UsableSnapshot } from './snapshots.ts';
import { ownerMismatch } from '../store/stream-owners.ts';

export interface RehydrateSource<State, Event extends NewEvent, Command extends NewCommand> {
  readonly store: EventStore;
  readonly aggregate: Aggregate<State, Event, Command>;
  readonly snapshots: SnapshotStore | undefined;
  /** Absent: no cached states are used. */
  readonly remembered?: RememberedStates<State> | undefined;
  readonly observer: Observer;
}

export interface RehydrateQuery {
  readonly stream: string;
  /** The tenant that the stream must belong to. */
  readonly tenant: string;
  /** Stops after this revision, or later if retention hides earlier events. Default: the last event. */
  readonly through?: number | undefined;
  /** `sawWatched` reports whether an event with this id was read. */
  readonly watchFor?: string | undefined;
  /** The previous append failed with a conflict. */
  readonly afterConflict?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface Rehydrated<State> {
  readonly tenant: string;
  readonly state: State;
  /** Revision and id of the last event in the state; −1: the stream has no events. */
  readonly revision: number;
  readonly eventId: string | undefined;
  /** Revision of the snapshot that loading started from; −1: from the initial state. */
  readonly snapshotRevision: number;
  /** When that snapshot was taken; without one, when the first event was recorded. */
  readonly sinceMs: number | undefined;
  /** All events from the first one were read; also false if there were no events to read. */
  readonly complete: boolean;
  readonly sawWatched: boolean;
  /** The data subjects of the events in the state. */
  readonly subjects: ReadonlySet<string>;
}

/** The state that loading starts from. No state of a person is remembered, so only a snapshot has a subject. */
type StartState<State> = RememberedState<State> & Partial<Pick<UsableSnapshot<State>, 'subject'>>;

export async function rehydrate<State, Event extends NewEvent, Command extends NewCommand>(
  source: RehydrateSource<State, Event, Command>,
  query: RehydrateQuery,
): Promise<Rehydrated<State>> {
  const { store, aggregate, remembered, observer } = source;
  const { stream, tenant, through = Number.MAX_SAFE_INTEGER, watchFor, signal } = query;
  const recalled = within(through, remembered?.recall(stream));
  const base: StartState<State> | undefined =
    recalled ?? within(through, await snapshotOf(source, query));
  const from = base?.revision ?? 0;

  let state = base === undefined ? aggregate.initial : base.state;
  let revision = -1;
  let eventId: string | undefined;
  let sinceMs = base?.sinceMs;
  let complete = false;
  let sawWatched = false;
  const subjects = new Set(base?.subject === undefined ? [] : [base.subject]);

  /** False: the snapshot belongs to a different history. */
  const apply = (event: RecordedEvent): boolean => {
    const isFirst = revision === -1;
    // The name fits two tenants if one was created later; foreign clients write events without a tenant.
    if (isFirst && event.tenant !== tenant && event.tenant !== '') throw ownerMismatch(stream);
    // Read the snapshot's last event again: if the stream was deleted or restored since, the event
    // at that revision is a different one or missing, and the snapshot is invalid.
    if (isFirst && base !== undefined && event.eventId !== base.eventId) return false;
    if (event.eventId === watchFor) sawWatched = true;
    if (!isFirst || base === undefined) {
      complete ||= event.revision === 0;
      state = aggregate.evolve(state, event);
      sinceMs ??= Date.parse(event.recordedAt);
      const subject = subjectOf(event);
      if (subject !== undefined) subjects.add(subject);
    }
    ({ revision, eventId } = event);
    return true;
  };

  const read = store.readStream(stream, {
    from,
    limit: query.through === undefined ? undefined : query.through - from + 1,
    signal,
  });
  for await (const page of read.pages()) if (!page.every(apply)) break;

  if (recalled !== undefined && revision === -1) {
    remembered?.evict(stream);
    return rehydrate({ ...source, remembered: undefined }, query);
  }
  if (base !== undefined && revision === -1) {
    observer.log?.warn(
      { stream, revision: base.revision },
      'snapshot ignored: its last event no longer exists',
    );
    return rehydrate({ ...source, remembered: undefined, snapshots: undefined }, query);
  }
  if (revision === -1 && query.afterConflict === true) {
    // The stream exists but has no readable events: retention hides all of them.
    revision = (await store.streamInfo(stream))?.revision ?? -1;
  }
  return {
    tenant,
    state,
    revision,
    eventId,
    snapshotRevision: base?.snapshotRevision ?? -1,
    sinceMs,
    complete,
    sawWatched,
    subjects,
  };
}

async function snapshotOf<State, Event extends NewEvent, Command extends NewCommand>(
  { store, aggregate, snapshots, observer }: RehydrateSource<State, Event, Command>,
  { stream, tenant }: RehydrateQuery,
): Promise<StartState<State> | undefined> {
  if (snapshots === undefined) return undefined;
  const found = await usableSnapshot(stream, aggregate, {
    snapshots,
    personalData: store.personalData,
    observer,
  });
  if (found === undefined) return undefined;
  const { state, revision, eventId, takenAt, subject } = found;
  return {
    tenant,
    state,
    revision,
    eventId,
    snapshotRevision: revision,
    sinceMs: Date.parse(takenAt),
    subject,
  };
}

function within<Base extends RememberedState<unknown>>(
  through: number,
  base: Base | undefined,
): Base | undefined {
  return base !== undefined && base.revision <= through ? base : undefined;
}
