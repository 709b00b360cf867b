// Changes jobs and claims the next ones, with one script call for each type. Signals in other slots are published
// before the call resolves.

import type {
  ChangeOutcome,
  ClaimRequest,
  ClaimRule,
  TaskChange,
} from '../../../tasks/task-engine.ts';
import type { StoredTask } from '../../../tasks/task-job.ts';
import type { ScriptValue } from '../connection/script.ts';
import { runRegistered, taskScripts, type RedisTaskContext } from './context.ts';
import { suffixOf, type TypeKeys } from './keyspace.ts';
import { packChange, unpackHead, unpackTask } from './record.ts';
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

  function valuesOf(typeKeys: TypeKeys, changes: readonly TaskChange[], nowMs: number) {
    const values: ScriptValue[] = [];
    let hasQueueSignal = false;
    for (const { guard, head, fields, signals } of changes) {
      const { fence = '', revision = '' } = guard;
      const texts = Object.entries(fields).filter(([name]) => name !== 'run');
      const set = texts.flatMap(([name, text]) => (text === null ? [] : [name, text]));
      const removed = texts.flatMap(([name, text]) => (text === null ? [name] : []));
      const published: string[] = [];
      for (const signal of signals) {
        const number = streamNumber(typeKeys, signal.subject);
        if (number === undefined || !(isOneDomain || number === streamNumbers.queue)) continue;
        published.push(`${number}${signalKey(number, signal.id)}`, signalText(signal, nowMs));
        if (number === streamNumbers.queue) hasQueueSignal = true;
      }
      const counts = `${set.length / 2}\n${removed.length}\n${published.length / 2}`;
      values.push(`${fence}\n${revision}\n${counts}\n${packChange(head, fields)}`);
      values.push(...set, ...removed, ...published);
    }
    return { values, hasQueueSignal };
  }

  async function runScript(
    typeKeys: TypeKeys,
    changes: readonly TaskChange[],
    claim: TypeClaim | undefined,
    nowMs: number,
  ): Promise<ScriptReply> {
    const { base, never, queue, terminal, progress } = typeKeys;
    const keys = [base, never, queue.key, queue.mark];
    if (isOneDomain) keys.push(terminal.key, terminal.mark, progress.key, progress.mark);
    const { values, hasQueueSignal } = valuesOf(typeKeys, changes, nowMs);
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

  /** Reads the outcomes, and publishes signals in other slots. */
  async function settle(
    typeKeys: TypeKeys,
    changes: readonly TaskChange[],
    cells: ScriptReply[0],
    nowMs: number,
  ): Promise<readonly ChangeOutcome[]> {
    const { type } = typeKeys;
    const outcomes = changes.map(({ id }, at): ChangeOutcome => {
      const cell = cells[at] ?? null;
      if (typeof cell === 'number') return { kind: 'done', revision: cell };
      const head = cell === null ? undefined : unpackHead(type, suffixOf(id), cell);
      return { kind: 'stale', head };
    });
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
    const [cells, jobs, more, freeAt] = await runScript(typeKeys, changes, claim, nowMs);
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
