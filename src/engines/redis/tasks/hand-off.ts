// Direct hand-offs. An idle worker that waits for jobs registers an offer. The process that enqueues the next job
// claims it for that worker in the same script and publishes it, which saves a separate claim. A published message can
// be lost, so the script also stores a receipt, which the worker reads after its wait. Each engine has at most one
// offer. Hand-offs need one server: on a cluster, `PUBSUB NUMSUB` does not count all subscribers.

import { randomUUID } from 'node:crypto';
import type { ClaimRequest, ClaimRule } from '../../../tasks/task-engine.ts';
import type { StoredTask } from '../../../tasks/task-job.ts';
import type { RedisConnection } from '../connection/connection.ts';
import { taskScripts } from './context.ts';
import { limitWords } from './change-and-claim.ts';
import type { TaskKeyspace } from './keyspace.ts';
import { unpackTask } from './record.ts';
import type { UndeliveredTasks } from './undelivered.ts';

/**
 * The time to live of an offer. It exceeds the poll interval, because each poll makes a new offer, and a hanging
 * process soon gets no more jobs.
 */
const offerMs = 6_000;
/** How long Redis lists the types of a process. */
const memberMs = 30_000;
/** How long an offer with an unknown outcome prevents the next one. */
const unsettledMs = 60_000;
/** The number of past offers that are remembered. */
const endedMax = 16;

export interface HandOffs {
  readonly channel: string;
  onMessage(text: string): void;
  /** Undefined if another claim of this process has an open offer, or no type allows hand-offs. */
  offer(request: ClaimRequest, wake: () => void): TaskOffer | undefined;
  /** Finds a job that was handed to this worker while Redis was unreachable, and keeps the job for its next claim. */
  settle(worker: string): Promise<void>;
  /** Called when Redis may have lost the list of this process. */
  forget(): void;
  /** Withdraws all offers of this process; called when no claim waits any more. */
  leave(): Promise<void>;
}

interface TaskOffer {
  /** Withdraws the offer and returns the job if it was already handed off. */
  take(): Promise<readonly StoredTask[]>;
}

interface Offer {
  readonly number: number;
  readonly worker: string;
  readonly wake: () => void;
  readonly untilMs: number;
  /** `unsettled`: Redis was unreachable when the offer was withdrawn. */
  state: 'open' | 'withdrawing' | 'unsettled';
  tasks: readonly StoredTask[];
}

export function createHandOffs({
  redis,
  keyspace,
  undelivered,
}: {
  readonly redis: RedisConnection;
  readonly keyspace: TaskKeyspace;
  readonly undelivered: UndeliveredTasks;
}): HandOffs {
  const id = randomUUID();
  const key = `${keyspace.offers}${id}`;
  const channel = `${keyspace.bus.channel}:${id}`;
  const joined = new Map<string, number>();
  const withdrawing = new Set<Promise<unknown>>();
  let offers = 0;
  let current: Offer | undefined;
  /** The last offers that ended without a job. */
  const ended = new Set<number>();

  async function withdraw(offer: Offer): Promise<readonly StoredTask[]> {
    if (offer.tasks.length === 0) {
      offer.state = 'withdrawing';
      const cells = await redis.run(taskScripts.withdrawOffer, [key], [offer.number]);
      if (cells !== null) {
        const [type = '', ...job] = cells as readonly string[];
        offer.tasks = [unpackTask(type, job)];
      }
    }
    if (offer.tasks.length === 0) {
      ended.add(offer.number);
      ended.delete(offer.number - endedMax);
    }
    if (current === offer) current = undefined;
    return offer.tasks;
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
    const bases = unknown.map(({ type }) => keyspace.typeKeys(type).base);
    const values = [id, nowMs, nowMs + memberMs, memberMs * 2, ...bases];
    redis.run(taskScripts.joinHandOffs, [keyspace.offers], values).catch(forget);
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
        current.tasks = [task];
        if (current.state === 'open') current.wake();
        // A broken connection delivered the offer to Redis after its withdrawal.
      } else if (ended.delete(number)) undelivered.add([task]);
    },
    offer(request, wake) {
      const { worker, aliveUntilMs, nowMs } = request;
      const rules = request.rules.filter(({ allowsHandOff }) => allowsHandOff);
      const isOpen = current !== undefined && current.untilMs > nowMs;
      if (isOpen || rules.length === 0) return undefined;
      offers += 1;
      const offer: Offer = {
        number: offers,
        worker,
        wake,
        untilMs: nowMs + unsettledMs,
        state: 'open',
        tasks: [],
      };
      current = offer;
      const lines = rules.map((rule) => `${rule.type} ${rule.deadlineAfterMs} ${limitWords(rule)}`);
      const text = [offers, channel, worker, aliveUntilMs - nowMs, '', ...lines, ''].join('\n');
      // A lost offer does no harm: the worker is woken like all others.
      const set = redis.ask((client) => client.set(key, text, 'PX', offerMs));
      set.catch(() => undefined);
      join(rules, nowMs);
      return { take: () => take(offer) };
    },
    async settle(worker) {
      if (current?.state === 'unsettled' && current.worker === worker)
        undelivered.add(await take(current));
    },
    async leave() {
      // The caller of each withdrawal receives its error. Without the list, no process finds an open offer here.
      await Promise.allSettled(withdrawing);
      if (joined.size === 0) return;
      const bases = [...joined.keys()].map((type) => keyspace.typeKeys(type).base);
      await Promise.allSettled([redis.run(taskScripts.leaveHandOffs, [key], [id, ...bases])]);
    },
  };
}

/** Undefined if another program published the message. */
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
