// A snapshot, if there is one that today's code can start from; anything wrong with it is a log line.

import type { Observer } from '../foundation/observer.ts';
import type { SnapshotPolicy } from './aggregate.ts';
import type { Snapshot, SnapshotStore } from './snapshot-store.ts';

export interface UsableSnapshot<State> extends Omit<Snapshot, 'state'> {
  readonly state: State;
}

export async function usableSnapshot<State>(
  stream: string,
  policy: SnapshotPolicy<State>,
  { snapshots, observer }: { readonly snapshots: SnapshotStore; readonly observer: Observer },
): Promise<UsableSnapshot<State> | undefined> {
  try {
    const found = await snapshots.load(stream);
    // Code of another version took it: its state may have other fields, or mean other things.
    if (found === undefined || found.codeVersion !== policy.codeVersion) return undefined;
    assertShape(found);
    return { ...found, state: policy.decode(found.state) };
  } catch (err) {
    observer.log?.warn({ stream, err }, 'snapshot ignored: it cannot be read');
    return undefined;
  }
}

function assertShape({ revision, eventId, takenAt }: Snapshot): void {
  const wrong =
    !Number.isInteger(revision) || revision < 0
      ? 'revision'
      : typeof eventId !== 'string'
        ? 'eventId'
        : Number.isNaN(Date.parse(takenAt))
          ? 'takenAt'
          : undefined;
  if (wrong !== undefined) throw new TypeError(`the snapshot's ${wrong} is not valid`);
}
