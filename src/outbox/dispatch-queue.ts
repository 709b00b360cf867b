// The work of a dispatcher between two round trips: queues claimed messages, sends them, and collects the outcomes
// that wait to be stored.

import { createWaiters } from '../foundation/async/waiters.ts';
import type { OutboxOutcome } from './outbox-ledger.ts';
import type { ClaimedMessage } from './outbox-message.ts';
import type { SettledMessage } from './report-outcome.ts';

export interface Dispatched {
  readonly message: ClaimedMessage;
  /** Taken before the claim was requested: the lease expires no earlier than its length after this. */
  readonly claimedAtMs: number;
}

export interface DispatchQueue {
  readonly waiting: number;
  readonly settled: number;
  add(messages: readonly Dispatched[]): void;
  next(): Dispatched | undefined;
  settle(message: ClaimedMessage, outcome: OutboxOutcome): void;
  takeSettled(): readonly SettledMessage[];
  /** Returns outcomes that could not be stored. */
  putBack(settled: readonly SettledMessage[]): void;
  /** Whether one of the outcomes lets another message of its ordering key be claimed. */
  freesOrderingKey(): boolean;
  /** Releases all messages that wait to be sent. */
  releaseWaiting(): void;
  /** The time until the first postponed message is due again. */
  dueInMs(nowMs: number): number;
  whenChanged(signal: AbortSignal): Promise<void>;
}

/** The number of due times that are remembered; later ones are found by polling. */
const dueTimesMax = 64;

export function createDispatchQueue(): DispatchQueue {
  const waiting: Dispatched[] = [];
  const changed = createWaiters();
  let settled: SettledMessage[] = [];
  /** When postponed messages are due again, in ascending order. */
  const dueTimes: number[] = [];

  const settle = (message: ClaimedMessage, outcome: OutboxOutcome): void => {
    settled.push({ message, outcome });
    const retryAt = outcome.kind === 'failed' ? outcome.nextDueAt : undefined;
    const dueAt = outcome.kind === 'released' ? outcome.dueAt : retryAt;
    if (dueAt !== undefined) postpone(dueAt.getTime());
    changed.wakeAll();
  };
  const postpone = (untilMs: number): void => {
    const at = dueTimes.findLastIndex((dueMs) => dueMs <= untilMs) + 1;
    if (at >= dueTimesMax || dueTimes[at - 1] === untilMs) return;
    dueTimes.splice(at, 0, untilMs);
    if (dueTimes.length > dueTimesMax) dueTimes.pop();
  };

  return {
    get waiting() {
      return waiting.length;
    },
    get settled() {
      return settled.length;
    },
    add: (messages) => void waiting.push(...messages),
    next() {
      const next = waiting.shift();
      changed.wakeAll();
      return next;
    },
    settle,
    takeSettled() {
      const taken = settled;
      settled = [];
      return taken;
    },
    putBack(unstored) {
      settled = [...unstored, ...settled];
    },
    freesOrderingKey: () => settled.some(freesOrderingKey),
    releaseWaiting() {
      for (const { message } of waiting.splice(0)) {
        const { id, token } = message;
        settle(message, { kind: 'released', claim: { id, token } });
      }
    },
    dueInMs(nowMs) {
      const inMs = (dueTimes[0] ?? Number.POSITIVE_INFINITY) - nowMs;
      // Each due time is reported once: the claim that follows finds the message in the ledger.
      while ((dueTimes[0] ?? Number.POSITIVE_INFINITY) <= nowMs) dueTimes.shift();
      return inMs;
    },
    whenChanged: (signal) => changed.wait(signal, () => settled.length > 0),
  };
}

export interface Senders {
  readonly inFlight: number;
  readonly sentTotal: number;
  /** Sends the next messages of the queue, as far as the concurrency allows. */
  startNext(): void;
  onSent(listener: () => void): void;
  /** Resolves when no message is being sent. */
  whenAllSent(): Promise<void>;
}

/** Sends the messages of the queue, at most `concurrency` at a time. */
export function createSenders(
  queue: DispatchQueue,
  {
    concurrency,
    stopping,
    send,
  }: {
    readonly concurrency: number;
    readonly stopping: AbortSignal;
    readonly send: (dispatched: Dispatched) => Promise<OutboxOutcome>;
  },
): Senders {
  const allSent = createWaiters();
  let onSent: () => void = () => undefined;
  let inFlight = 0;
  let sentTotal = 0;

  function startNext(): void {
    while (!stopping.aborted && inFlight < concurrency) {
      const next = queue.next();
      if (next === undefined) return;
      inFlight += 1;
      void sendOne(next);
    }
  }

  async function sendOne(dispatched: Dispatched): Promise<void> {
    try {
      queue.settle(dispatched.message, await send(dispatched));
    } finally {
      inFlight -= 1;
      sentTotal += 1;
      onSent();
      startNext();
      if (inFlight === 0) allSent.wakeAll();
    }
  }

  return {
    get inFlight() {
      return inFlight;
    },
    get sentTotal() {
      return sentTotal;
    },
    startNext,
    onSent: (listener) => void (onSent = listener),
    whenAllSent: () => allSent.wait(new AbortController().signal, () => inFlight === 0),
  };
}

/** Whether the next message of the same ordering key can be claimed now. */
export function freesOrderingKey({ message, outcome }: SettledMessage): boolean {
  return message.orderingKey !== undefined && (outcome.kind === 'sent' || outcome.kind === 'dead');
}
