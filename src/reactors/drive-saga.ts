// Handles the events in a saga's stream: each one performs the next piece of work. A killed process
// loses nothing, because the saga's state shows which work is left.

import { buildIdempotencyKey } from '../contracts/idempotency-key.ts';
import type { Clock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { idFromKey } from '../foundation/ids.ts';
import { withinTime } from '../foundation/async/within-time.ts';
import { isForgotten, subjectOf } from '../store/erasure.ts';
import type { EventStore } from '../store/event-store.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { messageOf } from '../foundation/error-text.ts';
import {
  decideStepOutcome,
  decideCompensationOutcome,
  decideQueued,
  decidePark,
  decideSettle,
  decideTimer,
  nextWork,
  type DecideWith,
  type SagaWork,
} from './decide-saga.ts';
import { outcomeOf } from '../foundation/handler-outcome.ts';
import { askCommand, type CommandOutcome, type SendCommand } from './reaction.ts';
import type { Saga } from './saga.ts';
import type { ParkedAt, SagaFact, SagaRequest } from './saga-fact.ts';
import type { SagaChange, SagaJournal } from './saga-journal.ts';
import type { SagaState } from './saga-state.ts';

export interface DriveOptions {
  readonly store: EventStore;
  readonly saga: Saga;
  readonly journal: SagaJournal;
  readonly send: SendCommand;
  readonly clock: Clock;
}

interface DriveContext {
  /** Counts from 1. */
  readonly attempt: number;
  readonly signal: AbortSignal;
  /** The trace context for the commands, as headers. */
  readonly trace: Readonly<Record<string, string>>;
}

/** Performs one piece of work, if any; returns the state after it. */
export type DriveSaga = (own: RecordedEvent, context: DriveContext) => Promise<SagaState>;

export function createDriveSaga(options: DriveOptions): DriveSaga {
  const { store, saga, journal, clock } = options;

  return async (own, { attempt, signal, trace }) => {
    const { stream } = own;
    const { tenant, key } = journal.addressOf(stream);
    const decideWith = (): DecideWith => ({ saga, tenant, key, nowMs: clock.now() });
    const state = await journal.load(stream);
    const work = nextWork(state);
    const isLast = attempt >= saga.retry.attemptsMax;
    const { correlationId = own.correlationId } = state;
    const common = { stream, correlationId, isLast, signal, trace };

    /** Writes only if this is still the next piece of work: another process may have done it. */
    const write = (
      cause: string,
      decide: (now: SagaState) => readonly SagaFact[],
      more: Partial<SagaChange> = {},
    ): Promise<SagaState> =>
      journal.change(stream, (now) => ({
        ...more,
        facts: isSame(work, nextWork(now)) ? decide(now) : [],
        cause: { id: `${cause} ${now.resumes}`, causationId: own.eventId, trace },
      }));

    /** An error in the user's code is retried; the last attempt parks the saga for an operator. */
    const writeOrPark = async (
      cause: string,
      at: ParkedAt,
      decide: (now: SagaState) => readonly SagaFact[],
      more?: Partial<SagaChange>,
    ): Promise<SagaState> => {
      try {
        return await write(cause, decide, more);
      } catch (error) {
        if (!isLast || isStoreError(error)) throw error;
        const why = { reason: 'handler-failed', message: messageOf(error) };
        return write(`park ${cause}`, (now) => decidePark(now, at, why));
      }
    };

    switch (work.kind) {
      case 'settle':
        return write(`settle ${state.revision}`, (now) => decideSettle(now, decideWith()));
      case 'timer': {
        const { timer } = work;
        return writeOrPark(`timer ${timer} ${state.revision}`, { at: 'timer', timer }, (now) =>
          decideTimer(now, timer, decideWith()),
        );
      }
      case 'event': {
        const { queued } = work;
        const found = await store.findEvent(queued.stream, queued.eventId);
        const event = isForgotten(found?.payload) ? undefined : found;
        return writeOrPark(
          `event ${queued.eventId}`,
          { at: 'event', eventId: queued.eventId },
          (now) => decideQueued(now, queued, event, decideWith()),
          { subject: event && subjectOf(event) },
        );
      }
      case 'step': {
        const { n, request, requestId } = work.step;
        if (request === undefined)
          return write(`park ${n}`, (now) => parkForgotten(now, n, 'step'));
        const outcome = await askForSaga(options, request, {
          ...common,
          n,
          what: 'do',
          causationId: requestId,
        });
        if (outcome.kind === 'doubt' && saga.onUnanswered === 'park') {
          const why = { reason: 'unanswered', message: outcome.message };
          return write(`park ${n}`, (now) => decidePark(now, { at: 'step', n }, why));
        }
        const at: ParkedAt = { at: 'answer', n, accepted: outcome.kind === 'accepted' };
        return writeOrPark(`answer ${n} ${outcome.kind}`, at, (now) =>
          decideStepOutcome(now, n, outcome, decideWith()),
        );
      }
      case 'compensation': {
        const { n, compensation, compensationId = own.eventId } = work.step;
        const parkAs: ParkedAt = { at: 'compensation', n };
        if (compensation === undefined) {
          return write(`park ${n}`, (now) => parkForgotten(now, n, 'compensation'));
        }
        const outcome = await askForSaga(options, compensation, {
          ...common,
          n,
          what: 'undo',
          causationId: compensationId,
        });
        if (outcome.kind === 'doubt') {
          const why = { reason: 'unanswered', message: outcome.message };
          return write(`park undo ${n}`, (now) => decidePark(now, parkAs, why));
        }
        return write(`undone ${n}`, (now) =>
          decideCompensationOutcome(now, n, outcome, decideWith()),
        );
      }
      default:
        return state;
    }
  };
}

function isSame(before: SagaWork, now: SagaWork): boolean {
  if (before.kind === 'timer') return now.kind === 'timer' && now.timer === before.timer;
  if (before.kind === 'event') {
    return now.kind === 'event' && now.queued.eventId === before.queued.eventId;
  }
  // The outcome of a command stays valid after other changes; the decision checks the step itself.
  if (before.kind === 'step' || before.kind === 'compensation') return true;
  return now.kind === before.kind;
}

function parkForgotten(
  state: SagaState,
  n: number,
  at: 'step' | 'compensation',
): readonly SagaFact[] {
  const message = 'the data subject of the command was forgotten';
  return decidePark(state, { at, n }, { reason: 'forgotten', message });
}

/** Whether the error is an unavailable database or a conflict, not an error of the user's code. */
function isStoreError(error: unknown): boolean {
  return isUnavailable(error) || hasCode(error, 'VERSION_CONFLICT');
}

interface AttemptContext {
  readonly stream: string;
  readonly n: number;
  readonly what: 'do' | 'undo';
  readonly correlationId: string;
  readonly causationId: string;
  /** Whether no automatic retry follows this attempt. */
  readonly isLast: boolean;
  readonly signal: AbortSignal;
  readonly trace?: Readonly<Record<string, unknown>> | undefined;
}

/** The process does not know whether the command took effect. */
interface Doubt {
  readonly kind: 'doubt';
  readonly message: string;
}

/** Sends one command of a saga. Rejects while attempts are left; the last attempt returns `doubt` instead. */
async function askForSaga(
  { saga, send, clock }: DriveOptions,
  request: SagaRequest,
  attempt: AttemptContext,
): Promise<CommandOutcome | Doubt> {
  const { stream, n, what, correlationId, causationId, isLast, signal, trace } = attempt;
  // The key is the same in every attempt and process, also after an operator resumes the saga.
  const idempotencyKey = buildIdempotencyKey({
    tenant: request.tenant,
    service: saga.bc,
    operation: saga.name,
    naturalKey: idFromKey(`${stream} ${n} ${what}`),
  });
  const late = new AbortController();
  const sent = askCommand(send, {
    ...request,
    idempotencyKey,
    correlationId,
    causationId,
    signal: AbortSignal.any([signal, late.signal]),
    headers: trace,
  });
  const ms = saga.commandTimeoutMs;
  const expire = (): never => {
    late.abort();
    throw new MillraceError('HANDLER_TIMEOUT', `the command did not complete within ${ms} ms`);
  };
  try {
    return await withinTime(sent, { ms, late: expire, clock });
  } catch (error) {
    const isSnoozed = outcomeOf(error).kind === 'snooze';
    if (!isLast || isSnoozed || signal.aborted || isUnavailable(error)) throw error;
    return { kind: 'doubt', message: messageOf(error) };
  }
}

/** Whether the database is unavailable or the store closed: such a failure does not count as an attempt. */
function isUnavailable(error: unknown): boolean {
  return (hasCode(error, 'STORE_UNAVAILABLE') && error.retryable) || hasCode(error, 'STORE_CLOSED');
}
