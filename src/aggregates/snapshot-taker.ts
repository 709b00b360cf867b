// Takes a snapshot of what was just loaded or decided, when the policy asks for one.

import type { NewCommand } from '../contracts/define-command.ts';
import type { NewEvent } from '../contracts/envelope.ts';
import type { Clock } from '../foundation/clock.ts';
import type { Observer } from '../foundation/observer.ts';
import { subjectHeader } from '../store/erasure.ts';
import type { Aggregate } from './aggregate.ts';
import type { CommandResult } from './command-handler.ts';
import { encodeState } from './encode-state.ts';
import type { Rehydrated } from './rehydrate.ts';
import { isSnapshotDue } from './snapshot-due.ts';
import type { SnapshotStore } from './snapshot-store.ts';
import { createSnapshotWriter } from './snapshot-writer.ts';

export interface SnapshotTaker<State, Event extends NewEvent> {
  /** After a load, and after a command what it added to that. Returns at once: whether one is taken. */
  consider(
    stream: string,
    loaded: Rehydrated<State>,
    result?: CommandResult<State, Event>,
  ): boolean;
  flush(deadlineMs: number): Promise<boolean>;
}

export interface SnapshotTakerOptions<State, Event extends NewEvent, Command extends NewCommand> {
  readonly aggregate: Aggregate<State, Event, Command>;
  readonly snapshots: SnapshotStore | undefined;
  readonly clock: Clock;
  readonly observer: Observer;
}

export function createSnapshotTaker<State, Event extends NewEvent, Command extends NewCommand>(
  options: SnapshotTakerOptions<State, Event, Command>,
): SnapshotTaker<State, Event> {
  const { aggregate, snapshots, clock, observer } = options;
  if (snapshots === undefined) return { consider: () => false, flush: async () => true };
  const policy = aggregate.snapshot;
  const writer = createSnapshotWriter(snapshots, { clock, observer });

  return {
    consider(stream, loaded, result) {
      const { state, revision } = result ?? loaded;
      const last = result?.events.at(-1);
      const eventId = last?.eventId ?? loaded.eventId;
      const nowMs = clock.now();
      const events = revision - loaded.snapshotRevision;
      if (eventId === undefined) return false;
      if (!isSnapshotDue(policy, { events, sinceMs: loaded.sinceMs, nowMs })) return false;
      // All events of one command carry the same headers.
      const personal = loaded.personal || last?.headers?.[subjectHeader] !== undefined;
      if (personal && policy.holdsPersonalData) return false;
      writer.schedule(stream, () => ({
        revision,
        eventId,
        state: encodeState(policy, state),
        codeVersion: policy.codeVersion,
        takenAt: new Date(nowMs).toISOString(),
      }));
      return true;
    },
    flush: (deadlineMs) => writer.flush(deadlineMs),
  };
}
