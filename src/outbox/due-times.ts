// Remembers when postponed messages are due again, so that a dispatcher wakes before its next poll.

import { dueMsOf } from './create-outbox-ledger.ts';
import type { OutboxOutcome } from './outbox-ledger.ts';

export interface DueTimes {
  add(outcome: OutboxOutcome): void;
  /** The time until the first postponed message is due. Each due time is reported once. */
  nextInMs(nowMs: number): number;
}

/** The number of due times that are remembered; later ones are found by polling. */
const dueTimesMax = 64;

export function createDueTimes(): DueTimes {
  /** In ascending order. */
  const times: number[] = [];
  const first = (): number => times[0] ?? Number.POSITIVE_INFINITY;
  return {
    add(outcome) {
      const dueMs = dueMsOf(outcome);
      if (dueMs === null) return;
      const at = times.findLastIndex((each) => each <= dueMs) + 1;
      if (at >= dueTimesMax || times[at - 1] === dueMs) return;
      times.splice(at, 0, dueMs);
      if (times.length > dueTimesMax) times.pop();
    },
    nextInMs(nowMs) {
      const inMs = first() - nowMs;
      // The claim that follows finds the message in the ledger.
      while (first() <= nowMs) times.shift();
      return inMs;
    },
  };
}
