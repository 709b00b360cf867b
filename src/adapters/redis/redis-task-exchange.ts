// Changes jobs and claims the next ones: one script for each type. What the streams of other slots are
// told follows before the call resolves.

import type {
  ChangeOutcome,
  ClaimRequest,
  ClaimRule,
  TaskChange,
} from '../../tasks/task-engine.ts';
import { isTerminal, type StoredTask } from '../../tasks/task-job.ts';
import type { ScriptValue } from './redis-bus-calls.ts';
import { runRegistered, type RedisTaskContext } from './redis-task-context.ts';
import {
  letterOf,
  packChange,
  packFirst,
  packRest,
  unpackHead,
  unpackTask,
} from './redis-task-head.ts';
import { taskScripts } from './redis-task-scripts.ts';
import { placeInJob, signalText, streamNumber, streamNumbers } from './redis-task-signals.ts';
import { suffixOf, type TypePlace } from './redis-task-space.ts';
import type { TellOthers } from './redis-task-tell.ts';

export interface TypeClaim {
  readonly worker: string;
  readonly aliveUntilMs: number;
  readonly rule: ClaimRule;
  readonly limit: number;
}

export interface TypeExchanged {
  readonly outcomes: readonly ChangeOutcome[];
  readonly claimed: readonly StoredTask[];
  /** As many as it may have were claimed: there may be more at once. */
  readonly isMore: boolean;
  /** When there may be more; Infinity: nobody knows. */
  readonly freeAtMs: number;
}

type Answer = readonly [
  outcomes: readonly (string | number | null)[],
  claimed: readonly (readonly string[])[],
  more: number,
  freeAtMs: string,
];

export type ExchangeType = (
  type: string,
  changes: readonly TaskChange[],
  claim: TypeClaim | undefined,
  nowMs: number,
) => Promise<TypeExchanged>;

