// A dead letter: an event whose handler failed, the error, and its status.

import { cleanText, messageOf } from '../foundation/error-text.ts';
import { errorFacts, failureCause, type FailureCause } from '../foundation/failure-cause.ts';
import { MillraceError } from '../foundation/error.ts';
import { subjectHeader } from '../store/erasure.ts';
import type { Position } from '../store/position.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { subscriptionLimits } from './subscription-limits.ts';

export type DeadLetterStatus = 'pending' | 'replayed' | 'discarded';

/** One failed attempt. */
export interface Attempt {
  readonly at: string;
  readonly error: string;
}

export interface DeadLetter {
  readonly id: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly aggregateId: string;
  /** Null for personal data, which only the event store holds, because it can erase it. */
  readonly payload: unknown;
  /** The error of the last attempt. */
  readonly error: string;
  /** Name, code, stack and fingerprint of that error; null for dead letters of earlier versions. */
  readonly cause: FailureCause | null;
  /** Number of attempts, including replays. */
  readonly attempts: number;
  readonly createdAt: string;
  readonly status: DeadLetterStatus;
  readonly replayedAt: string | null;
  readonly replayedBy: string | null;
  /** Free text of the operator. */
  readonly notes: string;
  /** The subscription that failed. There is one dead letter per handler and event id. */
  readonly handler: string;
  readonly shard: number;
  readonly tenant: string;
  readonly correlationId: string;
  readonly stream: string;
  readonly revision: number;
  readonly position: Position;
  /** Whether later events of the stream wait for this one. */
  readonly parked: boolean;
  /** The last attempts, oldest first. */
  readonly history: readonly Attempt[];
  /** Set while a requested replay is pending. */
  readonly replayRequestedAt: string | null;
  readonly discardedAt: string | null;
  readonly discardedBy: string | null;
  readonly discardReason: string | null;
}

/** The fields that are known when the handler fails. */
export type NewDeadLetter = Omit<
  DeadLetter,
  | 'status'
  | 'replayedAt'
  | 'replayedBy'
  | 'notes'
  | 'replayRequestedAt'
  | 'discardedAt'
  | 'discardedBy'
  | 'discardReason'
>;

/** A dead letter as it is stored: new, or `before` reopened with the attempts added. */
export function addedLetter(added: NewDeadLetter, before: DeadLetter | undefined): DeadLetter {
  const { error, cause, parked, attempts, history } = added;
  const all = [...(before?.history ?? []), ...history].slice(-subscriptionLimits.historyMax);
  return {
    ...(before ?? {
      ...added,
      payload: added.payload ?? null,
      replayedBy: null,
      notes: '',
      discardedAt: null,
      discardedBy: null,
      discardReason: null,
    }),
    error,
    cause,
    parked,
    status: 'pending',
    attempts: (before?.attempts ?? 0) + attempts,
    history: all,
    replayedAt: null,
    replayRequestedAt: null,
  };
}

/** All given fields must match. */
export interface DeadLetterFilter {
  readonly ids?: readonly string[] | undefined;
  readonly eventIds?: readonly string[] | undefined;
  readonly handler?: string | undefined;
  readonly status?: DeadLetterStatus | undefined;
  readonly eventType?: string | undefined;
  readonly aggregateId?: string | undefined;
  readonly tenant?: string | undefined;
  readonly stream?: string | undefined;
  /** Whether the aggregate is parked. */
  readonly parked?: boolean | undefined;
  /** Created at this time or later, ISO 8601. */
  readonly since?: string | undefined;
  /** Whether a requested replay is pending. */
  readonly replayRequested?: boolean | undefined;
}

export interface DeadLetterContext extends Pick<
  DeadLetter,
  'attempts' | 'handler' | 'history' | 'id' | 'parked' | 'shard'
> {
  readonly error: unknown;
  readonly nowMs: number;
}

export function newDeadLetter(event: RecordedEvent, context: DeadLetterContext): NewDeadLetter {
  const { id, handler, shard, parked, error, attempts, history, nowMs } = context;
  const text = errorText(event, error);
  const failure = { source: 'dead-letter', where: handler, error: text };
  return {
    id,
    eventId: event.eventId,
    eventType: event.type,
    aggregateId: event.aggregate.id,
    payload: isPersonal(event) ? null : event.payload,
    error: text,
    cause: failureCause(failure, errorFacts(error)),
    attempts,
    createdAt: new Date(nowMs).toISOString(),
    handler,
    shard,
    tenant: event.tenant,
    correlationId: event.correlationId,
    stream: event.stream,
    revision: event.revision,
    position: event.position,
    parked,
    history,
  };
}

export function withAttempt(
  { event, history }: { readonly event: RecordedEvent; readonly history: readonly Attempt[] },
  error: unknown,
  nowMs: number,
): readonly Attempt[] {
  const attempt = { at: new Date(nowMs).toISOString(), error: errorText(event, error) };
  return [...history, attempt].slice(-subscriptionLimits.historyMax);
}

export function matchesFilter(letter: DeadLetter, filter: DeadLetterFilter): boolean {
  const { ids, eventIds, since, replayRequested, ...parts } = filter;
  if (ids !== undefined && !ids.includes(letter.id)) return false;
  if (eventIds !== undefined && !eventIds.includes(letter.eventId)) return false;
  if (since !== undefined && Date.parse(letter.createdAt) < Date.parse(since)) return false;
  const isRequested = letter.replayRequestedAt !== null;
  if (replayRequested !== undefined && replayRequested !== isRequested) return false;
  return (Object.keys(parts) as (keyof typeof parts)[]).every(
    (part) => parts[part] === undefined || parts[part] === letter[part],
  );
}

/** The message of an error may quote the payload, so that of an event about a person is not stored. */
function errorText(event: RecordedEvent, error: unknown): string {
  const text = isPersonal(event) ? `${nameOf(error)}: ${withheld}` : messageOf(error);
  return cleanText(text, subscriptionLimits.errorCharsMax);
}

const withheld = 'the message is not stored, because the event contains personal data';

function isPersonal({ headers }: RecordedEvent): boolean {
  return headers?.[subjectHeader] !== undefined;
}

function nameOf(error: unknown): string {
  if (error instanceof MillraceError) return error.code;
  return error instanceof Error ? error.name : typeof error;
}
