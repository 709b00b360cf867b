// The state of a saga, folded from the events in its stream.

import { isForgotten, subjectOf } from '../store/erasure.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { toFact, type ParkedAt, type SagaFact, type SagaRequest } from './saga-fact.ts';

export type SagaStatus =
  /** The saga has events, but no start event yet. */
  'waiting' | 'running' | 'compensating' | 'parked' | 'completed' | 'compensated';

export type SagaStepStatus =
  | 'requested'
  | 'done'
  | 'doubted'
  | 'failed'
  | 'compensating'
  | 'compensated'
  | 'skipped';

export interface SagaStepState {
  readonly n: number;
  readonly step: string;
  readonly status: SagaStepStatus;
  /** Undefined: the data subject was forgotten. */
  readonly request: SagaRequest | undefined;
  /** Id of the event that requested the step: the cause of its command. */
  readonly requestId: string;
  readonly compensation?: SagaRequest | undefined;
  readonly compensationId?: string;
  readonly reason?: string;
}

interface SagaTimer {
  readonly dueAtMs: number;
  /** Id of the event that set the timer. */
  readonly setBy: string;
}

interface QueuedEvent {
  readonly eventId: string;
  readonly eventType: string;
  readonly stream: string;
}

export type SagaParked = ParkedAt & {
  readonly reason: string;
  readonly message?: string;
  readonly from: 'running' | 'compensating';
};

