// What is known of a flow before it is a tree: its events, and what became of each.

import type { Position } from '../store/position.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import type { DeadLetter } from '../subscriptions/dead-letter.ts';

/** An event without what it says. */
export type TracedEvent = Omit<RecordedEvent, 'payload'>;

/** What a subscription is known to have done with an event. */
export interface HandlerFact {
  readonly subscription: string;
  /** Of the event. */
  readonly position: Position;
  /**
   * `passed`: the checkpoint is at the event or beyond, or it is marked as done. A subscription that
   * was begun behind the event has passed it as well. `waiting`: it failed, or is behind one of its
   * aggregate that did. `pending`: neither is written down yet.
   */
  readonly state: 'passed' | 'pending' | 'waiting';
  /** Of one that waits. */
  readonly failures?: number | undefined;
  readonly error?: string | undefined;
}

export type TracedLetter = Pick<
  DeadLetter,
  'attempts' | 'createdAt' | 'error' | 'eventId' | 'handler' | 'id' | 'status' | 'stream'
>;

/** One that carried a message through a queue. */
export interface TracedJob {
  readonly id: string;
  readonly queue: string;
  readonly attempt: number;
  readonly enqueuedAt: Date;
  readonly startedAt: Date;
  readonly finishedAt: Date | undefined;
  readonly outcome: 'sent' | 'failed' | 'dead' | 'running' | 'lost';
}

/** A message for the outside; fits what the outbox tells. */
export interface TracedMessage {
  readonly id: string;
  readonly sourceStreamId: string;
  readonly sourceEventId: string;
  readonly integrationType: string;
  readonly eventType: string;
  readonly tenantId: string | undefined;
  readonly status: string;
  readonly attempts: number;
  readonly maxAttempts: number;
  readonly dueAt: Date;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly sentAt: Date | undefined;
  readonly lastError: string | undefined;
  /** Those that were begun, oldest first; absent where no queue was between. */
  readonly jobs?: readonly TracedJob[] | undefined;
}

export interface TraceFacts {
  readonly events: readonly TracedEvent[];
  readonly handlers: readonly HandlerFact[];
  readonly letters: readonly TracedLetter[];
  readonly messages: readonly TracedMessage[];
}
