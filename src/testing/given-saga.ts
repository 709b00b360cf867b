// Given-when-then tests of sagas: past events, a new event, and the commands that follow.

import { AssertionError } from 'node:assert';
import { assertEqual } from './assertions.ts';
import type { NewEvent } from '../contracts/envelope.ts';
import type { CommandOutcome } from '../reactors/reaction.ts';
import {
  decideStepOutcome,
  decideCompensationOutcome,
  decideDue,
  decideEvent,
  decideQueued,
  decidePark,
  decideResume,
  decideSettle,
  decideTimer,
  nextWork,
} from '../reactors/decide-saga.ts';
import { expiryTimer, type Saga } from '../reactors/saga.ts';
import type { SagaFact, SagaRequest } from '../reactors/saga-fact.ts';
import { evolveSaga, foldSaga, type SagaState, type SagaStatus } from '../reactors/saga-state.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { givenEvent, givenNowMs, givenTenant } from './given-event.ts';
import { plainCommand, type SentCommand } from './given-reactor.ts';

/** An event, passing time, or an action of an operator. */
export type SagaHappening =
  | NewEvent
  | { readonly passMs: number }
  | { readonly operator: 'resume' | 'skip' };

/** The replies to commands by type; all other commands are accepted. */
export interface SagaReplies {
  /** The rejected command types, with the reason. */
  readonly rejected?: Readonly<Record<string, string>>;
  /** The command types without a reply, even after the last attempt. */
  readonly unanswered?: readonly string[];
}

/** A sequence of happenings and assertions. */
export interface GivenSaga {
  when(happening: SagaHappening, replies?: SagaReplies): GivenSaga;
  /** Fails unless exactly these commands are sent, including compensations; `[]`: none. */
  thenSends(expected: readonly SentCommand[]): GivenSaga;
  thenStatus(expected: SagaStatus): GivenSaga;
  thenData(expected: unknown): GivenSaga;
  /** The milliseconds until each timer fires, by name. */
  thenTimers(expected: Readonly<Record<string, number>>): GivenSaga;
}

/**
 * Starts with past events, whose commands have got their replies. Needs no store and does not wait.
 *
 * @example
 * import { defineCommand, defineEvent } from 'millrace/contracts';
 * import { saga } from 'millrace/reactors';
 * import { givenSaga } from 'millrace/testing';
 * import { z } from 'zod';
 *
 * const asked = defineEvent('question.asked.v1', z.object({ id: z.string() }));
 * const remind = defineCommand('letter.send', z.object({ id: z.string() }));
 * const reminder = saga({
 *   bc: 'help',
 *   name: 'reminder',
 *   version: 1,
 *   from: 'end',
 *   events: [asked],
 *   startOn: ['question.asked.v1'],
 *   correlateBy: ({ payload }) => payload.id,
 *   initial: {},
 *   on: { 'question.asked.v1': () => [{ timer: 'tomorrow', afterMs: 86_400_000 }] },
 *   steps: { remind: {} },
 *   timers: {
 *     tomorrow: ({ key }) => [
 *       { run: 'remind', id: key, command: remind({ id: key }) },
 *       { end: 'completed' },
 *     ],
 *   },
 * });
 *
 * givenSaga(reminder, [asked({ id: 'q1' })])
 *   .when({ passMs: 86_400_000 })
 *   .thenSends([{ id: 'q1', command: remind({ id: 'q1' }) }])
 *   .thenStatus('completed');
 */
export function givenSaga(
  saga: Saga,
  history: readonly SagaHappening[],
  replies: SagaReplies = {},
): GivenSaga {
  const world = createWorld(saga);
  for (const happening of history) world.happen(happening, replies);

  const thenSends: GivenSaga['thenSends'] = (expected) => {
    assertEqual(world.sent.map(plainCommand), expected.map(plainCommand), thenSends);
    return story;
  };
  const thenStatus: GivenSaga['thenStatus'] = (expected) => {
    const { status, reason, parked } = world.state;
    if (status === expected) return story;
    const why = parked?.message ?? parked?.reason ?? reason;
    const because = why === undefined ? '' : ` (${why})`;
    const message = `expected the saga to be ${expected}, but it is ${status}${because}`;
    throw new AssertionError({ message, actual: status, expected, stackStartFn: thenStatus });
  };
  const thenData: GivenSaga['thenData'] = (expected) => {
    assertEqual(world.state.data, expected, thenData);
    return story;
  };
  const thenTimers: GivenSaga['thenTimers'] = (expected) => {
    const left = [...world.state.timers]
      .filter(([timer]) => timer !== expiryTimer)
      .map(([timer, { dueAtMs }]) => [timer, dueAtMs - world.nowMs] as const);
    assertEqual(Object.fromEntries(left), { ...expected }, thenTimers);
    return story;
  };
  const story: GivenSaga = {
    when(happening, now = replies) {
      world.sent.length = 0;
      world.happen(happening, now);
      return story;
    },
    thenSends,
    thenStatus,
    thenData,
    thenTimers,
  };
  return story;
}