export function createExchangeType(
  { calls, space, ...rest }: RedisTaskContext,
  tellOthers: TellOthers,
): ExchangeType {
  const context = { calls, space, ...rest };
  const { bus } = space;
  const { isOneDomain } = bus;

  function valuesOf(
    place: TypePlace,
    changes: readonly TaskChange[],
    { nowMs, isWhole }: { readonly nowMs: number; readonly isWhole: boolean },
  ) {
    const values: ScriptValue[] = [];
    let isQueueTold = false;
    for (const change of changes) {
      const { guard, head, fields, signals } = change;
      const whole = isWhole ? wholeOf(change, nowMs) : undefined;
      const linesAt = values.length;
      values.push('');
      if (whole !== undefined) values.push(...whole.records);
      const names = Object.keys(fields).filter((name) => name !== 'run');
      const gone = names.filter((name) => fields[name] === null);
      for (const name of names) {
        const text = fields[name];
        if (typeof text === 'string') values.push(name, text);
      }
      values.push(...gone);
      let told = 0;
      for (const signal of signals) {
        const number = streamNumber(place, signal.subject);
        if (number === undefined || !(isOneDomain || number === streamNumbers.queue)) continue;
        values.push(`${number}${placeInJob(number, signal.id)}`, signalText(signal, nowMs));
        if (number === streamNumbers.queue) isQueueTold = true;
        told += 1;
      }
      const { fence = '', revision = '' } = guard;
      const sets = names.length - gone.length;
      if (whole !== undefined) {
        values[linesAt] = `=${sets} ${gone.length} ${told} ${whole.words}`;
        continue;
      }
      values[linesAt] =
        `${fence}\n${revision}\n${sets}\n${gone.length}\n${told}\n${packChange(head, fields)}`;
    }
    return { values, isQueueTold };
  }

  const workers = isOneDomain ? space.workers : '';

  async function claimOnly(place: TypePlace, claim: TypeClaim, nowMs: number): Promise<Answer> {
    const { base, never, queue } = place;
    const { worker, aliveUntilMs } = claim;
    const rule = ruleText(claim, nowMs);
    const values = [nowMs, bus.channel, queue.subject, workers, worker, aliveUntilMs, rule];
    return (await calls.runText(taskScripts.claim, [base, never], values)) as Answer;
  }

  async function exchangeAll(
    place: TypePlace,
    changes: readonly TaskChange[],
    claim: TypeClaim | undefined,
    how: { readonly nowMs: number; readonly isWhole: boolean },
  ): Promise<Answer> {
    const { nowMs } = how;
    const { base, never, queue, terminal, progress } = place;
    const keys = [base, never, queue.key, queue.mark];
    if (isOneDomain) keys.push(terminal.key, terminal.mark, progress.key, progress.mark);
    const { values, isQueueTold } = valuesOf(place, changes, how);
    const head = [
      nowMs,
      bus.channel,
      isOneDomain ? bus.registry : '',
      queue.subject,
      terminal.subject,
      progress.subject,
      workers,
      claim?.worker ?? '',
      claim?.aliveUntilMs ?? '',
      claim === undefined ? '' : ruleText(claim, nowMs),
    ];
    const ids = changes.map(({ id }) => suffixOf(id)).join('\n');
    return runRegistered(context, place, async (isKnown) => {
      const all = [...head, isKnown || !isQueueTold ? 1 : 0, ids, ...values];
      return (await calls.runText(taskScripts.exchange, keys, all)) as Answer | null;
    });
  }

  /** What is left to say of the changes, once the script has answered. */
  async function settle(
    place: TypePlace,
    changes: readonly TaskChange[],
    cells: Answer[0],
    nowMs: number,
  ): Promise<readonly ChangeOutcome[]> {
    const { type } = place;
    const outcomeOf = (id: string, cell: string | number | null = null): ChangeOutcome => {
      if (typeof cell === 'number') return { kind: 'done', revision: cell };
      const there = cell === null ? undefined : unpackHead(type, suffixOf(id), cell);
      return { kind: 'stale', head: there };
    };
    const outcomes = changes.map(({ id }, at) => outcomeOf(id, cells[at]));
    // Somebody else has changed them since: what is to be changed, not what they were to be.
    const again = changes.flatMap((change, at) => (isOther(change, outcomes[at]) ? [at] : []));
    if (again.length > 0) {
      const some = again.map((at) => changes[at] as TaskChange);
      const [parts] = await exchangeAll(place, some, undefined, { nowMs, isWhole: false });
      for (const [n, at] of again.entries()) {
        outcomes[at] = outcomeOf((changes[at] as TaskChange).id, parts[n]);
      }
    }
    if (!isOneDomain) {
      const done = changes.filter((_, at) => outcomes[at]?.kind === 'done');
      await tellOthers(
        place,
        done.flatMap(({ signals }) => signals),
        nowMs,
      );
    }
    return outcomes;
  }

  return async (type, changes, claim, nowMs) => {
    const place = space.place(type);
    const [cells, jobs, more, freeAt] = await (changes.length === 0 && claim !== undefined
      ? claimOnly(place, claim, nowMs)
      : exchangeAll(place, changes, claim, { nowMs, isWhole: true }));
    const claimed = jobs.map((job) => unpackTask(type, job));
    try {
      return {
        outcomes: changes.length === 0 ? [] : await settle(place, changes, cells, nowMs),
        claimed,
        isMore: more === 1,
        freeAtMs: Number(freeAt) < 0 ? Infinity : Number(freeAt),
      };
    } catch (error) {
      context.kept.keep(claimed);
      throw error;
    }
  };
}

/** It is still its holder's; only the record is not what the holder knows. */
function isOther({ guard, held }: TaskChange, outcome: ChangeOutcome | undefined): boolean {
  if (held === undefined || outcome?.kind !== 'stale' || guard.revision !== undefined) return false;
  return outcome.head?.state === 'running' && outcome.head.fence === guard.fence;
}

/**
 * A change that its holder knows the whole outcome of, as long as it runs on or ends and frees no key: the
 * record as it must be, and the two parts of what it becomes. `words`: state, when it is overdue (or when it was
 * enqueued and has ended), worker.
 */
function wholeOf(change: TaskChange, nowMs: number) {
  const { held, head: changed, guard } = change;
  if (held === undefined || guard.fence === undefined) return undefined;
  const { before, after } = held;
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
      packFirst(head, nowMs),
      packRest(head, after.fields),
    ],
  };
}

function ruleText({ rule, limit }: TypeClaim, nowMs: number): string {
  return `${limit} ${nowMs + rule.deadlineAfterMs} ${limitWords(rule)}`;
}

/** The rest of a rule: key limit, and count, span and kind of the rate. */
export function limitWords({ keyLimit, rate }: ClaimRule): string {
  const { count, perMs, isPerTenant = false } = rate ?? {};
  return `${keyLimit ?? ''} ${count ?? ''} ${perMs ?? ''} ${isPerTenant ? 1 : 0}`;
}

/** What one type is asked for, when so many are to be had of all. */
export function claimOf(request: ClaimRequest, rule: ClaimRule, limit: number): TypeClaim {
  const { worker, aliveUntilMs } = request;
  return { worker, aliveUntilMs, rule, limit: Math.min(limit, rule.limit) };
}
