// The facts of a flow (events, handlers, dead letters, messages), and the nodes of the trace tree that are built from them.

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

/** A job of a task type. */
export interface TracedTask {
  readonly id: string;
  readonly type: string;
  readonly tenant: string | undefined;
  readonly state: string;
  /** The running or next attempt; the first is 1. */
  readonly attempt: number;
  readonly parentId: string | undefined;
  readonly causationId: string | undefined;
  readonly enqueuedAt: Date;
  readonly claimedAt: Date | undefined;
  readonly endedAt: Date | undefined;
  /** When it is due, or when its wait ends. */
  readonly dueAt: Date | undefined;
  /** `sleep`, `retry`, `children`, or `event` with its name. */
  readonly waitsFor: string | undefined;
  readonly error: string | undefined;
}

/** A message that was published to a topic. */
export interface TracedPublication {
  readonly id: string;
  readonly topic: string;
  readonly tenant: string | undefined;
  readonly causationId: string | undefined;
  readonly storedAt: Date;
}

/** The current state of a saga that has events in the flow and is not completed, or has timers. */
export interface TracedSaga {
  readonly stream: string;
  readonly saga: string;
  readonly key: string;
  readonly status: string;
  /** Why it is parked or compensated. */
  readonly reason: string | undefined;
  readonly timers: readonly { readonly timer: string; readonly dueAt: string }[];
}

/** What a flow has started outside of the event store. */
export interface TracedWork {
  readonly tasks: readonly TracedTask[];
  readonly publications: readonly TracedPublication[];
  readonly sagas: readonly TracedSaga[];
  /** Not everything was searched. */
  readonly isCut: boolean;
}

export interface TraceFacts {
  readonly events: readonly TracedEvent[];
  readonly handlers: readonly HandlerFact[];
  readonly letters: readonly TracedLetter[];
  readonly messages: readonly TracedMessage[];
  readonly work?: TracedWork | undefined;
}

interface NodeBase {
  readonly id: string;
  /** Null: the cause is not part of the flow. */
  readonly parent: string | null;
  readonly depth: number;
  /** Since the earliest time in the flow; null if the node has no time. */
  readonly offsetMs: number | null;
}

export interface CommandNode extends NodeBase, Pick<TracedEvent, 'stream' | 'tenant'> {
  readonly kind: 'command';
  readonly command: string;
  /** Set if no event of the flow caused the command: the command id, or the cause that its sender named. */
  readonly causationId: string | null;
  readonly idempotencyKey: string | null;
  /** When the command was decided. */
  readonly at: string;
  /** From the decision to the recording of its last event. */
  readonly durationMs: number;
}

type EventFacts = Pick<
  TracedEvent,
  'eventId' | 'occurredAt' | 'position' | 'recordedAt' | 'revision' | 'stream' | 'tenant' | 'type'
>;

export interface EventNode extends NodeBase, EventFacts {
  readonly kind: 'event';
  /** Set if the cause is not part of the flow. */
  readonly causationId: string | null;
}

export interface HandlerNode extends NodeBase {
  readonly kind: 'handler';
  readonly subscription: string;
  readonly state: HandlerFact['state'] | 'dead' | 'discarded' | 'replayed';
  /** Recorded failed attempts. */
  readonly failures: number | null;
  readonly error: string | null;
  readonly deadLetter: string | null;
  /** When the event became a dead letter; other states have no time. */
  readonly at: string | null;
}

export interface DeliveryNode extends NodeBase {
  readonly kind: 'delivery';
  readonly message: string;
  readonly destination: string;
  readonly type: string;
  readonly status: string;
  /** Failed attempts. */
  readonly attempts: number;
  readonly attemptsMax: number;
  readonly enqueuedAt: string;
  readonly dueAt: string;
  readonly sentAt: string | null;
  /** From enqueuing to sending. */
  readonly durationMs: number | null;
  readonly error: string | null;
}

/** A child of its delivery: one queue job per attempt. */
export interface JobNode extends NodeBase, Pick<TracedJob, 'attempt' | 'outcome' | 'queue'> {
  readonly kind: 'job';
  /** The job id in the queue. */
  readonly job: string;
  readonly enqueuedAt: string;
  readonly startedAt: string;
  readonly finishedAt: string | null;
  /** From enqueuing to the start of the job. */
  readonly waitedMs: number;
  /** From the start of the job to its terminal state. */
  readonly durationMs: number | null;
}

/** A job of a task type, below the event or the job that enqueued it. */
export interface TaskNode extends NodeBase, Pick<TracedTask, 'attempt' | 'state' | 'type'> {
  readonly kind: 'task';
  readonly task: string;
  /** Set if the cause is not part of the flow. */
  readonly causationId: string | null;
  readonly enqueuedAt: string;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  /** When it is due, or when its wait ends. */
  readonly dueAt: string | null;
  readonly waitsFor: string | null;
  /** From the last start to the end. */
  readonly durationMs: number | null;
  readonly error: string | null;
}

/** A message of a topic, below the event that caused it. */
export interface MessageNode extends NodeBase {
  readonly kind: 'message';
  readonly message: string;
  readonly topic: string;
  readonly causationId: string | null;
  readonly storedAt: string;
}

/** A saga with its timers, below its first event of the flow. */
export interface SagaNode extends NodeBase, Omit<TracedSaga, 'reason'> {
  readonly kind: 'saga';
  readonly reason: string | null;
}

