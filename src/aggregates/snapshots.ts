// Taking and loading snapshots. Neither may slow down a command or make it fail.

import { encodePayload } from '../contracts/json-payload.ts';
import type { Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import { withinTime } from '../foundation/async/within-time.ts';
import { isForgotten, isSealed } from '../store/erasure.ts';
import type { PersonalData } from '../store/personal-data.ts';

import type { Snapshot, SnapshotStore } from './snapshot-store.ts';

export const snapshotLimits = {
  stateBytesMax: 16 * 1_048_576,
  stateDepthMax: 100,
  /** Streams that wait for their snapshot to be saved; further snapshots are dropped. */
  waitingMax: 1_000,
  writersMax: 2,
  /** Default deadline of `flush` and dispose. */
  flushMs: 5_000,
} as const;

/** When snapshots are taken, and when an existing one is ignored. */
export interface SnapshotPolicy<State> {
  /** A snapshot is taken after this many events since the last one. */
  readonly every: number;
  /** A snapshot is also taken when there are new events and the last snapshot is older than this. */
  readonly afterMs: number | undefined;
  /** Increase it whenever `evolve` changes: snapshots of another version are ignored and replaced. */
  readonly codeVersion: number;
  /**
   * Whether the state contains data from events that carry a data subject. While this is true (the default), the
   * state of an aggregate with events about one person is encrypted with the key of that person, and the state of
   * an aggregate with events about several persons is never stored.
   */
  readonly holdsPersonalData: boolean;
  /** Convert the state to JSON and back, for states with dates, maps or big integers. */
  encode(state: State): unknown;
  decode(json: unknown): State;
}

/** A state just loaded or decided. */
interface SnapshotCandidate<State> {
  readonly state: State;
  readonly revision: number;
  readonly eventId: string;
  /** Revision of the last snapshot; −1: there is none. */
  readonly snapshotRevision: number;
  readonly sinceMs: number | undefined;
  /** The data subjects of the events in the state. */
  readonly subjects: ReadonlySet<string>;
}

export interface SnapshotTaker<State> {
  /** Returns immediately whether a snapshot is due; it is saved in the background. */
  consider(stream: string, candidate: SnapshotCandidate<State>): boolean;
  /** True after all scheduled snapshots were saved or failed; false when the deadline passed first. */
  flush(deadlineMs: number): Promise<boolean>;
}

export function createSnapshotTaker<State>(
  policy: SnapshotPolicy<State>,
  {
    snapshots,
    personalData,
    clock,
    observer,
  }: {
    readonly snapshots: SnapshotStore | undefined;
    readonly personalData: PersonalData;
    readonly clock: Clock;
    readonly observer: Observer;
  },
): SnapshotTaker<State> {
  if (snapshots === undefined) return { consider: () => false, flush: async () => true };
  /** At most one per stream: a newer snapshot replaces the one that waits. */
  const waiting = new Map<string, () => Promise<Snapshot | undefined>>();
  const writers = new Set<Promise<void>>();
  let activeWriters = 0;

  async function writeAll(store: SnapshotStore): Promise<void> {
    for (const [stream, take] of waiting) {
      waiting.delete(stream);
      try {
        const snapshot = await take();
        if (snapshot === undefined) continue;
        await store.save(stream, snapshot);
        observer.count?.('snapshots_taken_total', { outcome: 'saved' });
      } catch (err) {
        observer.count?.('snapshots_taken_total', { outcome: 'failed' });
        observer.log?.warn({ stream, err }, 'snapshot not saved');
      }
    }
    // Decrement without an await after the last check, or a snapshot scheduled in between would stay.
    activeWriters -= 1;
  }

  function schedule(
    store: SnapshotStore,
    stream: string,
    take: () => Promise<Snapshot | undefined>,
  ): void {
    if (waiting.size >= snapshotLimits.waitingMax && !waiting.has(stream)) {
      observer.count?.('snapshots_taken_total', { outcome: 'dropped' });
      return;
    }
    waiting.set(stream, take);
    if (activeWriters >= snapshotLimits.writersMax) return;
    activeWriters += 1;
    const writer = writeAll(store).finally(() => writers.delete(writer));
    writers.add(writer);
  }

  return {
    consider(stream, { state, revision, eventId, snapshotRevision, sinceMs, subjects }) {
      const nowMs = clock.now();
      const events = revision - snapshotRevision;
      if (!isSnapshotDue(policy, { events, sinceMs, nowMs })) return false;
      const [subject, ...others] = policy.holdsPersonalData ? subjects : [];
      if (others.length > 0) return false;
      schedule(snapshots, stream, async () => {
        const plain = encodeState(policy, state);
        const encoded =
          subject === undefined
            ? plain
            : await sealState(personalData, { subject, stream, state: plain });
        if (encoded === undefined) return undefined;
        const takenAt = new Date(nowMs).toISOString();
        return { revision, eventId, state: encoded, codeVersion: policy.codeVersion, takenAt };
      });
      return true;
    },

    async flush(deadlineMs) {
      const written = (async () => {
        while (writers.size > 0) await Promise.all(writers);
        return true;
      })();
      return withinTime(written, { ms: deadlineMs, late: () => false, clock });
    },
  };
}

export interface SinceSnapshot {
  /** Number of events that the next load has to read. */
  readonly events: number;
  /** When the last snapshot was taken; without one, when the first of these events was recorded. */
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

export interface UsableSnapshot<State> extends Omit<Snapshot, 'state'> {
  readonly state: State;
  /** The person whose data the state contains. */
  readonly subject: string | undefined;
}

/** A state that is encrypted with the key of a person. */
interface SealedState {
  readonly $subject: string;
  readonly value: unknown;
}

/** Undefined: the person was forgotten. */
async function sealState(
  personalData: PersonalData,
  { subject, stream, state }: { subject: string; stream: string; state: unknown },
): Promise<SealedState | undefined> {
  const json = JSON.stringify(state);
  const [sealed = ''] = await personalData.seal([{ subject, id: stream, json }]);
  const value: unknown = JSON.parse(sealed);
  return isForgotten(value) ? undefined : { $subject: subject, value };
}

function isSealedState(state: unknown): state is SealedState {
  return typeof state === 'object' && state !== null && '$subject' in state;
}

/** The stored snapshot if the current code can use it; an unreadable snapshot is only logged. */
export async function usableSnapshot<State>(
  stream: string,
  {
    snapshot: policy,
    initial,
  }: { readonly snapshot: SnapshotPolicy<State>; readonly initial: State },
  {
    snapshots,
    personalData,
    observer,
  }: {
    readonly snapshots: SnapshotStore;
    readonly personalData: PersonalData;
    readonly observer: Observer;
  },
): Promise<UsableSnapshot<State> | undefined> {
  try {
    const found = await snapshots.load(stream);
    // A state computed by another code version may have different fields or meanings.
    if (found === undefined || found.codeVersion !== policy.codeVersion) return undefined;
    assertValid(found);
    let { state } = found;
    let subject: string | undefined;
    if (isSealedState(state)) {
      subject = state.$subject;
      [state] = await personalData.unseal([{ subject, id: stream, value: state.value }]);
      if (isForgotten(state)) return undefined;
      if (isSealed(state)) throw new TypeError('the snapshot cannot be decrypted');
    }
    assertShape(state, policy.encode(initial));
    return { ...found, state: policy.decode(state), subject };
  } catch (err) {
    observer.log?.warn({ stream, err }, 'unreadable snapshot ignored');
    return undefined;
  }
}

function assertValid({ revision, eventId, takenAt }: Snapshot): void {
  const invalidField =
    !Number.isInteger(revision) || revision < 0
      ? 'revision'
      : typeof eventId !== 'string'
        ? 'eventId'
        : Number.isNaN(Date.parse(takenAt))
          ? 'takenAt'
          : undefined;
  if (invalidField !== undefined) throw new TypeError(`the snapshot's ${invalidField} is invalid`);
}

/** A stored state has the kind of the initial one, and so has each of its fields that the initial one has. */
function assertShape(state: unknown, initial: unknown): void {
  if (kindOf(initial) === 'null') return;
  const isFit =
    kindOf(state) === kindOf(initial) &&
    Object.entries(Object(initial) as object).every(([name, value]: [string, unknown]) => {
      const kinds = [value, (state as Readonly<Record<string, unknown>>)[name]].map(kindOf);
      return kinds.includes('null') || kinds[0] === kinds[1];
    });
  if (!isFit)
    throw new TypeError("the snapshot's state does not have the shape of the initial state");
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  return Array.isArray(value) ? 'list' : typeof value;
}

/** The JSON value of a state; throws if JSON cannot represent a member of the state. */
export function encodeState<State>(policy: SnapshotPolicy<State>, state: State): unknown {
  const value = policy.encode(state);
  const { stateBytesMax: payloadBytesMax, stateDepthMax: payloadDepthMax } = snapshotLimits;
  encodePayload(value, { payloadBytesMax, payloadDepthMax });
  assertUnchangedByJson(value);
  return value;
}

/** For example, a date would be loaded as a string, which `evolve` does not expect. */
function assertUnchangedByJson(value: unknown): void {
  JSON.stringify(value, function (this: Readonly<Record<string, unknown>>, key, member: unknown) {
    if (this[key] === member) return member;
    throw new MillraceError(
      'PAYLOAD_NOT_JSON',
      `'${key}' of the state changes when converted to JSON: define snapshot.encode and snapshot.decode`,
      { details: { key } },
    );
  });
}
