// Claims jobs: chooses them from the index and wins them by compare-and-set. If a later part of the call fails, the next
// claim of the worker returns the jobs that were already claimed.

import type { ClaimRequest } from '../../../tasks/task-engine.ts';
import { claimedHead } from '../../../tasks/rules/select-claims.ts';
import type { StoredTask, TaskHead } from '../../../tasks/task-job.ts';
import { chooseClaims, type Choice } from './choice.ts';
import type { TaskIndex } from './task-index.ts';
import { taskKeys } from './keys.ts';
import type { StoredTaskRow } from './row.ts';
import type { TaskRows } from './rows.ts';
import type { TaskSlots } from './slots.ts';

interface Claims {
  readonly claimed: readonly StoredTask[];
  readonly freeAtMs: number;
}

/** Rejects if `alongside` rejects; the jobs claimed until then are returned by the next claim. */
export type ClaimTasks = (request: ClaimRequest, alongside?: Promise<unknown>) => Promise<Claims>;

type Pick = Choice['picks'][number];

interface Won {
  readonly row: StoredTaskRow;
  readonly pick: Pick;
}

/** A worker that claimed within this time is a rival. */
const rivalMs = 5_000;
/** Limits the rounds of one claim; a round fails if other processes were faster. */
const roundsMax = 10;
/** The maximum number of claims whose replies were lost. */
const uncertainMax = 10_000;

