// Enqueues jobs. A job is written only if its id does not exist. The entry of a dedupe key contains the id of its job. If
// a process died before it wrote the job, the next process that uses the key writes its job under that id.

import type { EnqueueEntry, EnqueueOutcome, TaskEngine } from '../../../tasks/task-engine.ts';
import { natsUnavailable } from '../connection/connection.ts';
import { dedupeText, type TaskIndex } from './task-index.ts';
import { taskKeys } from './keys.ts';
import type { TaskRows } from './rows.ts';
import type { TaskSignals } from './signals.ts';

interface PendingEntry {
  readonly entry: EnqueueEntry;
  /** The id of the dedupe key's job, if the key exists. */
  readonly id: string;
  /** The sequence of the marker under this id; 0 if there is no marker. */
  readonly expected: number;
}

const roundsMax = 100;

export function createEnqueue(parts: {
  readonly rows: TaskRows;
  readonly index: TaskIndex;
  readonly signals: TaskSignals;
}): TaskEngine['enqueue'] {
  const { rows, index, signals } = parts;

  return async (entries, nowMs) => {
    const outcomes = new Map<EnqueueEntry, EnqueueOutcome>();
    const open = entries.filter((entry) => {
      const isDraining = index.modes.get(entry.head.type)?.value === 'draining';
      if (isDraining) outcomes.set(entry, { kind: 'draining' });
      return !isDraining;
    });
    const ids = await takeKeys(
      open.filter(({ dedupe }) => dedupe !== undefined),
      nowMs,
    );
    let left = open.map((entry): PendingEntry => {
      const id = ids.get(entry) ?? entry.head.id;
      return { entry, id, expected: 0 };
    });
    for (let round = 0; left.length > 0; round += 1) {
      if (round === roundsMax) throw natsUnavailable('the ids kept changing');
      const written = await rows.write(
        left.map(({ entry: { head, fields }, id, expected }) => ({
          base: undefined,
          expected,
          head: { ...head, id },
          fields,
        })),
      );
      const again: PendingEntry[] = [];
      for (const [at, pending] of left.entries()) {
        const { entry, id } = pending;
        if (written[at] === undefined) again.push(pending);
        else if (id === entry.head.id) outcomes.set(entry, { kind: 'enqueued' });
        // This process wrote the job for the process that took the dedupe key and died.
        else outcomes.set(entry, { kind: 'exists', id });
      }
      const found = await rows.read(again.map(({ id }) => id));
      left = again.flatMap((pending, at) => {
        const { row, seq } = found[at] ?? { row: undefined, seq: 0 };
        if (row === undefined && ids.get(pending.entry) === undefined) {
          return [{ ...pending, expected: seq }];
        }
        // The dedupe key is valid until it expires, even if its job was removed.
        outcomes.set(pending.entry, { kind: 'exists', id: pending.id });
        return [];
      });
    }
    const enqueued = entries.filter((entry) => outcomes.get(entry)?.kind === 'enqueued');
    await signals.publish(
      enqueued.flatMap((entry) => entry.signals),
      nowMs,
    );
    return entries.map((entry) => outcomes.get(entry) as EnqueueOutcome);
  };

  /** Returns for each entry the id of its job, or of the earlier job with the same dedupe key. */
  async function takeKeys(
    entries: readonly EnqueueEntry[],
    nowMs: number,
  ): Promise<ReadonlyMap<EnqueueEntry, string>> {
    const ids = new Map<EnqueueEntry, string>();
    let left = [...entries];
    for (let round = 0; left.length > 0; round += 1) {
      if (round === roundsMax) throw natsUnavailable('the dedupe keys kept changing');
      const waiting: EnqueueEntry[] = [];
      const taking = new Map<string, { entry: EnqueueEntry; expected: number }>();
      for (const entry of left) {
        const key = keyOf(entry);
        const known = index.dedupes.get(key);
        if (taking.has(key)) waiting.push(entry);
        else if (known !== undefined && known.value.untilMs > nowMs) ids.set(entry, known.value.id);
        else taking.set(key, { entry, expected: known?.seq ?? 0 });
      }
      const writes = [...taking].map(([key, { entry, expected }]) => ({
        key,
        data: dedupeText(entry.head.id, entry.dedupe?.untilMs ?? 0),
        expected,
      }));
      const written = await rows.writeKeys(writes);
      for (const [at, { key }] of writes.entries()) {
        const entry = taking.get(key)?.entry as EnqueueEntry;
        if (written[at] === true) ids.set(entry, entry.head.id);
        else waiting.push(entry);
      }
      left = waiting;
    }
    return ids;
  }
}

function keyOf({ head, dedupe }: EnqueueEntry): string {
  return taskKeys.dedupe(head.type, dedupe?.key ?? '');
}
