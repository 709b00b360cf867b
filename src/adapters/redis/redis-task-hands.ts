// A worker that waits and has nothing else to do holds out its hand: whoever enqueues the next job claims
// it for that worker in the same script, and sends it along, instead of waking the worker to ask for it.
// A message may get lost, so what was handed over also stands in Redis: whoever waited in vain looks there
// before it does anything else. One hand for each engine, so on one server only: a cluster's publish does
// not tell who listens.

import { randomUUID } from 'node:crypto';
import type { ClaimRequest, ClaimRule } from '../../tasks/task-engine.ts';
import type { StoredTask } from '../../tasks/task-job.ts';
import type { TaskCalls } from './redis-task-calls.ts';
import { limitWords } from './redis-task-exchange.ts';
import { handScripts } from './redis-task-hand-scripts.ts';
import { unpackTask } from './redis-task-head.ts';
import type { KeptTasks } from './redis-task-kept.ts';
import type { TaskSpace } from './redis-task-space.ts';

/** An offer ends by itself behind the next look, which makes a new one; a process that hangs gets no more. */
const offerMs = 6_000;
/** How long it is known which types a process works on. */
const memberMs = 30_000;
/** Until when a worker that could not ask whether it was handed something must have come back for it. */
const unsettledMs = 60_000;
/** So many offers that have ended are remembered. */
const endedMax = 16;

export interface TaskHands {
  readonly channel: string;
  onMessage(text: string): void;
  /** Undefined: somebody else of this process holds out its hand, or there is nothing to offer. */
  offer(request: ClaimRequest, wake: () => void): TaskOffer | undefined;
  /** Looks for what this worker was handed while Redis could not be asked, and keeps it for its claim. */
  settle(worker: string): Promise<void>;
  /** Who knew it, may have forgotten it. */
  forget(): void;
  /** When all waits have ended: nobody asks this process any more. */
  leave(): Promise<void>;
}

export interface TaskOffer {
  /** Ends it. What was handed over until then is the worker's. */
  take(): Promise<readonly StoredTask[]>;
}

interface Offer {
  readonly number: number;
  readonly worker: string;
  readonly wake: () => void;
  readonly untilMs: number;
  /** `unsettled`: Redis could not be asked what became of it. */
  state: 'open' | 'withdrawing' | 'unsettled';
  handed: readonly StoredTask[];
}

export function createTaskHands({
  calls,
  space,
  kept,
}: {
  readonly calls: TaskCalls;
  readonly space: TaskSpace;
  readonly kept: KeptTasks;
}): TaskHands {
  const id = randomUUID();
  const key = `${space.hands}${id}`;
  const channel = `${space.bus.channel}:${id}`;
  const joined = new Map<string, number>();
  const withdrawing = new Set<Promise<unknown>>();
  let offers = 0;
  let current: Offer | undefined;
  /** The last offers that ended with nothing. */
  const ended = new Set<number>();

  async function withdraw(offer: Offer): Promise<readonly StoredTask[]> {
    if (offer.handed.length === 0) {
      offer.state = 'withdrawing';
      const cells = await calls.runText(handScripts.withdraw, [key], [offer.number]);
      if (cells !== null) {
        const [type = '', ...job] = cells as readonly string[];
        offer.handed = [unpackTask(type, job)];
      }
    }
    if (offer.handed.length === 0) {
      ended.add(offer.number);
      ended.delete(offer.number - endedMax);
    }
    if (current === offer) current = undefined;
    return offer.handed;
  }

  async function take(offer: Offer): Promise<readonly StoredTask[]> {
    const work = withdraw(offer);
    withdrawing.add(work);
    try {
      return await work;
    } catch (error) {
      offer.state = 'unsettled';
      throw error;
    } finally {
      withdrawing.delete(work);
    }
  }

  function join(rules: readonly ClaimRule[], nowMs: number): void {
    const unknown = rules.filter(({ type }) => (joined.get(type) ?? 0) < nowMs + memberMs / 2);
    if (unknown.length === 0) return;
    for (const { type } of unknown) joined.set(type, nowMs + memberMs);
    const bases = unknown.map(({ type }) => space.place(type).base);
    const values = [id, nowMs, nowMs + memberMs, memberMs * 2, ...bases];
    calls.runText(handScripts.join, [space.hands], values).catch(forget);
  }

  function forget(): void {
    joined.clear();
  }

  return {
    channel,
    forget,
    onMessage(text) {
      const message = parseMessage(text);
      if (message === undefined) return;
      const { number, task } = message;
      if (current?.number === number) {
        current.handed = [task];
        if (current.state === 'open') current.wake();
        // The offer came to Redis behind its own end, as a connection broke in between.
      } else if (ended.delete(number)) kept.keep([task]);
    },
    offer(request, wake) {
      const { worker, aliveUntilMs, nowMs } = request;
      const rules = request.rules.filter(({ mayBeHanded }) => mayBeHanded);
      const isHeld = current !== undefined && current.untilMs > nowMs;
      if (isHeld || rules.length === 0) return undefined;
      offers += 1;
      const offer: Offer = {
        number: offers,
        worker,
        wake,
        untilMs: nowMs + unsettledMs,
        state: 'open',
        handed: [],
      };
      current = offer;
      const lines = rules.map((rule) => `${rule.type} ${rule.deadlineAfterMs} ${limitWords(rule)}`);
      const token = [offers, channel, worker, aliveUntilMs - nowMs, '', ...lines, ''].join('\n');
      // One that does not arrive is missed by nobody: its worker is woken like all others.
      const set = calls.ask((client) => client.set(key, token, 'PX', offerMs));
      set.catch(() => undefined);
      join(rules, nowMs);
      return { take: () => take(offer) };
    },
    async settle(worker) {
      if (current?.state === 'unsettled' && current.worker === worker)
        kept.keep(await take(current));
    },
    async leave() {
      // Whoever waits for one is told of its failure; without the rest, nobody finds an open hand here.
      await Promise.allSettled(withdrawing);
      if (joined.size === 0) return;
      const bases = [...joined.keys()].map((type) => space.place(type).base);
      await Promise.allSettled([calls.runText(handScripts.leave, [key], [id, ...bases])]);
    },
  };
}

/** Undefined: it is none of ours, and nothing is lost with it. */
function parseMessage(
  text: string,
): { readonly number: number; readonly task: StoredTask } | undefined {
  try {
    const [number, type, job] = JSON.parse(text) as [number, string, readonly string[]];
    return { number, task: unpackTask(type, job) };
  } catch {
    return undefined;
  }
}
