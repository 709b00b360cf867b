// Claims jobs of several types. A waiting claim does not query all types each time: wake-ups name the types with new
// jobs, each visit returns when more may be available, and a periodic poll finds the rest.

import { aborted } from '../../../foundation/clock.ts';
import { createWaiters, waitWithPoll } from '../../../foundation/async/waiters.ts';
import type {
  ClaimRequest,
  ClaimRule,
  TaskChange,
  TaskEngine,
} from '../../../tasks/task-engine.ts';
import type { StoredTask } from '../../../tasks/task-job.ts';
import type { RedisTaskContext } from './context.ts';
import { claimOf, type ChangeAndClaimOfType, type TypeResult } from './change-and-claim.ts';

/** Interval between polls of a type without wake-ups. */
const pollEveryMs = 5_000;
/** With at most this many types, one call claims from all of them. */
const fewTypes = 4;

/** The state of a type that this process caches; Redis holds the authoritative state. */
interface TypeView {
  isReady: boolean;
  freeAtMs: number;
  pollAtMs: number;
  /** Limits of the last visit. */
  limits: Pick<ClaimRule, 'rate' | 'keyLimit'> | undefined;
}

export interface TaskClaims {
  readonly changeAndClaim: TaskEngine['changeAndClaim'];
  readonly claim: TaskEngine['claim'];
  /** Called when the type may have new jobs. */
  onNewWork(type: string): void;
  wakeAll(): void;
}

