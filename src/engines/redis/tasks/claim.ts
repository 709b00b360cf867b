// Claims jobs of several types. A waiting claim does not query all types each time: wake-ups name the types with new
// jobs, each visit returns when more may be available, and a periodic poll finds the rest.

import { aborted } from '../../../foundation/clock.ts';
import { createWaiters } from '../../../foundation/async/waiters.ts';
import { claimUntilFound, type ClaimAnswer } from '../../../tasks/claim-until-found.ts';
import type { ClaimRequest, ClaimRule, TaskEngine } from '../../../tasks/task-engine.ts';
import type { StoredTask } from '../../../tasks/task-job.ts';
import { taskScripts, type RedisTaskContext } from './context.ts';
import { unpackTask } from './record.ts';

/** Interval between polls of a type without wake-ups. */
const pollEveryMs = 5_000;

/** The state of a type that this process caches; Redis holds the authoritative state. */
interface TypeView {
  isReady: boolean;
  freeAtMs: number;
  pollAtMs: number;
  /** Limits of the last visit. */
  limits: Pick<ClaimRule, 'rate' | 'keyLimit'> | undefined;
}

interface TypeResult {
  readonly claimed: readonly StoredTask[];
  /** The claim reached its limit, so more jobs may be available now. */
  readonly isMore: boolean;
}

type ScriptReply = readonly [jobs: readonly (readonly string[])[], more: number, freeAtMs: string];

export interface TaskClaims {
  readonly claim: TaskEngine['claim'];
  /** Called when the type may have new jobs. */
  readonly onNewWork: (type: string) => void;
  wakeAll(): void;
}

export function createTaskClaims(context: RedisTaskContext, failIfClosed: () => void): TaskClaims {
  const { redis, clock, wakes, keyspace } = context;
  const views = new Map<string, TypeView>();
  const waiters = createWaiters();
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

  function onNewWork(type: string): void {
    const view = views.get(type);
    if (view === undefined) return;
    view.isReady = true;
    waiters.wakeAll();
  }

  wakes.on((wake) => {
    if (wake.kind === 'freed') return;
    if (wake.kind === 'anything') {
      for (const view of views.values()) view.isReady = true;
      waiters.wakeAll();
      return;
    }
    for (const subject of wake.subjects) {
      const type = subjects.get(subject);
      if (type !== undefined) onNewWork(type);
    }
  });

  async function visit(request: ClaimRequest, rule: ClaimRule, limit: number): Promise<TypeResult> {
    const { nowMs, worker, aliveUntilMs } = request;
    const { type, deadlineAfterMs, keyLimit, rate } = rule;
    const { base, never, queue } = keyspace.typeKeys(type);
    const view = viewOf(type);
    // Reset before the visit: a wake-up during the visit sets it again.
    view.isReady = false;
    const { count = '', perMs = '', isPerTenant = false } = rate ?? {};
    const workers = keyspace.bus.isOneDomain ? keyspace.workers : '';
    const head = [nowMs, keyspace.workerChannel, queue.subject, workers, worker, aliveUntilMs];
    const limits = [limit, nowMs + deadlineAfterMs, keyLimit ?? '', count, perMs];
    const values = [...head, ...limits, isPerTenant ? 1 : 0];
    try {
      const reply = await redis.run(taskScripts.claim, [base, never], values);
      const [jobs, more, freeAt] = reply as ScriptReply;
      view.isReady ||= more === 1;
      view.freeAtMs = Number(freeAt) < 0 ? Infinity : Number(freeAt);
      view.pollAtMs = nowMs + pollEveryMs;
      view.limits = rule;
      return { claimed: jobs.map((job) => unpackTask(type, job)), isMore: more === 1 };
    } catch (error) {
      view.isReady = true;
      throw error;
    }
  }

  /** Gives each type a fair share first; further rounds give the rest to the types that have more jobs. */
  async function visitAll(
    request: ClaimRequest,
    rules: readonly ClaimRule[],
  ): Promise<readonly StoredTask[]> {
    const claimed: StoredTask[] = [];
    const taken = (type: string): number => claimed.filter(({ head }) => head.type === type).length;
    turn += 1;
    let remaining = rules.map((_, at) => rules[(at + turn) % rules.length] as ClaimRule);
    while (remaining.length > 0 && claimed.length < request.limit) {
      const shares = sharesOf(remaining, request.limit - claimed.length, taken);
      const parts = await Promise.allSettled(
        // A type without a share in this round gets its turn in the next one.
        remaining.map(async (rule, at) => {
          const limit = shares[at] ?? 0;
          return limit > 0 ? visit(request, rule, limit) : { claimed: [], isMore: true };
        }),
      );
      const found = parts.map((part) => (part.status === 'fulfilled' ? part.value : undefined));
      claimed.push(...found.flatMap((part) => part?.claimed ?? []));
      const failed = parts.find((part) => part.status === 'rejected');
      if (failed !== undefined) {
        // Jobs that are not returned would wait for their deadline. The next claim fails again.
        if (claimed.length > 0) return claimed;
        throw failed.reason;
      }
      remaining = remaining.filter(
        ({ type, limit }, at) => found[at]?.isMore === true && taken(type) < limit,
      );
    }
    return claimed;
  }

  const isDue = ({ type, rate, keyLimit }: ClaimRule, nowMs: number): boolean => {
    const { isReady, freeAtMs, pollAtMs, limits } = viewOf(type);
    // If the clock was set back, poll now instead of postponing the poll.
    const isPollDue = pollAtMs <= nowMs || pollAtMs > nowMs + 2 * pollEveryMs;
    const hasOtherLimits = limits?.rate !== rate || limits?.keyLimit !== keyLimit;
    return isReady || freeAtMs <= nowMs || isPollDue || hasOtherLimits;
  };

  return {
    onNewWork,
    wakeAll: () => waiters.wakeAll(),
    async claim(request, { waitMs, signal }) {
      failIfClosed();
      if (signal.aborted) throw aborted(signal);
      if (waitMs > 0) await wakes.listen();
      // Without a wait or a subscription, the first round must visit all types.
      let isAll = waitMs === 0 || !wakes.isListening;
      const typeViews = request.rules.map(({ type }) => viewOf(type));
      const claimNow = async (now: ClaimRequest): Promise<ClaimAnswer> => {
        failIfClosed();
        const visited = now.rules.filter((rule) => isAll || isDue(rule, now.nowMs));
        isAll = false;
        const claimed = await visitAll(now, visited);
        const dueAtMs = typeViews.flatMap(({ freeAtMs, pollAtMs }) => [freeAtMs, pollAtMs]);
        return { claimed, freeAtMs: Math.min(...dueAtMs) };
      };
      return claimUntilFound(claimNow, request, { waitMs, signal, clock, waiters });
    },
  };
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
