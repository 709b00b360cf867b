// Changes jobs, with one script call for each type. Signals in other slots are published before the call resolves.

import type { ChangeOutcome, TaskChange, TaskEngine } from '../../../tasks/task-engine.ts';
import { isTerminal } from '../../../tasks/task-job.ts';
import { forEachGroup } from '../connection/engine.ts';
import type { ScriptValue } from '../connection/script.ts';
import { runRegistered, taskScripts, type RedisTaskContext } from './context.ts';
import { suffixOf, type TypeKeys } from './keyspace.ts';
import { letterOf, packAfterSignals, packBeforeSignals, packChange, unpackHead } from './record.ts';
import {
  signalKey,
  signalText,
  streamNumber,
  streamNumbers,
  type PublishToOtherSlots,
} from './signals.ts';

/** The new revision; or the current record, if the guard failed; or null, if the job does not exist. */
type ChangeCell = string | number | null;

export function createTaskChange(
  context: RedisTaskContext,
  publishToOtherSlots: PublishToOtherSlots,
  onChanged: (type: string) => void,
): TaskEngine['change'] {
  const { redis, keyspace } = context;
  const { bus } = keyspace;
  const { isOneDomain } = bus;

  function valuesOf(
    typeKeys: TypeKeys,
    changes: readonly TaskChange[],
    { nowMs, isWhole }: { readonly nowMs: number; readonly isWhole: boolean },
  ) {
    const values: ScriptValue[] = [];
    let hasQueueSignal = false;
    for (const change of changes) {
      const { guard, head, fields, signals } = change;
      const whole = isWhole ? wholeOf(change, nowMs) : undefined;
      const linesAt = values.length;
      values.push('');
      if (whole !== undefined) values.push(...whole.records);
      const names = Object.keys(fields).filter((name) => name !== 'run');
      const removed = names.filter((name) => fields[name] === null);
      for (const name of names) {
        const text = fields[name];
        if (typeof text === 'string') values.push(name, text);
      }
      values.push(...removed);
      let count = 0;
      for (const signal of signals) {
        const number = streamNumber(typeKeys, signal.subject);
        if (number === undefined || !(isOneDomain || number === streamNumbers.queue)) continue;
        values.push(`${number}${signalKey(number, signal.id)}`, signalText(signal, nowMs));
        if (number === streamNumbers.queue) hasQueueSignal = true;
        count += 1;
      }
      const { fence = '', revision = '' } = guard;
      const sets = names.length - removed.length;
      if (whole !== undefined) {
        values[linesAt] = `=${sets} ${removed.length} ${count} ${whole.words}`;
        continue;
      }
      values[linesAt] =
        `${fence}\n${revision}\n${sets}\n${removed.length}\n${count}\n${packChange(head, fields)}`;
    }
    return { values, hasQueueSignal };
  }

  async function runScript(
    typeKeys: TypeKeys,
    changes: readonly TaskChange[],
    how: { readonly nowMs: number; readonly isWhole: boolean },
  ): Promise<readonly ChangeCell[]> {
    const { nowMs } = how;
    const { base, never, queue, terminal, progress } = typeKeys;
    const keys = [base, never, queue.key, queue.mark];
    if (isOneDomain) keys.push(terminal.key, terminal.mark, progress.key, progress.mark);
    const { values, hasQueueSignal } = valuesOf(typeKeys, changes, how);
    const head = [
      nowMs,
      bus.channel,
      isOneDomain ? bus.registry : '',
      queue.subject,
      terminal.subject,
      progress.subject,
      keyspace.workerChannel,
    ];
    const ids = changes.map(({ id }) => suffixOf(id)).join('\n');
    return runRegistered(context, typeKeys, async (isKnown) => {
      const all = [...head, isKnown || !hasQueueSignal ? 1 : 0, ids, ...values];
      return (await redis.run(taskScripts.change, keys, all)) as readonly ChangeCell[] | null;
    });
  }

  /** Retries changes that need a merge, and publishes signals in other slots. */
  async function settle(
    typeKeys: TypeKeys,
    changes: readonly TaskChange[],
    cells: readonly ChangeCell[],
    nowMs: number,
  ): Promise<readonly ChangeOutcome[]> {
    const { type } = typeKeys;
    const outcomeOf = (id: string, cell: ChangeCell = null): ChangeOutcome => {
      if (typeof cell === 'number') return { kind: 'done', revision: cell };
      const head = cell === null ? undefined : unpackHead(type, suffixOf(id), cell);
      return { kind: 'stale', head };
    };
    const outcomes = changes.map(({ id }, at) => outcomeOf(id, cells[at]));
    // Another process has changed these records, so their changes are merged instead of replacing the record.
    const toMerge = changes.flatMap((change, at) => (needsMerge(change, outcomes[at]) ? [at] : []));
    if (toMerge.length > 0) {
      const some = toMerge.map((at) => changes[at] as TaskChange);
      const parts = await runScript(typeKeys, some, { nowMs, isWhole: false });
      for (const [n, at] of toMerge.entries()) {
        outcomes[at] = outcomeOf((changes[at] as TaskChange).id, parts[n]);
      }
    }
    if (!isOneDomain) {
      const done = changes.filter((_, at) => outcomes[at]?.kind === 'done');
      await publishToOtherSlots(
        typeKeys,
        done.flatMap(({ signals }) => signals),
        nowMs,
      );
    }
    return outcomes;
  }

  return (changes, nowMs) =>
    forEachGroup(
      changes,
      ({ type }) => type,
      async (own, type) => {
        const typeKeys = keyspace.typeKeys(type);
        const cells = await runScript(typeKeys, own, { nowMs, isWhole: true });
        onChanged(type);
        return settle(typeKeys, own, cells, nowMs);
      },
    );
}

/** Whether another process has changed the record although the worker still owns the job. */
function needsMerge({ guard, claimed }: TaskChange, outcome: ChangeOutcome | undefined): boolean {
  if (claimed === undefined || outcome?.kind !== 'stale' || guard.revision !== undefined)
    return false;
  return outcome.head?.state === 'running' && outcome.head.fence === guard.fence;
}

/**
 * Returns the change as a replacement of the whole record. Returns undefined unless the job keeps running, or reaches a
 * terminal state and has no concurrency key to release. `words` has the state, two times and the worker: the time when
 * the job is overdue and '', or the times when it was enqueued and ended. `records` has the expected start of the
 * record, its new lines before the signal fields, and its new lines after them.
 */
function wholeOf(change: TaskChange, nowMs: number) {
  const { claimed, head: changed, guard } = change;
  if (claimed === undefined || guard.fence === undefined) return undefined;
  const { before, after } = claimed;
  const { head } = after;
  const isEnd = isTerminal(head.state);
  if (!isEnd && head.state !== 'running') return undefined;
  if (isEnd && head.concurrencyKey !== '') return undefined;
  const { deadlineMs, cancelAtMs } = head;
  const isMoved = changed.deadlineMs !== undefined || changed.cancelAtMs !== undefined;
  const overdueMs = cancelAtMs !== 0 && cancelAtMs < deadlineMs ? cancelAtMs : deadlineMs;
  const times = isEnd ? `${head.enqueuedAtMs} ${head.endedAtMs}` : `${isMoved ? overdueMs : ''} `;
  return {
    words: `${letterOf(head.state)} ${times} ${before.worker}`,
    records: [
      `R\n${before.revision}\n${guard.fence}\n`,
      packBeforeSignals(head, nowMs),
      packAfterSignals(head, after.fields),
    ],
  };
}
