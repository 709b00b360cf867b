// Changes jobs and claims the next ones, with one script call for each type. Signals in other slots are published
// before the call resolves.

import type {
  ChangeOutcome,
  ClaimRequest,
  ClaimRule,
  TaskChange,
} from '../../../tasks/task-engine.ts';
import { isTerminal, type StoredTask } from '../../../tasks/task-job.ts';
import type { ScriptValue } from '../connection/script.ts';
import { runRegistered, taskScripts, type RedisTaskContext } from './context.ts';
import { suffixOf, type TypeKeys } from './keyspace.ts';
import {
  letterOf,
  packAfterSignals,
  packBeforeSignals,
  packChange,
  unpackHead,
  unpackTask,
} from './record.ts';
import {
  signalKey,
  signalText,
  streamNumber,
  streamNumbers,
  type PublishToOtherSlots,
} from './signals.ts';

export interface TypeClaim {
  readonly worker: string;
  readonly aliveUntilMs: number;
  readonly rule: ClaimRule;
  readonly limit: number;
}

export interface TypeResult {
  readonly outcomes: readonly ChangeOutcome[];
  readonly claimed: readonly StoredTask[];
  /** The claim reached its limit, so more jobs may be available now. */
  readonly isMore: boolean;
  /** When more jobs may be available; Infinity if unknown. */
  readonly freeAtMs: number;
}

type ScriptReply = readonly [
  outcomes: readonly (string | number | null)[],
  claimed: readonly (readonly string[])[],
  more: number,
  freeAtMs: string,
];

export type ChangeAndClaimOfType = (
  type: string,
  changes: readonly TaskChange[],
  claim: TypeClaim | undefined,
  nowMs: number,
) => Promise<TypeResult>;

export function createChangeAndClaim(
  context: RedisTaskContext,
  publishToOtherSlots: PublishToOtherSlots,
): ChangeAndClaimOfType {
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
    claim: TypeClaim | undefined,
    how: { readonly nowMs: number; readonly isWhole: boolean },
  ): Promise<ScriptReply> {
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
      isOneDomain ? keyspace.workers : '',
      claim?.worker ?? '',
      claim?.aliveUntilMs ?? '',
      claim === undefined ? '' : ruleText(claim, nowMs),
    ];
    const ids = changes.map(({ id }) => suffixOf(id)).join('\n');
    return runRegistered(context, typeKeys, async (isKnown) => {
      const all = [...head, isKnown || !hasQueueSignal ? 1 : 0, ids, ...values];
      return (await redis.run(taskScripts.changeAndClaim, keys, all)) as ScriptReply | null;
    });
  }

  /** Retries changes that need a merge, and publishes signals in other slots. */
  async function settle(
    typeKeys: TypeKeys,
    changes: readonly TaskChange[],
    cells: ScriptReply[0],
    nowMs: number,
  ): Promise<readonly ChangeOutcome[]> {
    const { type } = typeKeys;
    const outcomeOf = (id: string, cell: string | number | null = null): ChangeOutcome => {
      if (typeof cell === 'number') return { kind: 'done', revision: cell };
      const head = cell === null ? undefined : unpackHead(type, suffixOf(id), cell);
      return { kind: 'stale', head };
    };
    const outcomes = changes.map(({ id }, at) => outcomeOf(id, cells[at]));
    // Another process has changed these records, so their changes are merged instead of replacing the record.
    const toMerge = changes.flatMap((change, at) => (needsMerge(change, outcomes[at]) ? [at] : []));
    if (toMerge.length > 0) {
      const some = toMerge.map((at) => changes[at] as TaskChange);
      const [parts] = await runScript(typeKeys, some, undefined, { nowMs, isWhole: false });
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

  return async (type, changes, claim, nowMs) => {
    const typeKeys = keyspace.typeKeys(type);
    const how = { nowMs, isWhole: true };
    const [cells, jobs, more, freeAt] = await runScript(typeKeys, changes, claim, how);
    const claimed = jobs.map((job) => unpackTask(type, job));
    try {
      return {
        outcomes: changes.length === 0 ? [] : await settle(typeKeys, changes, cells, nowMs),
        claimed,
        isMore: more === 1,
        freeAtMs: Number(freeAt) < 0 ? Infinity : Number(freeAt),
      };
    } catch (error) {
      context.undelivered.add(claimed);
      throw error;
    }
  };
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

/** Limit, deadline and key limit; then count, span and kind of the rate. */
function ruleText({ rule, limit }: TypeClaim, nowMs: number): string {
  const { deadlineAfterMs, keyLimit, rate } = rule;
  const { count, perMs, isPerTenant = false } = rate ?? {};
  const words = [limit, nowMs + deadlineAfterMs, keyLimit, count, perMs, isPerTenant ? 1 : 0];
  return words.map((word) => word ?? '').join(' ');
}

/** The claim of one type, within a limit over all types. */
export function claimOf(request: ClaimRequest, rule: ClaimRule, limit: number): TypeClaim {
  const { worker, aliveUntilMs } = request;
  return { worker, aliveUntilMs, rule, limit: Math.min(limit, rule.limit) };
}
