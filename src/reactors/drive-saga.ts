// A saga's own events, handled: each of them brings the saga one piece of work further. What a kill
// leaves undone is found again in the saga's state, so no piece depends on the one who began it.

import type { Clock } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';
import { isForgotten, subjectOf } from '../store/erasure.ts';
import type { EventStore } from '../store/event-store.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { messageOf } from '../foundation/error-text.ts';
import { createAskForSaga, isAway } from './ask-for-saga.ts';
import {
  decideAnswer,
  decideCompensationAnswer,
  decideHeld,
  decidePark,
  decideSettle,
  decideTimer,
  nextWork,
  type DecideWith,
  type SagaWork,
} from './decide-saga.ts';
import type { SendCommand } from './reaction.ts';
import type { Saga } from './saga.ts';
import type { ParkedAt, SagaFact } from './saga-fact.ts';
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
  /** From 1. */
  readonly attempt: number;
  readonly signal: AbortSignal;
  /** The trace that goes on, as headers. */
  readonly trace: Readonly<Record<string, string>>;
}

/** Does one piece of work, if there is one; returns the state behind it. */
export type DriveSaga = (own: RecordedEvent, context: DriveContext) => Promise<SagaState>;

export function createDriveSaga(options: DriveOptions): DriveSaga {
  const { store, saga, journal, send, clock } = options;
  const ask = createAskForSaga({ saga, send, clock });

  return async (own, { attempt, signal, trace }) => {
    const { stream } = own;
    const { tenant, key } = journal.addressOf(stream);
    const decideWith = (): DecideWith => ({ saga, tenant, key, nowMs: clock.now() });
    const state = await journal.load(stream);
    const work = nextWork(state);
    const isLast = attempt >= saga.retry.attemptsMax;
    const { correlationId = own.correlationId } = state;
    const asking = { stream, correlationId, isLast, signal, trace };

    /** Nothing but what is still the next piece is changed: somebody else may have done it. */
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

    /** What the user's code throws is tried again, and is for an operator in the end. */
    const decided = async (
      cause: string,
      at: ParkedAt,
      decide: (now: SagaState) => readonly SagaFact[],
      more?: Partial<SagaChange>,
    ): Promise<SagaState> => {
      try {
        return await write(cause, decide, more);
      } catch (error) {
        if (!isLast || isOurs(error)) throw error;
        const why = { reason: 'handler-failed', message: messageOf(error) };
        return write(`park ${cause}`, (now) => decidePark(now, at, why));
      }
    };

    switch (work.kind) {
      case 'settle':
        return write(`settle ${state.revision}`, (now) => decideSettle(now, decideWith()));
      case 'timer': {
        const { timer } = work;
        return decided(`timer ${timer} ${state.revision}`, { at: 'timer', timer }, (now) =>
          decideTimer(now, timer, decideWith()),
        );
      }
      case 'event': {
        const { held } = work;
        const found = await store.findEvent(held.stream, held.eventId);
        const event = isForgotten(found?.payload) ? undefined : found;
        return decided(
          `event ${held.eventId}`,
          { at: 'event', eventId: held.eventId },
          (now) => decideHeld(now, held, event, decideWith()),
          event === undefined ? {} : { subject: subjectOf(event) },
        );
      }
      case 'step': {
        const { n, request, requestId } = work.step;
        if (request === undefined)
          return write(`park ${n}`, (now) => parkForgotten(now, n, 'step'));
        const answer = await ask(request, { ...asking, n, what: 'do', causationId: requestId });
        if (answer.kind === 'doubt' && saga.onUnanswered === 'park') {
          const why = { reason: 'unanswered', message: answer.message };
          return write(`park ${n}`, (now) => decidePark(now, { at: 'step', n }, why));
        }
        const at: ParkedAt = { at: 'answer', n, accepted: answer.kind === 'accepted' };
        return decided(`answer ${n} ${answer.kind}`, at, (now) =>
          decideAnswer(now, n, answer, decideWith()),
        );
      }
      case 'compensation': {
        const { n, compensation, compensationId = own.eventId } = work.step;
        const parkAs: ParkedAt = { at: 'compensation', n };
        if (compensation === undefined) {
          return write(`park ${n}`, (now) => parkForgotten(now, n, 'compensation'));
        }
        const answer = await ask(compensation, {
          ...asking,
          n,
          what: 'undo',
          causationId: compensationId,
        });
        if (answer.kind === 'doubt') {
          const why = { reason: 'unanswered', message: answer.message };
          return write(`park undo ${n}`, (now) => decidePark(now, parkAs, why));
        }
        return write(`undone ${n}`, (now) =>
          decideCompensationAnswer(now, n, answer, decideWith()),
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
    return now.kind === 'event' && now.held.eventId === before.held.eventId;
  }
  // An answer holds whatever happened meanwhile; the decision looks at the step itself.
  if (before.kind === 'step' || before.kind === 'compensation') return true;
  return now.kind === before.kind;
}

function parkForgotten(
  state: SagaState,
  n: number,
  at: 'step' | 'compensation',
): readonly SagaFact[] {
  const message = 'the person that the command was for was forgotten';
  return decidePark(state, { at, n }, { reason: 'forgotten', message });
}

/** The database, or the race for the stream: nothing that the user's code did. */
function isOurs(error: unknown): boolean {
  return isAway(error) || hasCode(error, 'VERSION_CONFLICT');
}