export interface SagaState {
  readonly status: SagaStatus;
  /** −1: the stream has no events. */
  readonly revision: number;
  /** Undefined: never set, or forgotten. */
  readonly data: unknown;
  readonly startedBy: string | undefined;
  readonly startedAt: string | undefined;
  readonly updatedAt: string | undefined;
  readonly correlationId: string | undefined;
  readonly subject: string | undefined;
  readonly steps: readonly SagaStepState[];
  /** Numbers of the steps that took effect, in that order. */
  readonly done: readonly number[];
  readonly timers: ReadonlyMap<string, SagaTimer>;
  /** Fired timers that are not handled yet. */
  readonly fired: readonly string[];
  readonly queued: readonly QueuedEvent[];
  readonly taken: ReadonlySet<string>;
  readonly isEnding: boolean;
  /** Why the saga is compensated. */
  readonly reason: string | undefined;
  readonly parked: SagaParked | undefined;
  /** How often an operator resumed the saga. */
  readonly resumes: number;
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

interface Draft extends Mutable<
  Omit<SagaState, 'done' | 'fired' | 'queued' | 'steps' | 'taken' | 'timers'>
> {
  done: number[];
  fired: string[];
  queued: QueuedEvent[];
  steps: SagaStepState[];
  taken: Set<string>;
  timers: Map<string, SagaTimer>;
}

/** The part of an event's envelope that folding needs. */
export interface FactEvent {
  readonly eventId: string;
  readonly occurredAt: string;
  readonly correlationId: string;
}

export function foldSaga(events: readonly RecordedEvent[]): SagaState {
  const draft = draftOf(noSaga);
  for (const event of events) {
    draft.revision = event.revision;
    draft.subject = subjectOf(event) ?? draft.subject;
    draft.updatedAt = event.recordedAt;
    const fact = toFact(event);
    if (fact === undefined) continue;
    apply(draft, fact, event);
    if (fact.kind === 'data-set' && isForgotten(event.payload)) draft.data = undefined;
  }
  return draft;
}

/** The state after a newly decided fact. */
export function evolveSaga(state: SagaState, fact: SagaFact, event: FactEvent): SagaState {
  const draft = draftOf(state);
  apply(draft, fact, event);
  return draft;
}

/** The first step that is requested but neither accepted nor denied. */
export function unanswered({ steps }: SagaState): SagaStepState | undefined {
  return steps.find(({ status }) => status === 'requested');
}

/** When the earliest timer is due; only a running saga has timers. */
export function dueAtMs({ status, timers }: SagaState): number | undefined {
  if (status !== 'running' || timers.size === 0) return undefined;
  return Math.min(...[...timers.values()].map((timer) => timer.dueAtMs));
}

const noSaga: SagaState = {
  status: 'waiting',
  revision: -1,
  data: undefined,
  startedBy: undefined,
  startedAt: undefined,
  updatedAt: undefined,
  correlationId: undefined,
  subject: undefined,
  steps: [],
  done: [],
  timers: new Map(),
  fired: [],
  queued: [],
  taken: new Set(),
  isEnding: false,
  reason: undefined,
  parked: undefined,
  resumes: 0,
};

function draftOf(state: SagaState): Draft {
  return {
    ...state,
    done: [...state.done],
    fired: [...state.fired],
    queued: [...state.queued],
    steps: [...state.steps],
    taken: new Set(state.taken),
    timers: new Map(state.timers),
  };
}

function apply(draft: Draft, fact: SagaFact, event: FactEvent): void {
  draft.correlationId ??= event.correlationId;
  switch (fact.kind) {
    case 'started':
      draft.status = 'running';
      draft.startedBy = fact.eventType;
      draft.startedAt = event.occurredAt;
      // The start event sets the correlation id, even if other events came before it.
      draft.correlationId = event.correlationId;
      return;
    case 'event-taken':
      draft.taken.add(fact.eventId);
      draft.queued = draft.queued.filter(({ eventId }) => eventId !== fact.eventId);
      return;
    case 'event-held': {
      const { eventId, eventType, stream } = fact;
      draft.taken.add(eventId);
      draft.queued.push({ eventId, eventType, stream });
      return;
    }
    case 'data-set':
      draft.data = fact.data;
      return;
    case 'timer-set':
      draft.timers.set(fact.timer, {
        dueAtMs: Date.parse(fact.dueAt),
        setBy: event.eventId,
      });
      return;
    case 'timer-cancelled':
      draft.timers.delete(fact.timer);
      draft.fired = draft.fired.filter((timer) => timer !== fact.timer);
      return;
    case 'timer-fired':
      draft.timers.delete(fact.timer);
      draft.fired.push(fact.timer);
      return;
    case 'timer-taken':
      draft.fired = draft.fired.filter((timer) => timer !== fact.timer);
      return;
    case 'completing':
      draft.isEnding = true;
      return;
    case 'completed':
    case 'compensating':
    case 'compensated':
      draft.status = fact.kind;
      if (fact.kind === 'compensating') draft.reason = fact.reason;
      discardInputs(draft);
      return;
    case 'parked': {
      const { kind: _kind, ...where } = fact;
      const from = draft.status === 'compensating' ? 'compensating' : 'running';
      draft.parked = { ...where, from };
      draft.status = 'parked';
      return;
    }
    case 'resumed':
      draft.status = draft.parked?.from ?? draft.status;
      draft.parked = undefined;
      draft.resumes += 1;
      return;
    default:
      applyToStep(draft, fact, event);
  }
}

type StepFact = Extract<SagaFact, { readonly n: number; readonly kind: `${string}-${string}` }>;

function applyToStep(draft: Draft, fact: StepFact, { eventId }: FactEvent): void {
  const { n } = fact;
  if (fact.kind === 'step-requested') {
    const { step, request } = fact;
    draft.steps[n] = { n, step, status: 'requested', request, requestId: eventId };
    return;
  }
  const known = draft.steps[n];
  if (known === undefined) return;
  switch (fact.kind) {
    case 'step-done':
    case 'step-doubted':
      draft.steps[n] = { ...known, status: fact.kind === 'step-done' ? 'done' : 'doubted' };
      if (!draft.done.includes(n)) draft.done.push(n);
      return;
    case 'step-failed':
      draft.steps[n] = { ...known, status: 'failed', reason: fact.reason };
      return;
    case 'compensation-requested':
      draft.steps[n] = {
        ...known,
        status: 'compensating',
        compensation: fact.request,
        compensationId: eventId,
      };
      return;
    case 'compensation-done':
      draft.steps[n] = { ...known, status: 'compensated' };
      return;
    case 'compensation-skipped':
      draft.steps[n] = { ...known, status: 'skipped' };
  }
}

/** Discards timers and queued events: they no longer affect the saga. */
function discardInputs(draft: Draft): void {
  draft.timers.clear();
  draft.fired = [];
  draft.queued = [];
  draft.isEnding = false;
}