interface World {
  readonly sent: SentCommand[];
  readonly nowMs: number;
  readonly state: SagaState;
  happen(happening: SagaHappening, replies: SagaReplies): void;
}

/** Simulates the saga runner without a store between the steps. */
function createWorld(saga: Saga): World {
  const sent: SentCommand[] = [];
  const events = new Map<string, RecordedEvent>();
  let state = foldSaga([]);
  let nowMs = givenNowMs;
  let key: string | undefined;
  let count = 0;

  const context = () => ({ saga, tenant: givenTenant, key: key ?? '', nowMs });

  function write(facts: readonly SagaFact[]): void {
    for (const fact of facts) {
      count += 1;
      const occurredAt = new Date(nowMs).toISOString();
      const event = { eventId: `fact-${count}`, occurredAt, correlationId: 'given' };
      state = { ...evolveSaga(state, fact, event), revision: state.revision + 1 };
    }
  }

  function send({ tenant, id, command }: SagaRequest, replies: SagaReplies): Reply {
    sent.push({ id, command, ...(tenant === givenTenant ? {} : { tenant }) });
    const { type } = command;
    if (replies.unanswered?.includes(type) === true) {
      return { kind: 'doubt', message: `${type} has no reply` };
    }
    const reason = replies.rejected?.[type];
    if (reason === undefined) return { kind: 'accepted' };
    return { kind: 'rejected', reason, message: `${type} was rejected`, cause: undefined };
  }

  function settle(replies: SagaReplies): void {
    for (;;) {
      const work = nextWork(state);
      if (work.kind === 'none') return;
      if (work.kind === 'settle') write(decideSettle(state, context()));
      if (work.kind === 'timer') write(decideTimer(state, work.timer, context()));
      if (work.kind === 'event') {
        write(decideQueued(state, work.queued, events.get(work.queued.eventId), context()));
      }
      if (work.kind === 'step') step(work.step.n, work.step.request, replies);
      if (work.kind === 'compensation') {
        undo(work.step.n, work.step.compensation, replies);
      }
    }
  }

  function step(n: number, request: SagaRequest | undefined, replies: SagaReplies): void {
    if (request === undefined) return;
    const answer = send(request, replies);
    const isParked = answer.kind === 'doubt' && saga.onUnanswered === 'park';
    write(
      isParked
        ? decidePark(state, { at: 'step', n }, { reason: 'unanswered', message: answer.message })
        : decideStepOutcome(state, n, answer, context()),
    );
  }

  function undo(n: number, request: SagaRequest | undefined, replies: SagaReplies): void {
    if (request === undefined) return;
    const answer = send(request, replies);
    write(
      answer.kind === 'doubt'
        ? decidePark(state, { at: 'compensation', n }, { ...answer, reason: 'unanswered' })
        : decideCompensationOutcome(state, n, answer, context()),
    );
  }

  return {
    sent,
    get nowMs() {
      return nowMs;
    },
    get state() {
      return state;
    },
    happen(happening, replies) {
      if ('passMs' in happening) {
        // Timers fire in the order of their due times.
        const untilMs = nowMs + happening.passMs;
        for (;;) {
          const due = [...state.timers.values()].map((timer) => timer.dueAtMs);
          const nextMs = state.status === 'running' ? Math.min(...due) : Number.POSITIVE_INFINITY;
          if (nextMs > untilMs) break;
          nowMs = Math.max(nowMs, nextMs);
          write(decideDue(state, nowMs));
          settle(replies);
        }
        nowMs = untilMs;
      } else if ('operator' in happening) {
        write(decideResume(state, happening.operator, { by: 'operator' }));
      } else {
        const event = givenEvent(happening, { index: events.size, nowMs });
        events.set(event.eventId, event);
        const belongsTo =
          saga.filter.types?.includes(event.type) === true ? saga.correlate(event) : undefined;
        if (belongsTo === undefined) return;
        key ??= belongsTo;
        if (belongsTo !== key) {
          throw new TypeError(
            `${event.type} belongs to '${belongsTo}', and the others to '${key}'`,
          );
        }
        write(decideEvent(state, event, context()));
      }
      settle(replies);
    },
  };
}

type Reply = CommandOutcome | { readonly kind: 'doubt'; readonly message: string };
