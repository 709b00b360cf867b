// Who waits for jobs does not ask for all types each time: wake-ups name those that have something, each
// visit tells when there is more, and a look now and then finds the rest. Who has nothing else to do meanwhile
// is handed the next job by whoever enqueues it.

import { aborted } from '../../foundation/clock.ts';
import type { ClaimRequest, ClaimRule, TaskChange, TaskEngine } from '../../tasks/task-engine.ts';
import type { StoredTask } from '../../tasks/task-job.ts';
import type { RedisTaskContext } from './redis-task-context.ts';
import { claimOf, type ExchangeType, type TypeExchanged } from './redis-task-exchange.ts';
import type { TaskOffer } from './redis-task-hands.ts';

/** Between two looks at a type while nothing is heard. */
const lookEveryMs = 5_000;
/** So few are all asked. */
const fewTypes = 4;

/** What this process knows of a type; the truth is in Redis. */
interface TypeView {
  isReady: boolean;
  freeAtMs: number;
  lookAtMs: number;
  /** By which it was asked last. */
  limits: Pick<ClaimRule, 'rate' | 'keyLimit'> | undefined;
}

export interface TaskClaims {
  readonly exchange: TaskEngine['exchange'];
  readonly claim: TaskEngine['claim'];
  /** Something may be there for whoever waits. */
  hear(type: string): void;
  wakeAll(): void;
}

