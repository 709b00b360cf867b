// Changes jobs. All changes of a job are one write. If another process was faster, the job is read and changed again.

import type { ChangeOutcome, TaskChange } from '../../../tasks/task-engine.ts';
import type { TaskHead } from '../../../tasks/task-job.ts';
import type { TaskSignal } from '../../../tasks/task-signal.ts';
import { natsUnavailable } from '../connection/connection.ts';
import type { TaskIndex } from './task-index.ts';
import type { StoredTaskRow } from './row.ts';
import type { RowChange, TaskRows } from './rows.ts';
import type { TaskSignals } from './signals.ts';

export type ChangeTasks = (
  changes: readonly TaskChange[],
  nowMs: number,
) => Promise<readonly ChangeOutcome[]>;

/** The result of all changes of a job. */
interface Folded {
  readonly outcomes: readonly ChangeOutcome[];
  readonly head: TaskHead;
  readonly fields: Readonly<Record<string, string | null>>;
  readonly signals: readonly TaskSignal[];
  readonly isStale: boolean;
  readonly isChanged: boolean;
}

/** Limits the rounds of a change; a round fails if another process succeeded. */
const roundsMax = 100;

function foldChanges(before: TaskHead, changes: readonly TaskChange[], nowMs: number): Folded {
  let head = before;
  const fields: Record<string, string | null> = {};
  const signals: TaskSignal[] = [];
  const outcomes = changes.map((change): ChangeOutcome => {
    const { fence, revision } = change.guard;
    const holdsFence = fence === undefined || (head.state === 'running' && head.fence === fence);
    const isUnchanged = revision === undefined || head.revision === revision;
    if (!holdsFence || !isUnchanged) return { kind: 'stale', head };
    const next = { ...head, ...change.head, revision: head.revision + 1, updatedAtMs: nowMs };
    head = next.state === 'running' ? next : { ...next, worker: '' };
    Object.assign(fields, change.fields);
    signals.push(...change.signals);
    return { kind: 'done', revision: head.revision };
  });
  return {
    outcomes,
    head,
    fields,
    signals,
    isStale: outcomes.some(({ kind }) => kind === 'stale'),
    isChanged: head !== before,
  };
}

export function createTaskChanges(parts: {
  readonly rows: TaskRows;
  readonly index: TaskIndex;
  readonly signals: TaskSignals;
}): ChangeTasks {
  const { rows, index, signals } = parts;

  return async (changes, nowMs) => {
    const outcomes = new Map<TaskChange, ChangeOutcome>();
    const published: TaskSignal[] = [];
    let left = Map.groupBy(changes, ({ id }) => id);
    // The index may be outdated, so a change that is stale by the index is checked against the bucket.
    let bases = await indexed([...left.keys()]);

    function settle(own: readonly TaskChange[], results: readonly ChangeOutcome[]): void {
      for (const [at, change] of own.entries()) {
        outcomes.set(change, results[at] ?? { kind: 'stale', head: undefined });
      }
    }

    for (let round = 0; left.size > 0; round += 1) {
      if (round === roundsMax) throw natsUnavailable('jobs kept changing');
      const again = new Map<string, TaskChange[]>();
      const writing: { own: TaskChange[]; folded: Folded; change: RowChange }[] = [];
      for (const [id, own] of left) {
        const base = bases.get(id);
        if (base === undefined) {
          // `indexed` reads missing jobs from the bucket, so the job does not exist.
          settle(own, []);
          continue;
        }
        const folded = foldChanges(base.row.head, own, nowMs);
        if (folded.isStale && !base.isFresh) again.set(id, own);
        else if (!folded.isChanged) settle(own, folded.outcomes);
        else {
          const { head, fields } = folded;
          const { row } = base;
          writing.push({ own, folded, change: { base: row, expected: row.seq, head, fields } });
        }
      }
      const written = await rows.write(writing.map(({ change }) => change));
      for (const [at, { own, folded }] of writing.entries()) {
        if (written[at] === undefined) {
          again.set(folded.head.id, own);
        } else {
          settle(own, folded.outcomes);
          published.push(...folded.signals);
        }
      }
      left = again;
      bases = await fresh([...again.keys()]);
    }
    await signals.publish(published, nowMs);
    return changes.map((change) => outcomes.get(change) ?? { kind: 'stale', head: undefined });
  };

  async function indexed(ids: readonly string[]): Promise<Map<string, Base>> {
    const bases = new Map<string, Base>();
    for (const id of ids) {
      const row = index.find(id)?.row;
      if (row?.body !== undefined) bases.set(id, { row, isFresh: false });
    }
    const missing = ids.filter((id) => !bases.has(id));
    return new Map([...bases, ...(await fresh(missing))]);
  }

  async function fresh(ids: readonly string[]): Promise<Map<string, Base>> {
    const found = await rows.read(ids);
    return new Map(
      found.flatMap(({ row }, at) =>
        row === undefined ? [] : [[ids[at] ?? '', { row, isFresh: true }] as const],
      ),
    );
  }
}

interface Base {
  readonly row: StoredTaskRow;
  /** Whether the row was read from the bucket, not from the index. */
  readonly isFresh: boolean;
}