export function createTaskClaims(
  context: RedisTaskContext,
  changeAndClaimOfType: ChangeAndClaimOfType,
  failIfClosed: () => void,
): TaskClaims {
  const { clock, wakes, keyspace, undelivered } = context;
  const views = new Map<string, TypeView>();
  const waiters = createWaiters();
  let wakeUps = 0;
  let turn = 0;
  const subjects = new Map<string, string>();

  function viewOf(type: string): TypeView {
    let view = views.get(type);
    if (view === undefined) {
      view = { isReady: true, freeAtMs: Infinity, pollAtMs: 0, limits: undefined };
      views.set(type, view);
      subjects.set(keyspace.typeKeys(type).queue.subject, type);
    }
    return view;
  }

  function wakeAll(): void {
    wakeUps += 1;
    waiters.wakeAll();
  }

  function onNewWork(type: string): void {
    const view = views.get(type);
    if (view === undefined) return;
    view.isReady = true;
    wakeAll();
  }

  wakes.on((wake) => {
    if (wake.kind === 'freed') return;
    if (wake.kind === 'anything') {
      for (const view of views.values()) view.isReady = true;
      wakeAll();
      return;
    }
    for (const subject of wake.subjects) {
      const type = subjects.get(subject);
      if (type !== undefined) onNewWork(type);
    }
  });

  async function visit(
    rule: ClaimRule,
    ask: { readonly request: ClaimRequest; readonly limit: number },
    changes: readonly TaskChange[],
  ): Promise<TypeResult> {
    const view = viewOf(rule.type);
    const { nowMs } = ask.request;
    // Reset before the visit: a wake-up during the visit sets it again.
    view.isReady = false;
    const limit = Math.min(ask.limit, rule.limit);
    try {
      const claim = limit > 0 ? claimOf(ask.request, rule, limit) : undefined;
      const found = await changeAndClaimOfType(rule.type, changes, claim, nowMs);
      if (found.isMore || limit <= 0) view.isReady = true;
      if (limit > 0) {
        view.freeAtMs = found.freeAtMs;
        view.pollAtMs = nowMs + pollEveryMs;
        view.limits = rule;
      }
      return found;
    } catch (error) {
      view.isReady = true;
      throw error;
    }
  }

  /** Gives each type a fair share first; further rounds give the rest to the types that have more jobs. */
  async function visitAll(
    request: ClaimRequest,
    rules: readonly ClaimRule[],
    changesOf: (type: string) => readonly TaskChange[] = () => [],
  ): Promise<Map<string, TypeResult[]>> {
    const found = new Map<string, TypeResult[]>(rules.map(({ type }) => [type, []]));
    let room = request.limit;
    turn += 1;
    let remaining = rules.map((_, at) => rules[(at + turn) % rules.length] as ClaimRule);
    for (let round = 0; remaining.length > 0 && (round === 0 || room > 0); round += 1) {
      const shares = sharesOf(remaining, room, (type) => takenOf(found.get(type)));
      const visited = remaining.map((rule, at) => ({
        rule,
        limit: shares[at] ?? 0,
        changes: round === 0 ? changesOf(rule.type) : [],
      }));
      const parts = await Promise.allSettled(
        visited.map(async ({ rule, limit, changes }) =>
          // A type without a share in this round gets its turn in the next one.
          limit > 0 || changes.length > 0 ? visit(rule, { request, limit }, changes) : undefined,
        ),
      );
      for (const [at, { type }] of remaining.entries()) {
        const part = parts[at];
        if (part?.status !== 'fulfilled' || part.value === undefined) continue;
        found.get(type)?.push(part.value);
        room -= part.value.claimed.length;
      }
      const failed = parts.find((part) => part.status === 'rejected');
      if (failed !== undefined) {
        undelivered.add(claimedOf(found));
        throw failed.reason;
      }
      remaining = remaining.filter((rule, at) => {
        const part = parts[at];
        const isMore = part?.status === 'fulfilled' && part.value?.isMore === true;
        return shares[at] === 0 || (isMore && takenOf(found.get(rule.type)) < rule.limit);
      });
    }
    return found;
  }

  const isDue = ({ type, rate, keyLimit }: ClaimRule, nowMs: number): boolean => {
    const { isReady, freeAtMs, pollAtMs, limits } = viewOf(type);
    // If the clock was set back, poll now instead of postponing the poll.
    const isPollDue = pollAtMs <= nowMs || pollAtMs > nowMs + 2 * pollEveryMs;
    const hasOtherLimits = limits?.rate !== rate || limits?.keyLimit !== keyLimit;
    return isReady || freeAtMs <= nowMs || isPollDue || hasOtherLimits;
  };

  /** Waits until jobs may be available. */
  async function waitForWork(
    { rules }: ClaimRequest,
    wait: { readonly seen: number; readonly untilMs: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const { seen, untilMs, signal } = wait;
    if (wakeUps !== seen && rules.some(({ type }) => viewOf(type).isReady)) return;
    const dueAtMs = Math.min(
      ...rules.map(({ type }) => Math.min(viewOf(type).freeAtMs, viewOf(type).pollAtMs)),
    );
    const pollMs = Math.max(0, Math.min(dueAtMs, untilMs) - clock.now());
    await waitWithPoll(waiters, { clock, pollMs, signal });
  }

  return {
    onNewWork,
    wakeAll,
    async changeAndClaim(changes, claim, nowMs) {
      failIfClosed();
      const byType = Map.groupBy(changes, ({ type }) => type);
      const rules = claim?.rules ?? [];
      const isFew = rules.length <= fewTypes;
      const visited = rules.filter((rule) => isFew || byType.has(rule.type) || isDue(rule, nowMs));
      const visitedTypes = new Set(visited.map(({ type }) => type));
      const request = claim === undefined ? undefined : { ...claim, nowMs };
      const [found, ...others] = await Promise.all([
        request === undefined || visited.length === 0
          ? new Map<string, TypeResult[]>()
          : visitAll(request, visited, (type) => byType.get(type) ?? []),
        ...[...byType]
          .filter(([type]) => !visitedTypes.has(type))
          .map(async ([type, some]) => {
            return [type, await changeAndClaimOfType(type, some, undefined, nowMs)] as const;
          }),
      ]);
      // The claims of visited types ran after their changes; other types may have new jobs now.
      for (const type of byType.keys()) if (!visitedTypes.has(type)) onNewWork(type);
      const outcomesOf = new Map(
        [...byType.keys()].map((type) => {
          const result = found.get(type)?.[0] ?? others.find(([name]) => name === type)?.[1];
          return [type, (result?.outcomes ?? []).values()] as const;
        }),
      );
      return {
        outcomes: changes.map(
          ({ type }) => outcomesOf.get(type)?.next().value ?? { kind: 'stale', head: undefined },
        ),
        claimed: claimedOf(found),
      };
    },

    async claim(request, { waitMs, signal, aroundClaim = (search) => search() }) {
      failIfClosed();
      const leaseMs = request.aliveUntilMs - request.nowMs;
      const untilMs = clock.now() + waitMs;
      if (signal.aborted) throw aborted(signal);
      if (waitMs > 0) await wakes.listen();
      // Without a wait or a subscription, the first round must visit all types.
      let isAll = waitMs === 0 || !wakes.isListening;
      for (let nowMs = request.nowMs; ; nowMs = clock.now()) {
        failIfClosed();
        if (signal.aborted) throw aborted(signal);
        const seen = wakeUps;
        const now = { ...request, nowMs, aliveUntilMs: nowMs + leaseMs };
        const before = undelivered.takeFor(now);
        if (before.length > 0) return before;
        const visited = request.rules.filter((rule) => isAll || isDue(rule, nowMs));
        isAll = false;
        if (visited.length > 0) {
          const claimed = claimedOf(await aroundClaim(() => visitAll(now, visited)));
          if (claimed.length > 0) return claimed;
        }
        if (clock.now() >= untilMs) return [];
        await waitForWork(now, { seen, untilMs, signal });
      }
    },
  };
}

function claimedOf(found: ReadonlyMap<string, readonly TypeResult[]>): readonly StoredTask[] {
  return [...found.values()].flatMap((parts) => parts.flatMap(({ claimed }) => claimed));
}

function takenOf(parts: readonly TypeResult[] = []): number {
  return parts.reduce((sum, { claimed }) => sum + claimed.length, 0);
}

/** The share of each type; all shares together are at most `room`. */
function sharesOf(
  rules: readonly ClaimRule[],
  room: number,
  taken: (type: string) => number,
): readonly number[] {
  let left = room;
  return rules.map(({ type, limit }, at) => {
    const share = Math.min(limit - taken(type), Math.ceil(left / (rules.length - at)));
    left -= share;
    return share;
  });
}
