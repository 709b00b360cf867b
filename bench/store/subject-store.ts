// The interface of the subjects of this benchmark.

import type { SampleEvent } from './sample-events.ts';

export const engines = ['sqlite', 'postgres'] as const;
export type Engine = (typeof engines)[number];

export interface Appending {
  /** Fails unless the stream has exactly `there` events. */
  append(stream: string, there: number, events: readonly SampleEvent[]): Promise<unknown>;
  /** The number of committed events, read over another connection. */
  count(): Promise<number>;
  close(): Promise<void>;
}

export interface Reading {
  /** The number of events in the stream, each of them decoded. */
  readStream(stream: string): Promise<number>;
  /** The balance after all events of the account. */
  loadAggregate(accountId: string): Promise<number>;
  /** Reads all `total` events from the first, repeatedly. */
  catchUp(total: number): CatchUp;
  /** Receives every event from now on. */
  follow(): Promise<Follower>;
}

export interface CatchUp {
  /** Reads this many events, and pauses until the next call. */
  take(count: number): Promise<void>;
  close(): Promise<void>;
}

export interface Follower {
  /** Resolves when the event with this number arrives. */
  whenSeen(number: number): Promise<void>;
  close(): Promise<void>;
}

/** Throws if an event is missing, repeated or out of order. */
export function inOrder(total: number): (number: number) => void {
  let expected = 0;
  return (number) => {
    if (number !== expected)
      throw new Error(`received event ${number} instead of event ${expected}`);
    expected = (expected + 1) % total;
  };
}

/** The waiting callers of a follower, by event number. */
export function createSightings(): {
  seen(number: number): void;
  whenSeen(number: number): Promise<void>;
} {
  const waiting = new Map<number, () => void>();
  return {
    seen(number) {
      waiting.get(number)?.();
      waiting.delete(number);
    },
    whenSeen: (number) => new Promise((resolve) => void waiting.set(number, resolve)),
  };
}
