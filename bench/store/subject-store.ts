// What every subject of this benchmark can do, however it does it.

import type { SampleEvent } from './sample-events.ts';

export const engines = ['sqlite', 'postgres'] as const;
export type Engine = (typeof engines)[number];

export interface Appending {
  /** Refused unless the stream has exactly `there` events already. */
  append(stream: string, there: number, events: readonly SampleEvent[]): Promise<unknown>;
  /** Of all committed events, asked for over another connection. */
  count(): Promise<number>;
  close(): Promise<void>;
}

export interface Reading {
  /** How many events it holds, each of them decoded. */
  readStream(stream: string): Promise<number>;
  /** The balance that the account's events leave. */
  loadAggregate(accountId: string): Promise<number>;
  /** Reads all events from the first, again and again; `total` events are there. */
  catchUp(total: number): CatchUp;
  /** Sees every event from now on. */
  follow(): Promise<Follower>;
}

export interface CatchUp {
  /** Reads on by so many events, and stands still until asked again. */
  take(count: number): Promise<void>;
  close(): Promise<void>;
}

export interface Follower {
  /** Resolves when the event with this number comes. */
  whenSeen(number: number): Promise<void>;
  close(): Promise<void>;
}

/** Throws when an event is missing, comes twice or out of order. */
export function inOrder(total: number): (number: number) => void {
  let expected = 0;
  return (number) => {
    if (number !== expected) throw new Error(`event ${number} came instead of event ${expected}`);
    expected = (expected + 1) % total;
  };
}

/** A follower's memory of who waits for what. */
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