export function createClaims(parts: {
  readonly rows: TaskRows;
  readonly index: TaskIndex;
  readonly slots: TaskSlots;
  readonly sync: () => Promise<void>;
}): ClaimTasks {
  const { rows, index, slots } = parts;
  const taking = new Set<string>();
  /** Jobs that another process won → their sequence then; kept until the index has a newer sequence. */
  const lost = new Map<string, number>();
  /** Claims that no call has returned yet; the next claim of the worker returns those that succeeded. */
  const uncertain = new Map<string, { worker: string; fence: number; pick: Pick }>();
  const ownWorkers = new Set<string>();

  function isTaken({ id }: TaskHead): boolean {
    if (taking.has(id)) return true;
    const seq = lost.get(id);
    if (seq === undefined) return false;
    if (index.find(id)?.seq === seq) return true;
    lost.delete(id);
    return false;
  }

  async function beat({ worker, aliveUntilMs }: ClaimRequest): Promise<void> {
    ownWorkers.add(worker);
    if (index.beatOf(worker) >= aliveUntilMs) return;
    await rows.writeKeys([{ key: taskKeys.beat(worker), data: String(aliveUntilMs) }]);
  }

  /** Runs before the jobs are claimed, so a job that another process wins still counts towards the rate. */
  async function takeRates({ rates }: Choice): Promise<boolean> {
    const writes = [...rates].map(([key, ms]) => ({
      key,
      data: String(ms),
      expected: index.rates.get(key)?.seq ?? 0,
    }));
    return (await rows.writeKeys(writes)).every((isWritten) => isWritten);
  }

  async function take(
    picks: readonly Pick[],
    request: ClaimRequest,
  ): Promise<readonly (StoredTaskRow | undefined)[]> {
    const known = picks.map(({ head }) => index.find(head.id)?.row as StoredTaskRow);
    const bases = await rows.withBodies(known);
    const changes = picks.flatMap((pick, at) => {
      const { head, rule } = pick;
      const base = bases[at];
      if (base === undefined) return [];
      const { fence, revision } = head;
      const next = claimedHead({ ...base.head, fence, revision }, request, rule);
      return [{ pick, base, expected: base.seq, head: next, fields: {} }];
    });
    for (const { head, pick } of changes) noteUncertain(head, pick);
    const written = await rows.write(changes);
    const won = new Map<string, StoredTaskRow>();
    for (const [at, { base, head }] of changes.entries()) {
      const row = written[at];
      if (row === undefined) {
        uncertain.delete(head.id);
        lost.set(head.id, base.seq);
      } else {
        won.set(head.id, row);
      }
    }
    return picks.map(({ head }) => won.get(head.id));
  }

  function noteUncertain({ id, worker, fence }: TaskHead, pick: Pick): void {
    uncertain.set(id, { worker, fence, pick });
    if (uncertain.size > uncertainMax) uncertain.delete(uncertain.keys().next().value ?? '');
  }

  /** Jobs that this worker claimed without getting the reply. */
  function recovered({ worker, rules }: ClaimRequest): readonly Won[] {
    const found: Won[] = [];
    for (const [id, claim] of uncertain) {
      const row = index.find(id)?.row;
      if (claim.worker !== worker || taking.has(id)) continue;
      if (!rules.some(({ type }) => id.startsWith(`${type}.`))) continue;
      const isOwn = row?.head.state === 'running' && row.head.fence === claim.fence;
      if (isOwn && row.head.worker === worker) found.push({ row, pick: claim.pick });
      else uncertain.delete(id);
    }
    return found;
  }

  /** Keeps the jobs that get a slot of their concurrency key, and reverts the claims of the others. */
  async function takeSlots(
    won: readonly Won[],
    fullKeys: Set<string>,
  ): Promise<readonly StoredTaskRow[]> {
    const withSlots: StoredTaskRow[] = [];
    const reverted: Won[] = [];
    const needsSlot = ({ pick: { head, rule } }: Won): boolean =>
      rule.keyLimit !== undefined && head.concurrencyKey !== '';
    const groups = Map.groupBy(won.filter(needsSlot), ({ row: { head } }) => keyOf(head));
    await Promise.all(
      [...groups.values()].map(async (ofKey) => {
        for (const each of ofKey) {
          const { keyLimit = 0 } = each.pick.rule;
          if (await slots.take(each.row, keyLimit)) continue;
          reverted.push(each);
          fullKeys.add(keyOf(each.row.head));
        }
      }),
    );
    for (const each of won) if (!reverted.includes(each)) withSlots.push(each.row);
    if (reverted.length === 0) return withSlots;
    await rows.write(
      reverted.map(({ row, pick: { head } }) => ({
        base: row,
        expected: row.seq,
        // A recovered job may have changed since its claim, so only the fields of the claim are reverted.
        head: {
          ...row.head,
          state: head.state,
          worker: head.worker,
          claimedAtMs: head.claimedAtMs,
          updatedAtMs: head.updatedAtMs,
          deadlineMs: head.deadlineMs,
          revision: row.head.revision + 1,
        },
        fields: {},
      })),
    );
    for (const { row } of reverted) uncertain.delete(row.head.id);
    await parts.sync();
    return withSlots;
  }

  return async (request, alongside) => {
    const others = Promise.all([beat(request), alongside]);
    // `others` is awaited below; this handler prevents an unhandled rejection until then.
    others.catch(() => undefined);
    if (uncertain.size > 0) await parts.sync();
    const rules = request.rules.filter(({ type }) => index.modes.get(type)?.value !== 'paused');
    const fullKeys = new Set<string>();
    const claimed: StoredTaskRow[] = [];
    /** Jobs of this call, which a concurrent call must neither choose nor recover. */
    const own = new Set<string>();
    const hold = ({ id }: TaskHead): void => {
      taking.add(id);
      own.add(id);
    };
    const release = ({ id }: TaskHead): void => {
      taking.delete(id);
      own.delete(id);
    };
    let freeAtMs = Infinity;
    try {
      const before = recovered(request);
      for (const { row } of before) hold(row.head);
      claimed.push(...(await takeSlots(before, fullKeys)));
      for (let round = 0; round < roundsMax && claimed.length < request.limit; round += 1) {
        const left = rules.map((rule) => {
          const taken = claimed.filter(({ head }) => head.type === rule.type).length;
          return { ...rule, limit: Math.max(0, rule.limit - taken) };
        });
        const rivals = index.rivals(ownWorkers, performance.now() - rivalMs);
        const choice = chooseClaims(
          { ...request, rules: left, limit: request.limit - claimed.length },
          { index, isTaken, fullKeys, rivals },
        );
        ({ freeAtMs } = choice);
        const { picks } = choice;
        if (picks.length === 0) break;
        for (const { head } of picks) hold(head);
        if (choice.rates.size > 0 && !(await takeRates(choice))) {
          for (const { head } of picks) release(head);
          continue;
        }
        const written = await take(picks, request);
        const won = picks.flatMap((pick, at) => {
          const row = written[at];
          return row === undefined ? [] : [{ row, pick }];
        });
        const withSlots = await takeSlots(won, fullKeys);
        claimed.push(...withSlots);
        const claimedIds = new Set(withSlots.map(({ head }) => head.id));
        for (const { head } of picks) if (!claimedIds.has(head.id)) release(head);
        if (withSlots.length === picks.length) break;
      }
      const tasks = await rows.whole(claimed);
      await others;
      for (const { head } of claimed) uncertain.delete(head.id);
      return { claimed: tasks.filter((task) => task !== undefined), freeAtMs };
    } finally {
      for (const id of own) taking.delete(id);
      await others.catch(() => undefined);
    }
  };
}

const keyOf = ({ type, concurrencyKey }: TaskHead): string => `${type}|${concurrencyKey}`;