export function createTaskClaims(
  context: RedisTaskContext,
  exchangeType: ExchangeType,
  failIfClosed: () => void,
): TaskClaims {
  const { clock, wakes, space, hands, kept } = context;
  const views = new Map<string, TypeView>();
  const waiting = new Set<() => void>();
  let news = 0;
  let turn = 0;
  const subjects = new Map<string, string>();

  function viewOf(type: string): TypeView {
    let view = views.get(type);
    if (view === undefined) {
      view = { isReady: true, freeAtMs: Infinity, lookAtMs: 0, limits: undefined };
      views.set(type, view);
      subjects.set(space.place(type).queue.subject, type);
    }
    return view;
  }

  function wakeAll(): void {
    news += 1;
    for (const wake of waiting) wake();
  }

  function hear(type: string): void {
    const view = views.get(type);
    if (view === undefined) return;
    view.isReady = true;
    wakeAll();
  }

  wakes.on((wake) => {
    if (wake.kind === 'freed') return;
    if (wake.kind === 'anything') {
      hands?.forget();
      for (const view of views.values()) view.isReady = true;
      wakeAll();
      return;
    }
    for (const subject of wake.subjects) {
      const type = subjects.get(subject);
      if (type !== undefined) hear(type);
    }
  });

  async function visit(
    rule: ClaimRule,
    ask: { readonly request: ClaimRequest; readonly limit: number },
    changes: readonly TaskChange[],
  ): Promise<TypeExchanged> {
    const view = viewOf(rule.type);
    const { nowMs } = ask.request;
    // Before the answer: what is heard meanwhile is news.
    view.isReady = false;
    const limit = Math.min(ask.limit, rule.limit);
    try {
      const claim = limit > 0 ? claimOf(ask.request, rule, limit) : undefined;
      const found = await exchangeType(rule.type, changes, claim, nowMs);
      if (found.isMore || limit <= 0) view.isReady = true;
      if (limit > 0) {
        view.freeAtMs = found.freeAtMs;
        view.lookAtMs = nowMs + lookEveryMs;
        view.limits = rule;
      }
      return found;
    } catch (error) {
      view.isReady = true;
      throw error;
    }
  }

  /** Fair parts first, then what others left to those that have more. */
  async function visitAll(
    request: ClaimRequest,
    rules: readonly ClaimRule[],
    changesOf: (type: string) => readonly TaskChange[] = () => [],
  ): Promise<Map<string, TypeExchanged[]>> {
    const found = new Map<string, TypeExchanged[]>(rules.map(({ type }) => [type, []]));
    let room = request.limit;
    turn += 1;
    let asked = rules.map((_, at) => rules[(at + turn) % rules.length] as ClaimRule);
    for (let round = 0; asked.length > 0 && (round === 0 || room > 0); round += 1) {
      const shares = sharesOf(asked, room, (type) => takenOf(found.get(type)));
      const visited = asked.map((rule, at) => ({
        rule,
        limit: shares[at] ?? 0,
        changes: round === 0 ? changesOf(rule.type) : [],
      }));
      const parts = await Promise.allSettled(
        visited.map(async ({ rule, limit, changes }) =>
          // Nothing is left for it in this round: its turn is in the next one.
          limit > 0 || changes.length > 0 ? visit(rule, { request, limit }, changes) : undefined,
        ),
      );
      for (const [at, { type }] of asked.entries()) {
        const part = parts[at];
        if (part?.status !== 'fulfilled' || part.value === undefined) continue;
        found.get(type)?.push(part.value);
        room -= part.value.claimed.length;
      }
      const failed = parts.find((part) => part.status === 'rejected');
      if (failed !== undefined) {
        kept.keep(claimedOf(found));
        throw failed.reason;
      }
      asked = asked.filter((rule, at) => {
        const part = parts[at];
        const isMore = part?.status === 'fulfilled' && part.value?.isMore === true;
        return shares[at] === 0 || (isMore && takenOf(found.get(rule.type)) < rule.limit);
      });
    }
    return found;
  }

  const isDue = ({ type, rate, keyLimit }: ClaimRule, nowMs: number): boolean => {
    const { isReady, freeAtMs, lookAtMs, limits } = viewOf(type);
    // A clock that was set back does not put the look off.
    const isLook = lookAtMs <= nowMs || lookAtMs > nowMs + 2 * lookEveryMs;
    const isOther = limits?.rate !== rate || limits?.keyLimit !== keyLimit;
    return isReady || freeAtMs <= nowMs || isLook || isOther;
  };

  /** Until something may be there, or was handed over: that is returned. */
  async function rest(
    request: ClaimRequest,
    how: {
      readonly seen: number;
      readonly untilMs: number;
      readonly isBusy: boolean;
      readonly signal: AbortSignal;
    },
  ): Promise<readonly StoredTask[]> {
    const { rules } = request;
    const { seen, untilMs, isBusy, signal } = how;
    let offer: TaskOffer | undefined;
    const woken = Promise.withResolvers<void>();
    const sleeping = new AbortController();
    waiting.add(woken.resolve);
    const onAbort = (): void => woken.resolve();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      if (news !== seen && rules.some(({ type }) => viewOf(type).isReady)) return [];
      if (signal.aborted) throw aborted(signal);
      if (!isBusy) offer = hands?.offer(request, woken.resolve);
      const dueAtMs = Math.min(
        ...rules.map(({ type }) => Math.min(viewOf(type).freeAtMs, viewOf(type).lookAtMs)),
      );
      const ms = Math.max(0, Math.min(dueAtMs, untilMs) - clock.now());
      // It rejects only by our own signal, below.
      const slept = clock.sleep(ms, sleeping.signal).catch(() => undefined);
      await Promise.race([woken.promise, slept]);
    } finally {
      waiting.delete(woken.resolve);
      signal.removeEventListener('abort', onAbort);
      // Whoever was woken asks first; to end the sleep takes longer than to begin the question.
      setImmediate(() => sleeping.abort());
    }
    const handed = (await offer?.take()) ?? [];
    if (handed.length === 0 && signal.aborted) throw aborted(signal);
    return handed;
  }

  return {
    hear,
    wakeAll,
    async exchange(changes, claim, nowMs) {
      failIfClosed();
      const byType = Map.groupBy(changes, ({ type }) => type);
      const rules = claim?.rules ?? [];
      const isFew = rules.length <= fewTypes;
      const asked = rules.filter((rule) => isFew || byType.has(rule.type) || isDue(rule, nowMs));
      const own = new Set(asked.map(({ type }) => type));
      const request = claim === undefined ? undefined : { ...claim, nowMs };
      const [found, ...others] = await Promise.all([
        request === undefined || asked.length === 0
          ? new Map<string, TypeExchanged[]>()
          : visitAll(request, asked, (type) => byType.get(type) ?? []),
        ...[...byType]
          .filter(([type]) => !own.has(type))
          .map(async ([type, some]) => {
            return [type, await exchangeType(type, some, undefined, nowMs)] as const;
          }),
      ]);
      // Those that were asked along with the changes have seen what came of them.
      for (const type of byType.keys()) if (!own.has(type)) hear(type);
      const outcomesOf = new Map(
        [...byType.keys()].map((type) => {
          const exchanged = found.get(type)?.[0] ?? others.find(([name]) => name === type)?.[1];
          return [type, (exchanged?.outcomes ?? []).values()] as const;
        }),
      );
      return {
        outcomes: changes.map(
          ({ type }) => outcomesOf.get(type)?.next().value ?? { kind: 'stale', head: undefined },
        ),
        claimed: claimedOf(found),
      };
    },

    async claim(request, { waitMs, isBusy, signal }) {
      failIfClosed();
      const leaseMs = request.aliveUntilMs - request.nowMs;
      const untilMs = clock.now() + waitMs;
      if (signal.aborted) throw aborted(signal);
      if (waitMs > 0) await wakes.listen();
      // Who does not wait, or hears nothing, has to ask.
      let isAll = waitMs === 0 || !wakes.isListening;
      for (let nowMs = request.nowMs; ; nowMs = clock.now()) {
        failIfClosed();
        if (signal.aborted) throw aborted(signal);
        const seen = news;
        const now = { ...request, nowMs, aliveUntilMs: nowMs + leaseMs };
        await hands?.settle(request.worker);
        const before = kept.takeFor(now);
        if (before.length > 0) return before;
        const asked = request.rules.filter((rule) => isAll || isDue(rule, nowMs));
        isAll = false;
        if (asked.length > 0) {
          const claimed = claimedOf(await visitAll(now, asked));
          if (claimed.length > 0) return claimed;
        }
        if (clock.now() >= untilMs) return [];
        const handed = await rest(now, { seen, untilMs, isBusy, signal });
        if (handed.length > 0) return handed;
      }
    },
  };
}

function claimedOf(found: ReadonlyMap<string, readonly TypeExchanged[]>): readonly StoredTask[] {
  return [...found.values()].flatMap((parts) => parts.flatMap(({ claimed }) => claimed));
}

function takenOf(parts: readonly TypeExchanged[] = []): number {
  return parts.reduce((sum, { claimed }) => sum + claimed.length, 0);
}

/** Of each type, so that all of them together are at most `room`. */
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