export type TraceNode =
  | CommandNode
  | DeliveryNode
  | EventNode
  | HandlerNode
  | JobNode
  | MessageNode
  | SagaNode
  | TaskNode;

/** A node without its position in the tree. */
export type Draft<Node extends TraceNode = TraceNode> = Node extends TraceNode
  ? Omit<Node, 'depth' | 'offsetMs' | 'parent'> & { readonly atMs: number | null }
  : never;

export function commandNode(
  first: TracedEvent,
  last: TracedEvent,
  { command, isCaused }: { readonly command: string; readonly isCaused: boolean },
): Draft {
  const atMs = timeOf(first.occurredAt);
  const { causationId = null, idempotencyKey = null, tenant, stream, occurredAt } = first;
  return {
    kind: 'command',
    id: `command ${first.position}`,
    command,
    causationId: isCaused ? null : causationId,
    idempotencyKey,
    tenant,
    stream,
    at: occurredAt,
    durationMs: (timeOf(last.recordedAt) ?? 0) - (atMs ?? timeOf(last.recordedAt) ?? 0),
    atMs,
  };
}

export function eventNode(event: TracedEvent, causationId: string | undefined): Draft {
  const { type, eventId, tenant, stream, revision, position, occurredAt, recordedAt } = event;
  const recordFields = { tenant, stream, revision, position, occurredAt, recordedAt };
  return {
    kind: 'event',
    id: eventNodeId(event),
    type,
    eventId,
    causationId: causationId ?? null,
    ...recordFields,
    atMs: timeOf(recordedAt),
  };
}

export function deliveryNode(message: TracedMessage): Draft {
  const { createdAt, sentAt } = message;
  return {
    kind: 'delivery',
    id: `delivery ${message.id}`,
    message: message.id,
    destination: message.integrationType,
    type: message.eventType,
    status: message.status,
    attempts: message.attempts,
    attemptsMax: message.maxAttempts,
    enqueuedAt: createdAt.toISOString(),
    dueAt: message.dueAt.toISOString(),
    sentAt: sentAt?.toISOString() ?? null,
    durationMs: sentAt === undefined ? null : sentAt.getTime() - createdAt.getTime(),
    error: message.lastError ?? null,
    atMs: createdAt.getTime(),
  };
}

export function jobNode({ id, queue, attempt, outcome, ...times }: TracedJob): Draft {
  const { enqueuedAt, startedAt, finishedAt } = times;
  return {
    kind: 'job',
    id: `job ${id}`,
    job: id,
    queue,
    attempt,
    outcome,
    enqueuedAt: enqueuedAt.toISOString(),
    startedAt: startedAt.toISOString(),
    finishedAt: finishedAt?.toISOString() ?? null,
    waitedMs: startedAt.getTime() - enqueuedAt.getTime(),
    durationMs: finishedAt === undefined ? null : finishedAt.getTime() - startedAt.getTime(),
    atMs: enqueuedAt.getTime(),
  };
}

export function taskNode(task: TracedTask, causationId: string | undefined): Draft {
  const { id, type, state, attempt, enqueuedAt, claimedAt, endedAt, dueAt } = task;
  const isRun = claimedAt !== undefined && endedAt !== undefined;
  return {
    kind: 'task',
    id: taskNodeId(task),
    task: id,
    type,
    state,
    attempt,
    causationId: causationId ?? null,
    enqueuedAt: enqueuedAt.toISOString(),
    startedAt: claimedAt?.toISOString() ?? null,
    endedAt: endedAt?.toISOString() ?? null,
    dueAt: dueAt?.toISOString() ?? null,
    waitsFor: task.waitsFor ?? null,
    durationMs: isRun ? endedAt.getTime() - claimedAt.getTime() : null,
    error: task.error ?? null,
    atMs: enqueuedAt.getTime(),
  };
}

export function messageNode(published: TracedPublication, causationId: string | undefined): Draft {
  const { id, topic, storedAt } = published;
  return {
    kind: 'message',
    id: `message ${topic} ${id}`,
    message: id,
    topic,
    causationId: causationId ?? null,
    storedAt: storedAt.toISOString(),
    atMs: storedAt.getTime(),
  };
}

export function sagaNode({ saga, stream, key, status, reason, timers }: TracedSaga): Draft {
  const state = { status, reason: reason ?? null, timers };
  return { kind: 'saga', id: `saga ${stream}`, saga, key, stream, ...state, atMs: null };
}

export function taskNodeId({ id }: Pick<TracedTask, 'id'>): string {
  return `task ${id}`;
}

export function aliveHandler(id: string, fact: HandlerFact): Draft<HandlerNode> {
  const { subscription, state, failures = null, error = null } = fact;
  const unknown = { deadLetter: null, at: null, atMs: null };
  return { kind: 'handler', id, subscription, state, failures, error, ...unknown };
}

export function deadHandler(id: string, letter: TracedLetter): Draft<HandlerNode> {
  const { handler, status, attempts, error, createdAt } = letter;
  return {
    kind: 'handler',
    id,
    subscription: handler,
    state: status === 'pending' ? 'dead' : status,
    failures: attempts,
    error,
    deadLetter: letter.id,
    at: createdAt,
    atMs: timeOf(createdAt),
  };
}

export function eventNodeId({ position }: Pick<TracedEvent, 'position'>): string {
  return `event ${position}`;
}

export function timeOf(iso: string): number | null {
  const ms = Date.parse(iso);
  return Number.isNaN(ms) ? null : ms;
}
