// What stands in the tree of a flow, and how each is made of what is known.

import type {
  HandlerFact,
  TracedEvent,
  TracedJob,
  TracedLetter,
  TracedMessage,
} from './trace-facts.ts';

interface NodeBase {
  readonly id: string;
  /** Null: nothing in the flow has caused it. */
  readonly parent: string | null;
  readonly depth: number;
  /** Since the first time that the flow knows of; null where no time is known. */
  readonly offsetMs: number | null;
}

export interface CommandNode extends NodeBase {
  readonly kind: 'command';
  readonly command: string;
  /** Of a command that no event of the flow has caused: its own id, or what its sender named as the cause. */
  readonly causationId: string | null;
  readonly idempotencyKey: string | null;
  readonly tenant: string;
  readonly stream: string;
  /** When it was decided. */
  readonly at: string;
  /** From the decision until its last event was recorded. */
  readonly durationMs: number;
}

export interface EventNode extends NodeBase {
  readonly kind: 'event';
  readonly type: string;
  readonly eventId: string;
  /** Where the flow has no such event or command. */
  readonly causationId: string | null;
  readonly tenant: string;
  readonly stream: string;
  readonly revision: number;
  readonly position: string;
  readonly occurredAt: string;
  readonly recordedAt: string;
}

export interface HandlerNode extends NodeBase {
  readonly kind: 'handler';
  readonly subscription: string;
  readonly state: HandlerFact['state'] | 'dead' | 'discarded' | 'replayed';
  /** Failed attempts, as far as they were written down. */
  readonly failures: number | null;
  readonly error: string | null;
  readonly deadLetter: string | null;
  /** When it became a dead letter: others leave no time. */
  readonly at: string | null;
}

export interface DeliveryNode extends NodeBase {
  readonly kind: 'delivery';
  readonly message: string;
  readonly destination: string;
  readonly type: string;
  readonly status: string;
  /** Those that failed. */
  readonly attempts: number;
  readonly attemptsMax: number;
  readonly enqueuedAt: string;
  readonly dueAt: string;
  readonly sentAt: string | null;
  /** From being enqueued until it was sent. */
  readonly durationMs: number | null;
  readonly error: string | null;
}

/** Below the delivery that it carried through a queue: one for each attempt. */
export interface JobNode extends NodeBase {
  readonly kind: 'job';
  /** As the queue knew it. */
  readonly job: string;
  readonly queue: string;
  readonly attempt: number;
  readonly outcome: TracedJob['outcome'];
  readonly enqueuedAt: string;
  readonly startedAt: string;
  readonly finishedAt: string | null;
  /** From being enqueued until a worker began. */
  readonly waitedMs: number;
  /** From there until it was finished. */
  readonly durationMs: number | null;
}

export type TraceNode = CommandNode | DeliveryNode | EventNode | HandlerNode | JobNode;

/** Before its place is known. */
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
  const place = { tenant, stream, revision, position, occurredAt, recordedAt };
  return {
    kind: 'event',
    id: eventNodeId(event),
    type,
    eventId,
    causationId: causationId ?? null,
    ...place,
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
