// The input of a trace tree: the events of a flow, their handlers, dead letters and messages.

import type { OutboxJob } from '../contracts/outbox-job.ts';
import type { Position } from '../store/position.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import type { DeadLetter } from '../subscriptions/dead-letter.ts';

/** An event without its payload. */
export type TracedEvent = Omit<RecordedEvent, 'payload'>;

/** The progress of a subscription on one event. */
export interface HandlerFact {
  readonly subscription: string;
  /** Position of the event. */
  readonly position: Position;
  /**
   * `passed`: the checkpoint is at or after the event, or the event is marked as done. A subscription that
   * started after the event has passed it as well. `waiting`: the event failed, or is queued after a
   * failed event of its aggregate. `pending`: neither is recorded yet.
   */
  readonly state: 'passed' | 'pending' | 'waiting';
  /** Failed attempts of a waiting event. */
  readonly failures?: number | undefined;
  readonly error?: string | undefined;
}

export type TracedLetter = Pick<
  DeadLetter,
  'attempts' | 'createdAt' | 'error' | 'eventId' | 'handler' | 'id' | 'status' | 'stream'
>;

/** A queue job that delivered a message. */
export type TracedJob = OutboxJob;

/** An outgoing message, as stored by the outbox. */
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
  /** The started jobs, oldest first; absent without a queue. */
  readonly jobs?: readonly TracedJob[] | undefined;
}

export interface TraceFacts {
  readonly events: readonly TracedEvent[];
  readonly handlers: readonly HandlerFact[];
  readonly letters: readonly TracedLetter[];
  readonly messages: readonly TracedMessage[];
}
