// New jobs. An id is taken by writing where nothing stands; a dedupe key by an entry that names the job:
// whoever finds the entry without the job writes the job for it, so that a killed process leaves no gap.

import type { EnqueueEntry, EnqueueOutcome } from '../../../tasks/task-engine.ts';
import { busUnavailable } from '../connection/jetstream-wire.ts';
import type { TaskBucket } from './bucket.ts';
import { dedupeText, type TaskIndex } from './task-index.ts';
import { taskKeys } from './keys.ts';
import type { TaskRows } from './rows.ts';
import type { TaskSignals } from './signals.ts';

export type EnqueueTasks = (
  entries: readonly EnqueueEntry[],
  nowMs: number,
) => Promise<readonly EnqueueOutcome[]>;

/** An entry on its way. */
interface Going {
  readonly entry: EnqueueEntry;
  /** The one of the dedupe key, if somebody had it before. */
  readonly id: string;
  /** Of a marker that stands there. */
  readonly expected: number;
}

const roundsMax = 100;

export function createEnqueue(parts: {
  readonly bucket: TaskBucket;
  readonly rows: TaskRows;
  readonly index: TaskIndex;
  readonly signals: TaskSignals;
}): EnqueueTasks {
  const { bucket, rows, index, signals } = parts;

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
    let left = open.map((entry): Going => {
      const id = ids.get(entry) ?? entry.head.id;
      return { entry, id, expected: 0 };
    });
    for (let round = 0; left.length > 0; round += 1) {
      if (round === roundsMax) throw busUnavailable('the ids kept changing');
      const written = await rows.write(
        left.map(({ entry: { head, fields }, id, expected }) => ({
          base: undefined,
          expected,
          head: { ...head, id },
          fields,
        })),
      );
      const again: Going[] = [];
      for (const [at, going] of left.entries()) {
        const { entry, id } = going;
        if (written[at] === undefined) again.push(going);
        else if (id === entry.head.id) outcomes.set(entry, { kind: 'enqueued' });
        // Under the id of whoever took the key and went no further.
        else outcomes.set(entry, { kind: 'exists', id });
      }
      const found = await rows.read(again.map(({ id }) => id));
      left = again.flatMap((going, at) => {
        const { row, seq } = found[at] ?? { row: undefined, seq: 0 };
        if (row === undefined && ids.get(going.entry) === undefined) {
          return [{ ...going, expected: seq }];
        }
        // Also when it was removed since: its key counts until its time is over.
        outcomes.set(going.entry, { kind: 'exists', id: going.id });
        return [];
      });
    }
    const told = entries.filter((entry) => outcomes.get(entry)?.kind === 'enqueued');
    await signals.tell(
      told.flatMap((entry) => entry.signals),
      nowMs,
    );
    return entries.map((entry) => outcomes.get(entry) as EnqueueOutcome);
  };

  /** The id that each entry goes by: its own, or that of whoever has its key. */
  async function takeKeys(
    entries: readonly EnqueueEntry[],
    nowMs: number,
  ): Promise<ReadonlyMap<EnqueueEntry, string>> {
    const ids = new Map<EnqueueEntry, string>();
    let left = [...entries];
    for (let round = 0; left.length > 0; round += 1) {
      if (round === roundsMax) throw busUnavailable('the dedupe keys kept changing');
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
      const seqs = await bucket.write(writes);
      const lost: string[] = [];
      for (const [at, { key, data }] of writes.entries()) {
        const seq = seqs[at];
        const entry = taking.get(key)?.entry as EnqueueEntry;
        if (seq === undefined) {
          lost.push(key);
          waiting.push(entry);
        } else {
          index.apply(key, seq, data);
          ids.set(entry, entry.head.id);
        }
      }
      await look(lost);
      left = waiting;
    }
    return ids;
  }

  /** What was remembered of these keys is old. */
  async function look(keys: readonly string[]): Promise<void> {
    const found = await bucket.get(keys);
    for (const [at, key] of keys.entries()) {
      const message = found[at];
      if (message === undefined) index.forget(key);
      else index.apply(key, message.seq, message.text);
    }
  }
}

function keyOf({ head, dedupe }: EnqueueEntry): string {
  return taskKeys.dedupe(head.type, dedupe?.key ?? '');
}
