// What a dispatcher holds between two round trips: claimed messages that wait for their turn, and outcomes
// that wait to be written down.

import { createWaiters } from '../store/waiters.ts';
import type { OutboxOutcome } from './outbox-ledger.ts';
import type { ClaimedMessage } from './outbox-message.ts';
import { freesOthers, type SettledMessage } from './tell-outcome.ts';

export interface Dispatched {
  readonly message: ClaimedMessage;
  /** Before the claim was asked for: the lease is over no earlier than its length after this. */
  readonly claimedAtMs: number;
}

export interface DispatchQueue {
  readonly waiting: number;
  readonly settled: number;
  add(messages: readonly Dispatched[]): void;
  next(): Dispatched | undefined;
  settle(message: ClaimedMessage, outcome: OutboxOutcome): void;
  takeSettled(): readonly SettledMessage[];
  /** They could not be written down. */
  putBack(settled: readonly SettledMessage[]): void;
  /** Whether one of the outcomes lets another message of its key go. */
  freesOthers(): boolean;
  releaseWaiting(): void;
  /** Until the first of those that were put off is due again. */
  dueInMs(nowMs: number): number;
  whenChanged(signal: AbortSignal): Promise<void>;
}

/** Of more that were put off, the next look finds the later ones. */
const duesMax = 64;

export function createDispatchQueue(): DispatchQueue {
  const waiting: Dispatched[] = [];
  const changed = createWaiters();
  let settled: SettledMessage[] = [];
  /** When those that were put off are due again, the first ones first. */
  const dues: number[] = [];

  const settle = (message: ClaimedMessage, outcome: OutboxOutcome): void => {
    settled.push({ message, outcome });
    const due = outcome.kind === 'failed' ? outcome.nextDueAt : undefined;
    const again = outcome.kind === 'released' ? outcome.dueAt : due;
    if (again !== undefined) putOff(again.getTime());
    changed.wakeAll();
  };
  const putOff = (untilMs: number): void => {
    const at = dues.findLastIndex((each) => each <= untilMs) + 1;
    if (at >= duesMax || dues[at - 1] === untilMs) return;
    dues.splice(at, 0, untilMs);
    if (dues.length > duesMax) dues.pop();
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
    putBack(back) {
      settled = [...back, ...settled];
    },
    freesOthers: () => settled.some(freesOthers),
    releaseWaiting() {
      for (const { message } of waiting.splice(0)) {
        const { id, token } = message;
        settle(message, { kind: 'released', claim: { id, token } });
      }
    },
    dueInMs(nowMs) {
      const inMs = (dues[0] ?? Number.POSITIVE_INFINITY) - nowMs;
      // Looked for once: the ledger has them from then on.
      while ((dues[0] ?? Number.POSITIVE_INFINITY) <= nowMs) dues.shift();
      return inMs;
    },
    whenChanged: (signal) => changed.wait(signal, () => settled.length > 0),
  };
}
