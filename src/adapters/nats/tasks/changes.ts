// Changes of jobs: those of one job go as one write, and whoever was overtaken looks again.

import type { ChangeOutcome, TaskChange } from '../../../tasks/task-engine.ts';
import type { TaskHead } from '../../../tasks/task-job.ts';
import type { TaskSignal } from '../../../tasks/task-signal.ts';
import { busUnavailable } from '../connection/jetstream-wire.ts';
import type { TaskIndex } from './task-index.ts';
import type { PlacedRow } from './row.ts';
import type { RowChange, TaskRows } from './rows.ts';
import type { TaskSignals } from './signals.ts';

export type ChangeTasks = (
  changes: readonly TaskChange[],
  nowMs: number,
) => Promise<readonly ChangeOutcome[]>;

/** What becomes of a job, and of each change of it. */
interface Folded {
  readonly outcomes: readonly ChangeOutcome[];
  readonly head: TaskHead;
  readonly fields: Readonly<Record<string, string | null>>;
  readonly signals: readonly TaskSignal[];
  readonly isStale: boolean;
  readonly isChanged: boolean;
}

/** Each time somebody else got on. */
const roundsMax = 100;

function foldChanges(before: TaskHead, changes: readonly TaskChange[], nowMs: number): Folded {
  let head = before;
  const fields: Record<string, string | null> = {};
  const signals: TaskSignal[] = [];
  const outcomes = changes.map((change): ChangeOutcome => {
    const { fence, revision } = change.guard;
    const isHeld = fence === undefined || (head.state === 'running' && head.fence === fence);
    const isAsSeen = revision === undefined || head.revision === revision;
    if (!isHeld || !isAsSeen) return { kind: 'stale', head };
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
    const told: TaskSignal[] = [];
    let left = Map.groupBy(changes, ({ id }) => id);
    // What a process knows may be old: who is refused by it is looked up.
    let bases = await known([...left.keys()]);

    function settle(own: readonly TaskChange[], results: readonly ChangeOutcome[]): void {
      for (const [at, change] of own.entries()) {
        outcomes.set(change, results[at] ?? { kind: 'stale', head: undefined });
      }
    }

    for (let round = 0; left.size > 0; round += 1) {
      if (round === roundsMax) throw busUnavailable('jobs kept changing');
      const again = new Map<string, TaskChange[]>();
      const writing: { own: TaskChange[]; folded: Folded; change: RowChange }[] = [];
      for (const [id, own] of left) {
        const base = bases.get(id);
        if (base === undefined) {
          // Not known here: `known` looks it up, so from the second look on it is not there.
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
          told.push(...folded.signals);
        }
      }
      left = again;
      bases = await fresh([...again.keys()]);
    }
    await signals.tell(told, nowMs);
    return changes.map((change) => outcomes.get(change) ?? { kind: 'stale', head: undefined });
  };

  async function known(ids: readonly string[]): Promise<Map<string, Base>> {
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
  readonly row: PlacedRow;
  /** Just read, not remembered. */
  readonly isFresh: boolean;
}
